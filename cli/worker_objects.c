/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command.h"
#include "sandbox/worker.h"
#include "symbolizer/object_facts.h"

int worker_objects(int argc, char **argv)
{
        struct error err;
        enum status st = worker_confine(WORKER_NEEDS_NOTHING, &err);

        (void)argc;
        (void)argv;
        if (!st)
                st = object_facts_worker(3, 4, &err);
        return st ? worker_fail(st, &err) : EXIT_DONE;
}
