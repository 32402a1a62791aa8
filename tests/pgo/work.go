// SPDX-License-Identifier: Apache-2.0

// Work for tests/pgo/run: writes a CPU profile of itself to the file given as its argument.
package main

import (
	"fmt"
	"os"
	"runtime/pprof"
	"sort"
	"strings"
)

func words(n int) []string {
	out := make([]string, 0, n)
	for i := 0; i < n; i++ {
		out = append(out, fmt.Sprintf("w%d", i*7919%1000))
	}
	return out
}

func count(ws []string) map[string]int {
	m := map[string]int{}
	for _, w := range ws {
		m[strings.ToUpper(w)]++
	}
	return m
}

func main() {
	f, _ := os.Create(os.Args[1])
	pprof.StartCPUProfile(f)
	total := 0
	for i := 0; i < 400; i++ {
		m := count(words(5000))
		keys := make([]string, 0, len(m))
		for k := range m {
			keys = append(keys, k)
		}
		sort.Strings(keys)
		total += len(keys)
	}
	pprof.StopCPUProfile()
	fmt.Println(total)
}
