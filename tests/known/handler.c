// SPDX-License-Identifier: Apache-2.0
#include <signal.h>
#include <sys/time.h>
#include "work.h"
FUNCTION void on_alarm(int number)
{
        burn(4000000 + number);
        sink++;
}
FUNCTION void work(void)
{
        burn(1000000);
        sink++;
}
int main(void)
{
        struct sigaction action = { .sa_handler = on_alarm };
        struct itimerval timer = { { 0, 10000 }, { 0, 10000 } };
        sigaction(SIGALRM, &action, 0);
        setitimer(ITIMER_REAL, &timer, 0);
        for (;;)
                work();
}
