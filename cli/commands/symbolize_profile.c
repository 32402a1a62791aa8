/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands/symbolize_profile.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands/profile_input.h"
#include "cli/symbols/profile_symbols.h"
#include "common/cleanup.h"
#include "common/compress/compress.h"
#include "common/files/file.h"
#include "common/files/output_file.h"
#include "common/limits.h"
#include "common/memory/array.h"
#include "profile-formats/folded.h"
#include "profile-formats/perf_script.h"
#include "profile-formats/pprof/pprof.h"
#include "profile-formats/pprof/pprof_symbols.h"

/* ---- pprof ---- */

#define GZIP_LEVEL 6

static enum status symbolize_pprof(const struct symbolize_profile *o, struct object_finder *finder,
                                   const struct buf *in, struct buf *ret, struct error *err)
{
        struct profile_symbols symbols = { .force = o->force, .verbose = o->verbose };
        _cleanup_buf_ struct buf plain = { 0 };
        struct profile p;
        enum status st = pprof_decode(in->data, in->size, NULL, &p, err);

        if (st)
                return st;
        buf_init(&plain, GiB(1));
        st = profile_symbols_fill(&symbols, &p, finder, err);
        if (!st)
                st = pprof_put_symbols(in->data, in->size, &p, symbols.changed, &plain, err);
        if (!st)
                st = gzip_compress(plain.data, plain.size, GZIP_LEVEL, ret, err);
        profile_symbols_deinit(&symbols);
        profile_deinit(&p);
        return st;
}

/* ---- perf script ---- */

struct frame_text {
        const char *at;
        size_t n;
        uint32_t location;
};

struct frame_list {
        struct frame_text *items;
        size_t count, capacity;
};

static enum status add_frame_text(void *context, const char *at, size_t n, uint32_t location, struct error *err)
{
        struct frame_list *l = context;

        if (!array_reserve(&l->items, &l->capacity, l->count))
                return error_no_memory(err);
        l->items[l->count++] = (struct frame_text){ at, n, location };
        return ST_OK;
}

/* Indentation of a frame's line; 0 for a frame on its header's line. */
static size_t measure_indent(const char *line, const char *at)
{
        for (const char *c = line; c < at; c++)
                if (*c != ' ' && *c != '\t')
                        return 0;
        return (size_t)(at - line);
}

static void append_perf_name(const struct profile *p, const struct profile_line *line, struct buf *ret)
{
        buf_append_str(ret, line->function ? profile_text(p, line->function) : "[unknown]");
}

/* Inlined calls in perf's layout: one line each before the function, with its address. */
static void append_perf_frame(const struct profile *p, const struct frame_text *f, const char *find_line_start,
                              struct buf *ret)
{
        const struct profile_location *l = &p->locations.items[f->location];
        const char *blank = memchr(f->at, ' ', f->n);
        size_t address_size = blank ? (size_t)(blank - f->at) : f->n, file = perf_script_find_file(f->at, f->n);
        size_t indent = measure_indent(find_line_start, f->at);

        for (uint32_t i = 0; i < l->line_count; i++) {
                bool is_last = i + 1 == l->line_count;

                buf_append(ret, f->at, address_size);
                buf_append_u8(ret, ' ');
                append_perf_name(p, &p->lines.items[l->first_line + i], ret);
                if (!is_last) {
                        buf_append_str(ret, " (inlined)\n");
                        buf_append(ret, indent ? find_line_start : "\t", indent ? indent : 1);
                } else if (file < f->n) {
                        buf_append_u8(ret, ' ');
                        buf_append(ret, f->at + file, f->n - file);
                }
        }
}

static const char *find_line_start(const char *begin, const char *at)
{
        const char *newline = at > begin ? memrchr(begin, '\n', (size_t)(at - begin)) : NULL;

        return newline ? newline + 1 : begin;
}

/* Inlined frames from perf that precede a resolved frame are replaced with it. */
static void append_perf_text(const struct profile *p, const bool *changed, const struct frame_list *frames,
                             const struct buf *in, struct buf *ret)
{
        const char *begin = in->size ? (const char *)in->data : "", *from = begin;

        for (size_t i = 0, first = 0; i < frames->count; first = ++i) {
                const struct frame_text *f;

                while (i + 1 < frames->count && frames->items[i].location == PROFILE_NONE)
                        i++;
                f = &frames->items[i];
                if (f->location == PROFILE_NONE || !changed[f->location])
                        continue;
                buf_append(ret, from, (size_t)(frames->items[first].at - from));
                append_perf_frame(p, f, find_line_start(begin, f->at), ret);
                from = f->at + f->n;
        }
        buf_append(ret, from, (size_t)(begin + in->size - from));
}

static enum status symbolize_perf(const struct symbolize_profile *o, struct object_finder *finder, const struct buf *in,
                                  struct buf *ret, struct error *err)
{
        struct profile_symbols symbols = { .force = o->force, .verbose = o->verbose };
        struct frame_list frames = { 0 };
        const struct perf_script_observer observer = { .context = &frames, .frame = add_frame_text };
        struct profile p;
        enum status st = perf_script_decode_observed(in->data, in->size, 0, &observer, &p, err);

        if (!st) {
                st = profile_symbols_fill(&symbols, &p, finder, err);
                if (!st && o->fold)
                        st = folded_encode(&p, NULL, "comm", ret, err);
                else if (!st)
                        append_perf_text(&p, symbols.changed, &frames, in, ret);
                profile_symbols_deinit(&symbols);
                profile_deinit(&p);
        }
        free(frames.items);
        return st ? st : buf_status(ret, err, "perf script output");
}

/* ---- folded stacks ---- */

static enum status symbolize_folded(const struct symbolize_profile *o, struct object_finder *finder,
                                    const struct buf *in, struct buf *ret, struct error *err)
{
        struct profile_symbols symbols = { .force = o->force, .verbose = o->verbose };
        struct profile p;
        enum status st = folded_decode_addresses(in->data, in->size, NULL, &p, err);

        if (st)
                return st;
        st = profile_symbols_fill(&symbols, &p, finder, err);
        if (!st)
                st = folded_encode(&p, NULL, NULL, ret, err);
        profile_symbols_deinit(&symbols);
        profile_deinit(&p);
        return st;
}

/* ---- any of them ---- */

/* The file appears complete or not at all, so input and output may be the same file. */
static enum status write_symbolized_profile(const char *path, const struct buf *b, struct error *err)
{
        if (!path_is_standard(path))
                return output_file_write(path, OUTPUT_OF_COMMAND, b->data, b->size, err);
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
        return write_symbolized_profile(o->output, &out, err);
}
