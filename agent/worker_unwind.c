/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/worker_unwind.h"

#include <fcntl.h>
#include <sys/prctl.h>

#include "agent/privileges.h"
#include "agent/unwind_result.h"
#include "sandbox/worker.h"

#define FIRST_FD 3

static enum status build_one(int in, int out, struct error *err)
{
        _cleanup_unwind_rules_ struct unwind_rules rules = { 0 };
        _cleanup_unwind_table_ struct unwind_table table = { 0 };
        struct elf_image image;
        enum status st = elf_image_from_fd(in, "mapped file", &image, err);

        if (st)
                return st;
        st = unwind_rules_init(&rules, err);
        if (!st)
                st = unwind_table_build(&image, &rules, &table, err);
        if (!st)
                st = unwind_result_write(out, &table, &rules, err);
        elf_image_close(&image);
        return st;
}

int worker_unwind(void)
{
        struct error err;
        enum status st = privileges_drop_all(&err);

        /* It was started as /proc/self/exe, which says nothing in a list of processes or a profile. */
        prctl(PR_SET_NAME, "cairn-unwind");
        if (!st)
                st = worker_confine(WORKER_NEEDS_NOTHING, &err);
        for (int i = 0; !st && i < WORKER_UNWIND_FILES; i++) {
                int in = FIRST_FD + 2 * i;

                if (fcntl(in, F_GETFD) >= 0 && build_one(in, in + 1, &err) == ST_NO_MEMORY)
                        st = ST_NO_MEMORY;
        }
        return worker_exit_code(st);
}
