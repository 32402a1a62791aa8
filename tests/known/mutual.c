// SPDX-License-Identifier: Apache-2.0
#include "work.h"
int odd(int n);
FUNCTION int even(int n)
{
        if (!n) {
                burn(3000000);
                return 1;
        }
        int r = odd(n - 1);
        sink += r;
        return r;
}
FUNCTION int odd(int n)
{
        char b[n * 8 + 8];
        b[0] = n;
        sink += (unsigned long)b;
        int r = even(n - 1);
        sink += b[0];
        return r;
}
int main(void)
{
        for (;;)
                even(60);
}
