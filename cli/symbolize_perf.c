/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of perf script with its frames named. The decoder tells where each frame stands; what is between them, and
 * frames that nothing new is known of, are copied as they are.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/profile_symbols.h"
#include "cli/symbolize_profile.h"
#include "common/array.h"
#include "profile-formats/folded.h"
#include "profile-formats/perf_script.h"

struct frame_text {
        const char *at;
        size_t n;
        uint32_t location;
};

struct frame_list {
        struct frame_text *items;
        size_t count, capacity;
};

static enum status add_frame(void *context, const char *at, size_t n, uint32_t location, struct error *err)
{
        struct frame_list *l = context;

        if (!array_reserve(&l->items, &l->capacity, l->count))
                return error_no_memory(err);
        l->items[l->count++] = (struct frame_text){ at, n, location };
        return ST_OK;
}

/* "(FILE)" at the end of a frame; n when it has none. */
static size_t file_start(const struct frame_text *f)
{
        for (size_t i = f->n; f->n && f->at[f->n - 1] == ')' && i-- > 1;)
                if (f->at[i] == '(' && f->at[i - 1] == ' ')
                        return i;
        return f->n;
}

/* The blanks that a line of a frame begins with; a frame on its header's line has none. */
static size_t indent_of(const char *line, const char *at)
{
        for (const char *c = line; c < at; c++)
                if (*c != ' ' && *c != '\t')
                        return 0;
        return (size_t)(at - line);
}

static void put_name(const struct profile *p, const struct profile_line *line, struct buf *ret)
{
        buf_append_str(ret, line->function ? profile_text(p, line->function) : "[unknown]");
}

/* Inlined calls as perf writes them: lines of their own before the function, with its address. */
static void put_frame(const struct profile *p, const struct frame_text *f, const char *line_start, struct buf *ret)
{
        const struct profile_location *l = &p->locations.items[f->location];
        const char *blank = memchr(f->at, ' ', f->n);
        size_t address_size = blank ? (size_t)(blank - f->at) : f->n, file = file_start(f);
        size_t indent = indent_of(line_start, f->at);

        for (uint32_t i = 0; i < l->line_count; i++) {
                bool is_last = i + 1 == l->line_count;

                buf_append(ret, f->at, address_size);
                buf_append_u8(ret, ' ');
                put_name(p, &p->lines.items[l->first_line + i], ret);
                if (!is_last) {
                        buf_append_str(ret, " (inlined)\n");
                        buf_append(ret, indent ? line_start : "\t", indent ? indent : 1);
                } else if (file < f->n) {
                        buf_append_u8(ret, ' ');
                        buf_append(ret, f->at + file, f->n - file);
                }
        }
}

static const char *line_start(const char *begin, const char *at)
{
        const char *newline = at > begin ? memrchr(begin, '\n', (size_t)(at - begin)) : NULL;

        return newline ? newline + 1 : begin;
}

/* perf's own inlined frames before one that is named anew go with it. */
static void put_text(const struct profile *p, const bool *changed, const struct frame_list *frames, const struct buf *in,
                     struct buf *ret)
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
                put_frame(p, f, line_start(begin, f->at), ret);
                from = f->at + f->n;
        }
        buf_append(ret, from, (size_t)(begin + in->size - from));
}

enum status symbolize_perf(const struct symbolize_profile *o, struct object_finder *finder, const struct buf *in,
                           struct buf *ret, struct error *err)
{
        struct profile_symbols symbols = { .force = o->force, .verbose = o->verbose };
        struct frame_list frames = { 0 };
        const struct perf_script_observer observer = { .context = &frames, .frame = add_frame };
        struct profile p;
        enum status st = perf_script_decode_observed(in->data, in->size, 0, &observer, &p, err);

        if (!st) {
                st = profile_symbols_fill(&symbols, &p, finder, err);
                if (!st && o->fold)
                        st = folded_encode(&p, "comm", ret, err);
                else if (!st)
                        put_text(&p, symbols.changed, &frames, in, ret);
                profile_symbols_deinit(&symbols);
                profile_deinit(&p);
        }
        free(frames.items);
        return st ? st : buf_status(ret, err, "perf script output");
}
