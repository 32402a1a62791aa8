/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/symbolize_profile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/compress.h"
#include "common/file.h"
#include "common/limits.h"

static bool is_standard(const char *path)
{
        return !path || strcmp(path, "-") == 0;
}

static enum status read_input(const char *path, struct buf *ret, struct error *err)
{
        if (!is_standard(path))
                return file_read(path, ret, err);
        for (;;) {
                void *room = buf_reserve(ret, KiB(64));
                ssize_t n = room ? read(STDIN_FILENO, room, KiB(64)) : 0;

                if (!room)
                        return buf_status(ret, err, "standard input");
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return error_os(err, errno, "cannot read standard input");
                if (n == 0)
                        return ST_OK;
                buf_commit(ret, (size_t)n);
        }
}

static enum status read_unpacked(const char *path, struct buf *ret, struct error *err)
{
        _cleanup_buf_ struct buf raw;
        enum status st;

        buf_init(&raw, GiB(1));
        st = read_input(path, &raw, err);
        if (st)
                return st;
        if (gzip_detect(raw.data, raw.size))
                return gzip_unpack(raw.data, raw.size, ret, err);
        if (zstd_detect(raw.data, raw.size))
                return zstd_unpack(raw.data, raw.size, ret, err);
        buf_append(ret, raw.data, raw.size);
        return buf_status(ret, err, is_standard(path) ? "standard input" : path);
}

/* A file appears whole or not at all; reading and writing the same one is fine. */
static enum status write_output(const char *path, const struct buf *b, struct error *err)
{
        if (!is_standard(path))
                return file_write_durable(path, b->data, b->size, err);
        return file_write_all(STDOUT_FILENO, b->data, b->size, "standard output", err);
}

enum status symbolize_profile(const struct symbolize_profile *o, struct error *err)
{
        const char *input = o->pprof ? o->pprof : o->perf_script ? o->perf_script : o->folded;
        struct object_finder *finder = NULL;
        _cleanup_buf_ struct buf in, out;
        enum status st;

        buf_init(&in, GiB(1));
        buf_init(&out, GiB(2));
        if (o->pprof && is_standard(o->output) && isatty(STDOUT_FILENO))
                return error_set(err, ST_USAGE, "pprof is binary: give -o FILE");
        st = read_unpacked(input, &in, err);
        if (!st)
                st = object_finder_create(&o->objects, &finder, err);
        if (st)
                return st;
        if (o->pprof)
                st = symbolize_pprof(o, finder, &in, &out, err);
        else if (o->perf_script)
                st = symbolize_perf(o, finder, &in, &out, err);
        else
                st = symbolize_folded(o, finder, &in, &out, err);
        object_finder_destroy(finder);
        if (st)
                return error_prefix(err, st, "%s", is_standard(input) ? "standard input" : input);
        return write_output(o->output, &out, err);
}
