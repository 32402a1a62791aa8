// SPDX-License-Identifier: Apache-2.0
// Generics, closures, interfaces and inlined calls, to compare readers of DWARF and of the pclntab.
// With the argument "frames" it prints the frames that its runtime finds for the addresses on standard input.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"sort"
	"strings"
)

type shape interface{ area() float64 }
type square struct{ Side float64 }
type circle struct{ Radius float64 }

func (s square) area() float64  { return s.Side * s.Side }
func (c *circle) area() float64 { return c.Radius * c.Radius * 3.14 }

func apply[T, U any](list []T, f func(T) U) []U {
	out := make([]U, 0, len(list))
	for _, x := range list {
		out = append(out, f(x))
	}
	return out
}

func count(text string) map[string]int {
	found := map[string]int{}
	for _, w := range strings.FieldsFunc(text, func(r rune) bool { return r < 'a' || r > 'z' }) {
		found[w]++
	}
	return found
}

// Runtime.CallersFrames takes return addresses and subtracts one. A return address equal to the next function's entry
// cannot be looked up; then nothing is printed. The 1 after the address makes it return outer frames.
func printFrames(pc uintptr) {
	if f := runtime.FuncForPC(pc + 1); f != nil && f.Entry() == pc+1 {
		return
	}
	fmt.Printf("0x%x\n", pc)
	frames := runtime.CallersFrames([]uintptr{pc + 1, 1})
	for more := true; more; {
		var f runtime.Frame
		if f, more = frames.Next(); f.Entry != 0 {
			fmt.Printf("%s\n%s:%d\n", f.Function, f.File, f.Line)
		}
	}
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == "frames" {
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			var pc uintptr
			if _, err := fmt.Sscanf(in.Text(), "0x%x", &pc); err == nil {
				printFrames(pc)
			}
		}
		return
	}
	shapes := apply([]float64{1, 2, 3}, func(x float64) shape {
		if x > 2 {
			return &circle{x}
		}
		return square{x}
	})
	sort.Slice(shapes, func(i, j int) bool { return shapes[i].area() > shapes[j].area() })
	text, err := json.Marshal(shapes)
	if err != nil {
		panic(err)
	}
	fmt.Println(regexp.MustCompile("[a-z]+").FindString(os.Args[0]), string(text), count(strings.Join(os.Args, " ")))
}
