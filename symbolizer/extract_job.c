/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/extract_job.h"

#include <fcntl.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/file.h"
#include "common/limits.h"
#include "sandbox/worker.h"
#include "symbolizer/extract.h"
#include "symbolizer/extract_ask.h"
#include "symbolizer/symbol_book.h"
#include "symbolizer/symbol_file.h"

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

/* A symbol file is extracted already. */
static enum status make_table(const struct extract_inputs *in, struct symbol_table *ret, struct error *err)
{
        char head[8];
        ssize_t n = in->debuginfo_fd < 0 ? 0 : pread(in->debuginfo_fd, head, sizeof head, 0);

        if (n > 0 && symbol_file_magic(head, (size_t)n))
                return symbol_file_read(in->debuginfo_fd, in->name, ret, NULL, err);
        return symbol_table_extract(in, ret, err);
}

static enum status extract(const struct extract_inputs *in, bool as_book, struct error *err)
{
        struct symbol_table table = { 0 };
        enum status st = make_table(in, &table, err);

        if (!st)
                st = as_book ? symbol_book_write(&table, OUTPUT_FD, err) : symbol_table_write(&table, OUTPUT_FD, err);
        symbol_table_deinit(&table);
        return st;
}

enum status extract_job(int argc, char **argv, struct error *err)
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
        enum status st = worker_confine(WORKER_NEEDS_DESCRIPTORS, err);

        if (!st && read_wanted(&map, &wanted))
                in.wanted = &wanted;
        return st ? st : extract(&in, argc > 2 && strcmp(argv[2], "book") == 0, err);
}
