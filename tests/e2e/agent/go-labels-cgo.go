// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package main

/*
static void spin_in_c(long n)
{
        volatile unsigned long sum = 0;

        for (long i = 0; i < n; i++)
                sum += i;
}
*/
import "C"

func init() { spinC = func(n int) { C.spin_in_c(C.long(n)) } }
