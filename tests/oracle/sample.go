// SPDX-License-Identifier: Apache-2.0
// Generics, closures, interfaces and inlined calls, for readers of DWARF and of the pclntab to agree on.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
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

func main() {
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
