/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `cairn worker symbols NAME`: from ELF files to a symbol table file.
 *
 * Descriptors: 3 debuginfo, 4 executable, 5 dwz supplementary file, 6 where the
 * symbol table file goes, 7 package of split DWARF, 8 a socket on which to ask
 * for its single files. Each but 6 may be closed. NAME is for messages.
 */
#include <fcntl.h>

#include "cli/command.h"
#include "sandbox/worker.h"
#include "symbolizer/extract.h"
#include "symbolizer/extract_ask.h"

enum { DEBUGINFO_FD = 3, EXECUTABLE_FD, ALTLINK_FD, OUTPUT_FD, DWP_FD, ASK_FD };

static int open_or_none(int fd)
{
        return fcntl(fd, F_GETFD) < 0 ? -1 : fd;
}

int worker_symbols(int argc, char **argv)
{
        struct dwo_asker asker = { .socket = open_or_none(ASK_FD), .lock = PTHREAD_MUTEX_INITIALIZER };
        const struct extract_inputs in = {
                .debuginfo_fd = open_or_none(DEBUGINFO_FD),
                .executable_fd = open_or_none(EXECUTABLE_FD),
                .altlink_fd = open_or_none(ALTLINK_FD),
                .dwp_fd = open_or_none(DWP_FD),
                .dwo = { .open = asker.socket >= 0 ? dwo_ask : NULL, .context = &asker },
                .name = argc > 1 ? argv[1] : "object",
        };
        struct symbol_table table = { 0 };
        struct error err;
        enum status st;

        st = worker_confine(WORKER_NEEDS_DESCRIPTORS, &err);
        if (!st)
                st = symbol_table_extract(&in, &table, &err);
        if (!st)
                st = symbol_table_write(&table, OUTPUT_FD, &err);
        symbol_table_deinit(&table);
        return st ? worker_fail(st, &err) : 0;
}
