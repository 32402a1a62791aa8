/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command.h"
#include "debuginfo-store/verify.h"
#include "sandbox/worker.h"

int worker_verify(int argc, char **argv)
{
        struct error err;
        enum status st = worker_confine(WORKER_NEEDS_NOTHING, &err);

        (void)argc;
        (void)argv;
        if (!st)
                st = verify_worker(3, 4, 5, &err);
        return st ? worker_fail(st, &err) : EXIT_DONE;
}
