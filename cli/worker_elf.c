/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command.h"
#include "sandbox/worker.h"
#include "server/elf_job.h"

/* worker elf supplement|sections */
int worker_elf(int argc, char **argv)
{
        struct error err;
        enum status st = worker_confine(WORKER_NEEDS_NOTHING, &err);

        if (!st)
                st = elf_job_worker(argc, argv, 3, 4, &err);
        return st ? worker_fail(st, &err) : EXIT_DONE;
}
