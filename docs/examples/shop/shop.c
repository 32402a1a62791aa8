/* SPDX-License-Identifier: Apache-2.0 */
/* The program of the examples in docs/: all of its time is spent in add_item(), which serve() calls. */
#include <stdio.h>
#include <stdlib.h>

struct item {
        const char *name;
        int price, count;
};
volatile unsigned long total;

/* The sum of a bill, many times. */
__attribute__((noinline)) void add_item(const struct item *i, int times)
{
        while (times-- > 0)
                total += i->price * i->count;
}
static void serve(int times)
{
        struct item tea = { "tea", 3, 2 };

        add_item(&tea, times);
}
int main(int argc, char **argv)
{
        serve(argc > 1 ? atoi(argv[1]) : 200000000);
        printf("%lu\n", total);
        return 0;
}
