/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `cairn worker symbols NAME`: from ELF files to a symbol table file.
 *
 * Descriptors: 3 debuginfo, 4 executable, 5 dwz supplementary file (each may be
 * closed), 6 where the symbol table file goes. NAME is for messages.
 */
#include <fcntl.h>

#include "cli/command.h"
#include "sandbox/worker.h"
#include "symbolizer/extract.h"

enum { DEBUGINFO_FD = 3, EXECUTABLE_FD, ALTLINK_FD, OUTPUT_FD };

static int open_or_none(int fd)
{
        return fcntl(fd, F_GETFD) < 0 ? -1 : fd;
}

int worker_symbols(int argc, char **argv)
{
        const struct extract_inputs in = {
                .debuginfo_fd = open_or_none(DEBUGINFO_FD),
                .executable_fd = open_or_none(EXECUTABLE_FD),
                .altlink_fd = open_or_none(ALTLINK_FD),
                .name = argc > 1 ? argv[1] : "object",
        };
        struct symbol_table table = { 0 };
        struct error err;
        enum status st;

        st = worker_confine(WORKER_NEEDS_NOTHING, &err);
        if (!st)
                st = symbol_table_extract(&in, &table, &err);
        if (!st)
                st = symbol_table_write(&table, OUTPUT_FD, &err);
        symbol_table_deinit(&table);
        return st ? worker_fail(st, &err) : 0;
}
