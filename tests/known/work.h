// SPDX-License-Identifier: Apache-2.0
volatile unsigned long sink;
#define FUNCTION __attribute__((noinline, noclone, noipa))
FUNCTION void burn(int n)
{
        for (int i = 0; i < n; i++)
                sink += i;
}
