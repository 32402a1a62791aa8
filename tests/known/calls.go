// SPDX-License-Identifier: Apache-2.0
package main

var sink int

//go:noinline
func burn(n int) int {
	s := 0
	for i := 0; i < n; i++ {
		s += i * i
	}
	return s
}

//go:noinline
func down(n int) int {
	if n == 0 {
		return burn(1000000)
	}
	return down(n-1) + 1
}

func main() {
	for {
		sink += down(30)
	}
}
