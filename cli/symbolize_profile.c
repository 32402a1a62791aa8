/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/symbolize_profile.h"

#include <unistd.h>

#include "cli/unpacked_input.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/limits.h"

/* A file appears whole or not at all; reading and writing the same one is fine. */
static enum status write_output(const char *path, const struct buf *b, struct error *err)
{
        if (!path_is_standard(path))
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
        if (o->pprof && path_is_standard(o->output) && isatty(STDOUT_FILENO))
                return error_set(err, ST_USAGE, "pprof is binary: give -o FILE");
        st = unpacked_input_read(input, &in, err);
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
                return error_prefix(err, st, "%s", path_is_standard(input) ? "standard input" : input);
        return write_output(o->output, &out, err);
}
