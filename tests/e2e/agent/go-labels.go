// SPDX-License-Identifier: Apache-2.0

// Goroutines that have a label each and use CPU time in a function of their own, with the name of the label's value.
package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"strings"
)

const steps = 2000000

var (
	sink  uint64
	spinC func(int) // with cgo
)

//go:noinline
func spin_alpha() {
	for i := 0; i < steps; i++ {
		sink += uint64(i) * 3
	}
}

//go:noinline
func spin_beta() {
	for i := 0; i < steps; i++ {
		sink += uint64(i) * 5
	}
}

//go:noinline
func spin_outer() {
	for i := 0; i < steps; i++ {
		sink += uint64(i) * 7
	}
}

//go:noinline
func spin_inner() {
	for i := 0; i < steps; i++ {
		sink += uint64(i) * 11
	}
}

//go:noinline
func spin_none() {
	for i := 0; i < steps; i++ {
		sink += uint64(i) * 13
	}
}

//go:noinline
func spin_allocate() { // runs on the system stack too
	for i := 0; i < 2000; i++ {
		garbage = make([]byte, 4096+i)
	}
}

//go:noinline
func spin_many() {
	for i := 0; i < steps; i++ {
		sink += uint64(i) * 17
	}
}

var garbage []byte

func forever(f func()) {
	for {
		f()
		runtime.Gosched()
	}
}

func work(name string, f func()) {
	go pprof.Do(context.Background(), pprof.Labels("work", name, "kind", "test"), func(context.Context) { forever(f) })
}

func main() {
	runtime.GOMAXPROCS(2)
	work("alpha", spin_alpha)
	work("beta", spin_beta)
	work("allocate", spin_allocate)
	go forever(spin_none)
	go pprof.Do(context.Background(), pprof.Labels("work", "outer"), func(ctx context.Context) {
		for {
			spin_outer()
			pprof.Do(ctx, pprof.Labels("work", "inner", "depth", "2"), func(context.Context) { spin_inner() })
		}
	})
	labels := []string{"work", "many", "long", strings.Repeat("é", 400), strings.Repeat("k", 100), "x",
		"trace_id", "0102030405060708090a0b0c0d0e0f10", "span_id", "0102030405060708", "empty", ""}
	for i := 0; i < 6; i++ {
		labels = append(labels, fmt.Sprintf("label.%d", i), "v")
	}
	go pprof.Do(context.Background(), pprof.Labels(labels...), func(context.Context) { forever(spin_many) })
	if spinC != nil {
		work("in_c", func() { spinC(steps) })
	}
	fmt.Println("started", runtime.Version())
	os.Stdout.Sync()
	select {}
}
