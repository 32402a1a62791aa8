// SPDX-License-Identifier: Apache-2.0
// Starts short processes, one after another: agent-churn N [TURNS]. Each runs this program and works for a moment.
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>

static __attribute__((noinline)) unsigned long work(unsigned long turns)
{
        volatile unsigned long sum = 0;

        for (unsigned long i = 0; i < turns; i++)
                sum += i;
        return sum;
}

int main(int argc, char **argv)
{
        char *none[] = { NULL }, *leaf[] = { argv[0], "leaf", argc > 2 ? argv[2] : "100000", NULL };

        if (argc > 2 && argv[1][0] == 'l')
                return work(strtoul(argv[2], NULL, 10)) == 0;
        for (long n = argc > 1 ? atol(argv[1]) : 0; n > 0; n--) {
                int status;
                pid_t pid;

                if (posix_spawn(&pid, argv[0], NULL, NULL, leaf, none) != 0 || waitpid(pid, &status, 0) != pid ||
                    status != 0)
                        return 1;
        }
        return 0;
}
