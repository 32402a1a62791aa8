// SPDX-License-Identifier: Apache-2.0

// Sdk profiles itself for two seconds with pyroscope-go: CPU, heap, goroutines, mutexes and blocks.
//
//	sdk URL
package main

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/grafana/pyroscope-go"
)

func work(mutex *sync.Mutex, until time.Time, done *sync.WaitGroup) {
	defer done.Done()
	for n := 0; time.Now().Before(until); n++ {
		mutex.Lock()
		for start := time.Now(); time.Since(start) < time.Millisecond; {
			n += len(fmt.Sprint(n))
		}
		mutex.Unlock()
	}
}

func main() {
	runtime.SetMutexProfileFraction(1)
	runtime.SetBlockProfileRate(1)
	profiler, err := pyroscope.Start(pyroscope.Config{
		ApplicationName: "go-sdk",
		ServerAddress:   os.Args[1],
		UploadRate:      time.Second,
		Tags:            map[string]string{"region": "eu"},
		ProfileTypes: []pyroscope.ProfileType{
			pyroscope.ProfileCPU, pyroscope.ProfileAllocObjects, pyroscope.ProfileAllocSpace, pyroscope.ProfileInuseObjects,
			pyroscope.ProfileInuseSpace, pyroscope.ProfileGoroutines, pyroscope.ProfileMutexCount,
			pyroscope.ProfileMutexDuration, pyroscope.ProfileBlockCount, pyroscope.ProfileBlockDuration,
		},
	})
	if err != nil {
		fmt.Println("not ok - the SDK starts:", err)
		os.Exit(1)
	}
	var mutex sync.Mutex
	var done sync.WaitGroup
	until := time.Now().Add(3 * time.Second)
	for range 3 {
		done.Add(1)
		go work(&mutex, until, &done)
	}
	done.Wait()
	profiler.Flush(true)
	if err := profiler.Stop(); err != nil {
		fmt.Println("not ok - the SDK stops:", err)
		os.Exit(1)
	}
	fmt.Println("ok - the SDK profiled itself")
}
