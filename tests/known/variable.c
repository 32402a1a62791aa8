// SPDX-License-Identifier: Apache-2.0
#include <alloca.h>
#include <string.h>
#include "work.h"
typedef int wide __attribute__((vector_size(64)));
FUNCTION void use(char *p, int n)
{
        for (int i = 0; i < 300000; i++)
                sink += p[i % n];
}
FUNCTION void grown(int n)
{
        char *p = alloca(n);
        memset(p, 1, n);
        use(p, n);
        sink += p[0];
}
FUNCTION void aligned(int n)
{
        wide x __attribute__((aligned(128)));
        char *p = alloca(n);
        memset(&x, n, sizeof x);
        p[0] = 1;
        use((char *)&x, 64);
        use(p, 1);
        sink += x[0];
}
int main(void)
{
        for (int i = 0;; i++) {
                grown(1000 + i % 100);
                aligned(100 + i % 50);
        }
}
