/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/workers/extract_job.h"

#include <fcntl.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/files/file.h"
#include "common/limits.h"
#include "common/text.h"
#include "sandbox/worker.h"
#include "symbolizer/extraction/extract.h"
#include "symbolizer/extraction/extract_source.h"
#include "symbolizer/extraction/extract_variables.h"
#include "symbolizer/formats/portable_symbols.h"
#include "symbolizer/formats/symcache.h"
#include "symbolizer/workers/dwo_request.h"

enum { DEBUGINFO_FD = 3, EXECUTABLE_FD, ALTLINK_FD, OUTPUT_FD, DWP_FD, ASK_FD, ADDRESS_FILTER_FD };

static int get_open_fd(int fd)
{
        return fcntl(fd, F_GETFD) < 0 ? -1 : fd;
}

/* @param map_ret holds the addresses. @return false without a filter. */
static bool read_address_filter(struct file_map *map_ret, struct address_filter *ret)
{
        const uint64_t *words;

        if (get_open_fd(ADDRESS_FILTER_FD) < 0 ||
            file_map_fd(ADDRESS_FILTER_FD, MiB(64), "address filter", map_ret, NULL) || map_ret->size < sizeof *words)
                return false;
        words = map_ret->data;
        *ret = (struct address_filter){ .max_percent = (unsigned)words[0],
                                        .addresses = words + 1,
                                        .count = map_ret->size / sizeof *words - 1 };
        return true;
}

/* A symbol file contains the finished table. */
static enum status make_symbol_table(const struct extract_inputs *in, struct symbol_table *ret, struct error *err)
{
        char head[8];
        ssize_t n = in->debuginfo_fd < 0 ? 0 : pread(in->debuginfo_fd, head, sizeof head, 0);

        if (n > 0 && portable_symbols_has_magic(head, (size_t)n))
                return portable_symbols_read(in->debuginfo_fd, in->name, ret, NULL, err);
        return symbol_table_extract(in, ret, err);
}

static enum status write_result(const struct extract_inputs *in, bool as_book, struct error *err)
{
        struct symbol_table table = { 0 };
        enum status st = make_symbol_table(in, &table, err);

        if (!st)
                st = as_book ? symcache_write(&table, OUTPUT_FD, err) : symbol_table_write(&table, OUTPUT_FD, err);
        symbol_table_deinit(&table);
        return st;
}

static enum status write_variables(const struct extract_inputs *in, struct error *err)
{
        _cleanup_buf_ struct buf report;
        enum status st;

        buf_init(&report, LIMIT_STACK_VARIABLES_BYTES);
        st = extract_variables(in, &report, err);
        return st ? st : file_write_all(OUTPUT_FD, report.data, report.size, "variables", err);
}

static enum status write_source(const struct extract_inputs *in, const char *path, struct error *err)
{
        _cleanup_buf_ struct buf report;
        enum status st;

        buf_init(&report, LIMIT_SOURCE_FILE_BYTES + 1);
        st = extract_source_text(in, path, &report, err);
        return st ? st : file_write_all(OUTPUT_FD, report.data, report.size, "source file", err);
}

enum status extract_run_job(int argc, char **argv, struct error *err)
{
        const char *form = argc > 2 ? argv[2] : "table";
        const bool is_relative = starts_with(form, "relative-");
        struct dwo_requester asker = { .socket = get_open_fd(ASK_FD), .lock = PTHREAD_MUTEX_INITIALIZER };
        struct extract_inputs in = {
                .debuginfo_fd = get_open_fd(DEBUGINFO_FD),
                .executable_fd = get_open_fd(EXECUTABLE_FD),
                .altlink_fd = get_open_fd(ALTLINK_FD),
                .dwp_fd = get_open_fd(DWP_FD),
                .dwo = { .open = asker.socket >= 0 ? dwo_request_send : NULL, .context = &asker },
                .name = argc > 1 ? argv[1] : "object",
                .file_name = argc > 3 && *argv[3] ? argv[3] : NULL,
                .has_relative_paths = is_relative,
                .with_positions = strcmp(form, "relative-symcache") == 0 || strcmp(form, "detailed-symcache") == 0,
        };
        _cleanup_file_map_ struct file_map map = { 0 };
        struct address_filter filter;
        enum status st = worker_confine(WORKER_NEEDS_DESCRIPTORS, err);

        if (!st && read_address_filter(&map, &filter))
                in.filter = &filter;
        if (!st && in.filter && strcmp(form, "variables") == 0)
                return write_variables(&in, err);
        if (!st && in.filter && argc > 4 && (strcmp(form, "source") == 0 || strcmp(form, "relative-source") == 0))
                return write_source(&in, argv[4], err);
        return st ? st : write_result(&in, in.with_positions || strcmp(form, "symcache") == 0, err);
}
