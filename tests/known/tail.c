// SPDX-License-Identifier: Apache-2.0
#include "work.h"
FUNCTION void second(int n)
{
        burn(n + 1);
}
FUNCTION void first(int n)
{
        second(n + 1);
}
int main(void)
{
        for (;;)
                first(1000000);
}
