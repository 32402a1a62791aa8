// SPDX-License-Identifier: Apache-2.0
#include <ucontext.h>
#include "work.h"
static ucontext_t outside, inside;
static char stack[65536];
FUNCTION void body(void)
{
        for (;;) {
                burn(300000);
                swapcontext(&inside, &outside);
        }
}
int main(void)
{
        getcontext(&inside);
        inside.uc_stack.ss_sp = stack;
        inside.uc_stack.ss_size = sizeof stack;
        inside.uc_link = &outside;
        makecontext(&inside, body, 0);
        for (;;)
                swapcontext(&outside, &inside);
}
