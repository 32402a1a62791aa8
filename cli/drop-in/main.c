/* SPDX-License-Identifier: Apache-2.0 */
/* The small program with the replacements of other symbolizers; its name selects one. */
#include <string.h>

#include "cli/drop-in/drop_in.h"
#include "common/program/standard_output.h"
#include "sandbox/worker.h"

int main(int argc, char **argv)
{
        int (*run)(int argc, char **argv) = drop_in_find(argc ? argv[0] : "");

        if (argc > 1 && strcmp(argv[1], "worker") == 0) /* by a process that has threads */
                return drop_in_run_worker(argc - 1, argv + 1);
        check_standard_output_at_exit("cairn-addr2line");
        if (!run)
                run = run_gnu_addr2line;
        worker_set_entry(drop_in_run_worker);
        return run(argc, argv);
}
