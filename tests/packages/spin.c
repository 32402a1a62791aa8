/* SPDX-License-Identifier: Apache-2.0 */
/* A program to profile, which runs until it is killed. */
static volatile unsigned long sink;

static inline __attribute__((always_inline)) unsigned long mix(unsigned long n)
{
        return n * 2654435761u ^ n >> 7;
}

__attribute__((noinline)) static void spin_in_c(unsigned long n)
{
        for (unsigned long i = 0; i < 1000; i++)
                sink += mix(n + i);
}

int main(void)
{
        for (unsigned long n = 0;; n++)
                spin_in_c(n);
}
