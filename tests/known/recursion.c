// SPDX-License-Identifier: Apache-2.0
#include "work.h"
FUNCTION int down(int n)
{
        if (!n) {
                burn(3000000);
                return 1;
        }
        int r = down(n - 1);
        sink += r;
        return r + 1;
}
int main(void)
{
        for (;;)
                if (!down(200))
                        return 1;
}
