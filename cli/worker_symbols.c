/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command.h"
#include "symbolizer/extract_job.h"

int worker_symbols(int argc, char **argv)
{
        struct error err;
        enum status st = extract_job(argc, argv, &err);

        return st ? worker_fail(st, &err) : EXIT_DONE;
}
