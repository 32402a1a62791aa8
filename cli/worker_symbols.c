/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `cairn worker symbols NAME FORM`: from ELF files to a symbol table file, or
 * with FORM "book" to a symbol book.
 *
 * Descriptors: 3 debuginfo, 4 executable, 5 dwz supplementary file, 6 where the
 * result goes, 7 package of split DWARF, 8 a socket on which to ask for its
 * single files, 9 the wanted addresses (closed: all), as
 * symbolizer/extract_worker.c writes them. Each but 6 may be closed. NAME is for
 * messages.
 */
#include <fcntl.h>
#include <string.h>

#include "cli/command.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/limits.h"
#include "sandbox/worker.h"
#include "symbolizer/extract.h"
#include "symbolizer/extract_ask.h"
#include "symbolizer/symbol_book.h"

enum { DEBUGINFO_FD = 3, EXECUTABLE_FD, ALTLINK_FD, OUTPUT_FD, DWP_FD, ASK_FD, WANTED_FD };

static int open_or_none(int fd)
{
        return fcntl(fd, F_GETFD) < 0 ? -1 : fd;
}

/* @param map_ret keeps the addresses. @return whether there are wanted ones. */
static bool read_wanted(struct file_map *map_ret, struct wanted *ret)
{
        const uint64_t *words;

        if (open_or_none(WANTED_FD) < 0 || file_map_fd(WANTED_FD, MiB(64), "wanted", map_ret, NULL) ||
            map_ret->size < sizeof *words)
                return false;
        words = map_ret->data;
        *ret = (struct wanted){ .max_percent = (unsigned)words[0], .addresses = words + 1,
                                .count = map_ret->size / sizeof *words - 1 };
        return true;
}

static enum status extract(struct extract_inputs *in, bool as_book, struct error *err)
{
        struct symbol_table table = { 0 };
        enum status st = symbol_table_extract(in, &table, err);

        if (!st)
                st = as_book ? symbol_book_write(&table, OUTPUT_FD, err) : symbol_table_write(&table, OUTPUT_FD, err);
        symbol_table_deinit(&table);
        return st;
}

int worker_symbols(int argc, char **argv)
{
        struct dwo_asker asker = { .socket = open_or_none(ASK_FD), .lock = PTHREAD_MUTEX_INITIALIZER };
        struct extract_inputs in = {
                .debuginfo_fd = open_or_none(DEBUGINFO_FD),
                .executable_fd = open_or_none(EXECUTABLE_FD),
                .altlink_fd = open_or_none(ALTLINK_FD),
                .dwp_fd = open_or_none(DWP_FD),
                .dwo = { .open = asker.socket >= 0 ? dwo_ask : NULL, .context = &asker },
                .name = argc > 1 ? argv[1] : "object",
        };
        _cleanup_file_map_ struct file_map map = { 0 };
        struct wanted wanted;
        struct error err;
        enum status st;

        st = worker_confine(WORKER_NEEDS_DESCRIPTORS, &err);
        if (!st && read_wanted(&map, &wanted))
                in.wanted = &wanted;
        if (!st)
                st = extract(&in, argc > 2 && strcmp(argv[2], "book") == 0, &err);
        return st ? worker_fail(st, &err) : 0;
}
