/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command.h"
#include "sandbox/worker.h"
#include "scan/inspect.h"

/* worker scan: descriptor 3 the socket, 4 what was found, 5 a temporary file */
int worker_scan(int argc, char **argv)
{
        struct error err;
        enum status st = worker_confine(WORKER_NEEDS_DESCRIPTORS, &err);

        (void)argc;
        (void)argv;
        if (!st)
                st = inspect_worker(3, 4, 5, &err);
        return st ? worker_fail(st, &err) : EXIT_DONE;
}

/* worker member ORDINAL: descriptor 3 the archive, 4 where the member goes */
int worker_member(int argc, char **argv)
{
        struct error err;
        enum status st = worker_confine(WORKER_NEEDS_NOTHING, &err);

        if (!st && argc != 2)
                st = error_set(&err, ST_USAGE, "member takes a number");
        if (!st)
                st = member_worker(argv[1], 3, 4, &err);
        return st ? worker_fail(st, &err) : EXIT_DONE;
}

/* worker source-names: descriptor 3 the debuginfo, 4 where the hashes go */
int worker_source_names(int argc, char **argv)
{
        struct error err;
        enum status st = worker_confine(WORKER_NEEDS_NOTHING, &err);

        (void)argc;
        (void)argv;
        if (!st)
                st = source_names_worker(3, 4, &err);
        return st ? worker_fail(st, &err) : EXIT_DONE;
}
