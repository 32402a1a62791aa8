/* SPDX-License-Identifier: Apache-2.0 */
#include "server/symbolicate_answer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/json_out.h"
#include "common/limits.h"
#include "server/symbolicate_start.h"

#define PIECE_BYTES MiB(1)
#define SLICE 8192       /* frames looked up at a time */
#define ALIKE_MAX 16     /* objects that share the sixteen bytes which a debug id keeps */

struct stream {
        struct symbol_index *index;
        struct text_cache *texts;
        struct symbolicate_request request;
        size_t frame, stack, job;       /* what comes next */
        bool began, in_job, in_stack;
        /* of the slice that begins at slice_begin */
        size_t slice_begin, slice_count;
        struct symbol_key *keys;
        uint32_t *key_of;               /* of each frame; UINT32_MAX none */
        uint64_t *starts;               /* of each key's function */
        struct symbol_batch batch;
};

static void stream_close(void *state)
{
        struct stream *s = state;

        symbolicate_request_deinit(&s->request);
        symbol_batch_deinit(&s->batch);
        free(s->keys);
        free(s->key_of);
        free(s->starts);
        free(s);
}

/* ---- from debug ids to objects */

/* Of objects that share the id the one that has symbols, and of those the newest. */
static enum status choose(struct symbol_view *view, const struct build_id *ids, size_t count,
                          struct symbolicate_module *m, struct error *err)
{
        int64_t newest = INT64_MIN;

        for (size_t i = 0; i < count; i++) {
                struct symbol_object o;
                enum status st = symbol_view_object(view, &ids[i], &o, err);

                if (st == ST_BAD_DATA)
                        continue;
                if (st)
                        return st;
                if (!o.generation || o.indexed_unix_s < newest)
                        continue;
                newest = o.indexed_unix_s;
                m->build_id = ids[i];
                m->image_base = o.image_base;
        }
        return ST_OK;
}

/* A build-id shorter than a debug id was filled up with zeros. */
static enum status find_module(struct symbol_view *view, struct symbolicate_module *m, struct error *err)
{
        struct build_id ids[ALIKE_MAX];
        size_t n = DEBUG_ID_GUID_BYTES, count;
        enum status st = symbol_view_find(view, m->guid, n, ids, ALIKE_MAX, &count, err);

        while (!st && count == 0 && --n > 0 && m->guid[n] == 0) {
                st = symbol_view_find(view, m->guid, n, ids, 1, &count, err);
                count = count && ids[0].size == n;
        }
        return st ? st : choose(view, ids, count, m, err);
}

static enum status find_modules(struct stream *s, struct error *err)
{
        struct symbol_view *view;
        enum status st = symbol_view_begin(s->index, &view, err);

        if (st)
                return st;
        for (size_t i = 0; !st && i < s->request.module_count; i++)
                if (s->request.modules[i].is_valid)
                        st = find_module(view, &s->request.modules[i], err);
        symbol_view_end(view);
        return st;
}

/* ---- writing */

static enum status look_up(struct stream *s, struct symbol_view *view, struct error *err)
{
        size_t left = s->request.frame_count - s->frame, count = left < SLICE ? left : SLICE;
        uint32_t key_count = 0;
        enum status st;

        for (size_t i = 0; i < count; i++) {
                const struct symbolicate_frame *f = &s->request.frames[s->frame + i];
                const struct symbolicate_module *m = f->module == UINT32_MAX ? NULL : &s->request.modules[f->module];

                s->key_of[i] = UINT32_MAX;
                if (!m || !m->build_id.size)
                        continue;
                s->keys[key_count] = (struct symbol_key){ .build_id = &m->build_id, .address = m->image_base + f->offset };
                s->key_of[i] = key_count++;
        }
        s->slice_begin = s->frame;
        s->slice_count = count;
        st = symbol_view_lookup(view, s->keys, key_count, &s->batch, err);
        return st ? st : function_starts(view, s->keys, &s->batch, s->starts, err);
}

/* "function", "file" and "line" as far as they are known, a comma before each; before the first only if `comma`. */
static enum status put_place(struct text_reader *texts, const struct symbol_frame *f, bool comma, struct buf *to,
                             struct error *err)
{
        const struct rendered *function, *file;
        enum status st = text_reader_function(texts, f->function, &function, err);
        struct json_out j = { .buf = to, .comma = comma };

        if (!st)
                st = text_reader_file(texts, f->file, &file, err);
        if (st)
                return st;
        if (function->name_size)
                json_out_strn(&j, "function", function->name, function->name_size);
        if (file->name_size)
                json_out_strn(&j, "file", file->name, file->name_size);
        if (f->line)
                json_out_uint(&j, "line", f->line);
        return ST_OK;
}

static enum status put_symbols(struct stream *s, struct text_reader *texts, uint32_t key, struct buf *to, struct error *err)
{
        const struct symbol_result *r = &s->batch.results[key];
        const struct symbol_frame *frames = s->batch.frames + r->first_frame;
        enum status st;

        if (!r->frame_count)
                return ST_OK;
        st = put_place(texts, &frames[r->frame_count - 1], true, to, err);
        if (frames[r->frame_count - 1].function)
                buf_printf(to, ",\"function_offset\":\"0x%" PRIx64 "\"", r->address - s->starts[key]);
        if (st || r->frame_count == 1)
                return st;
        buf_append_str(to, ",\"inlines\":[");
        for (uint32_t i = 0; !st && i + 1 < r->frame_count; i++) {
                buf_append_str(to, i ? ",{" : "{");
                st = put_place(texts, &frames[i], false, to, err);
                buf_append_u8(to, '}');
        }
        buf_append_u8(to, ']');
        return st;
}

static enum status put_frame(struct stream *s, struct text_reader *texts, struct buf *to, struct error *err)
{
        size_t first = s->stack ? s->request.stack_ends[s->stack - 1] : 0;
        const struct symbolicate_frame *f = &s->request.frames[s->frame];
        uint32_t key = s->key_of[s->frame - s->slice_begin];
        enum status st = ST_OK;

        buf_printf(to, "%s{\"frame\":%zu,\"module\":\"%s\",\"module_offset\":\"0x%" PRIx64 "\"", s->frame > first ? "," : "",
                   s->frame - first, f->module == UINT32_MAX ? "<unknown>" : s->request.modules[f->module].name, f->offset);
        if (key != UINT32_MAX)
                st = put_symbols(s, texts, key, to, err);
        buf_append_u8(to, '}');
        s->frame++;
        return st;
}

static void end_job(struct stream *s, struct buf *to)
{
        size_t first = s->job ? s->request.jobs[s->job - 1].modules_end : 0;

        buf_append_str(to, "],\"found_modules\":{");
        for (size_t i = first; i < s->request.jobs[s->job].modules_end; i++) {
                const struct symbolicate_module *m = &s->request.modules[i];

                buf_printf(to, "%s\"%s/%s\":%s", i > first ? "," : "", m->name, m->debug_id,
                           m->build_id.size ? "true" : "false");
        }
        buf_append_str(to, "}}");
        s->job++;
        s->in_job = false;
}

/* One bracket or frame further. */
static enum status step(struct stream *s, struct symbol_view *view, struct text_reader *texts, struct buf *to,
                        struct error *err)
{
        const struct symbolicate_job *job = &s->request.jobs[s->job];
        size_t first_stack = s->job ? job[-1].stacks_end : 0;
        enum status st = ST_OK;

        if (!s->in_job) {
                buf_append_str(to, s->job ? ",{\"stacks\":[" : "{\"stacks\":[");
                s->in_job = true;
        } else if (s->in_stack && s->frame == s->request.stack_ends[s->stack]) {
                buf_append_u8(to, ']');
                s->in_stack = false;
                s->stack++;
        } else if (s->in_stack) {
                if (s->frame >= s->slice_begin + s->slice_count)
                        st = look_up(s, view, err);
                if (!st)
                        st = put_frame(s, texts, to, err);
        } else if (s->stack < job->stacks_end) {
                buf_append_str(to, s->stack > first_stack ? ",[" : "[");
                s->in_stack = true;
        } else {
                end_job(s, to);
        }
        return st;
}

static enum status make_piece(void *state, struct buf *to, bool *end, struct error *err)
{
        struct stream *s = state;
        struct text_reader *texts = NULL;
        struct symbol_view *view;
        enum status st = symbol_view_begin(s->index, &view, err);

        if (st)
                return st;
        st = text_reader_open(s->texts, view, &texts, err);
        if (!s->began)
                buf_append_str(to, "{\"results\":[");
        s->began = true;
        while (!st && s->job < s->request.job_count && to->size < PIECE_BYTES && !to->failed)
                st = step(s, view, texts, to, err);
        text_reader_close(texts);
        symbol_view_end(view);
        *end = s->job == s->request.job_count;
        if (*end)
                buf_append_str(to, "]}\n");
        return st;
}

static enum status stream_create(struct http_request *req, struct symbol_index *index, struct text_cache *texts,
                                 struct symbolicate_request *request, struct stream **ret, struct error *err)
{
        struct stream *s = calloc(1, sizeof *s);
        enum status st;

        if (!s) {
                symbolicate_request_deinit(request);
                return error_no_memory(err);
        }
        *s = (struct stream){ .index = index, .texts = texts, .request = *request };
        *request = (struct symbolicate_request){ 0 };
        s->keys = calloc(SLICE, sizeof *s->keys);
        s->key_of = calloc(SLICE, sizeof *s->key_of);
        s->starts = calloc(SLICE, sizeof *s->starts);
        st = s->keys && s->key_of && s->starts ? ST_OK : error_no_memory(err);
        if (!st)
                st = http_hold(req, s->request.frame_count * sizeof *s->request.frames +
                                            s->request.stack_count * sizeof *s->request.stack_ends +
                                            s->request.module_count * sizeof *s->request.modules + s->request.arena.used, err);
        if (!st)
                st = find_modules(s, err);
        if (st)
                stream_close(s);
        else
                *ret = s;
        return st;
}

void symbolicate_answer(struct http_request *req, struct symbol_index *index, struct text_cache *texts,
                        struct symbolicate_request *request)
{
        struct stream *s = NULL;
        struct error err;
        enum status st = stream_create(req, index, texts, request, &s, &err);

        if (st)
                http_fail(req, st, &err);
        else
                http_respond_pieces(req, "application/json", LIMIT_SYMBOLIZE_PIECE_BYTES, make_piece, stream_close, s);
}
