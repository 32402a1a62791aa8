/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command.h"
#include "debuginfo-store/fetch.h"
#include "sandbox/worker.h"

/* worker fetch PATH SECONDS TOTAL-SECONDS MAX-BYTES FORWARDED-FOR */
int worker_fetch(int argc, char **argv)
{
        struct error err;
        enum status st;

        if (argc != 1 + FETCH_WORKER_ARGS)
                return worker_fail(error_set(&err, ST_USAGE, "fetch takes a build-id, a part, seconds, bytes and a way"), &err);
        st = worker_confine(WORKER_NEEDS_NETWORK, &err);
        if (!st)
                st = fetch_worker(argv + 1, &err);
        return st ? worker_fail(st, &err) : EXIT_DONE;
}
