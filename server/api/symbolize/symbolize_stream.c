/* SPDX-License-Identifier: Apache-2.0 */
#include "server/api/symbolize/symbolize_stream.h"

#include <stdlib.h>

#include "common/limits.h"
#include "common/program/log.h"

#define SLICE_FIRST 4096 /* keys looked up for the first piece; later the number that fit into the previous piece */
#define SLICE_LEAST 1024
#define SLICE_MOST 65536

struct symbolize_stream {
        struct symbol_index *index;
        struct text_cache *texts;
        struct symbolize_request request;
        struct symbolize_writer *writer;
        struct symbol_batch batch;
        struct symbol_key *keys; /* of one slice */
        size_t slice;            /* number of keys to look up for the next piece */
        size_t object, next;     /* object and address at which it begins */
        const atomic_bool *cancel;
        bool began;
};

static void symbolize_stream_close(void *state)
{
        struct symbolize_stream *s = state;

        symbolize_request_deinit(&s->request);
        if (s->writer)
                s->writer->destroy(s->writer);
        symbol_batch_deinit(&s->batch);
        free(s->keys);
        free(s);
}

static size_t fill_keys(struct symbolize_stream *s)
{
        const struct symbolize_object *o = &s->request.objects[s->object];
        size_t left = s->request.address_count - s->next;
        size_t count = left < s->slice ? left : s->slice;

        for (size_t i = 0; i < count; i++) {
                while (s->next + i == o->end)
                        o++;
                s->keys[i] = (struct symbol_key){ .build_id = &o->id,
                                                  .address = s->request.addresses[s->next + i],
                                                  .is_file_offset = o->file_offsets };
        }
        return count;
}

/* Write the object at s->object, from address s->next to the end of the object or of the slice [begin, end). */
static enum status write_object(struct symbolize_stream *s, struct symbol_view *view, struct text_reader *texts,
                                size_t begin, size_t end, struct buf *to, struct error *err)
{
        const struct symbolize_object *o = &s->request.objects[s->object];
        size_t stop = o->end < end ? o->end : end, done = 0;
        bool first = s->next == (s->object ? o[-1].end : 0);
        struct symbol_object known;
        enum status st = symbol_view_get_object(view, &o->id, &known, err);

        if (st == ST_BAD_DATA) { /* damaged index, as in the results of its addresses */
                known = (struct symbol_object){ .state = OBJECT_FAILED };
                st = ST_OK;
        }
        if (st)
                return st;
        s->writer->object_begin(s->writer, s->object, o, &known, first, to);
        if (s->next < stop) {
                struct symbolize_run run = { s->request.addresses + s->next, s->batch.results + (s->next - begin),
                                             s->batch.frames, stop - s->next };

                st = s->writer->results(s->writer, texts, &run, to, &done, err);
                s->next += done;
        }
        s->writer->object_end(s->writer, s->next == o->end, to);
        if (s->next == o->end)
                s->object++;
        return st;
}

static enum status write_slice(struct symbolize_stream *s, struct symbol_view *view, struct text_reader *texts,
                               struct buf *to, struct error *err)
{
        size_t begin = s->next, count = fill_keys(s), end = begin + count, written;
        enum status st = symbol_view_lookup(view, s->keys, count, &s->batch, err);

        if (!st && s->batch.damaged_count)
                log_error("index", "%zu lookups found damage in the symbol index", s->batch.damaged_count);
        while (!st && s->object < s->request.object_count && to->size < SYMBOLIZE_PIECE_BYTES) {
                bool empty = s->request.objects[s->object].end == s->next;

                if (s->next == end && !empty)
                        break;
                st = write_object(s, view, texts, begin, end, to, err);
        }
        written = s->next - begin;
        s->slice = written + written / 8 < SLICE_LEAST ? SLICE_LEAST : written + written / 8;
        if (written == count && s->slice < 2 * count)
                s->slice = 2 * count;
        if (s->slice > SLICE_MOST)
                s->slice = SLICE_MOST;
        return st;
}

static enum status make_symbolize_piece(void *state, struct buf *to, bool *end, struct error *err)
{
        struct symbolize_stream *s = state;
        struct text_reader *texts = NULL;
        struct symbol_view *view;
        enum status st = symbol_view_begin(s->index, &view, err);

        if (st)
                return st;
        if (!s->began)
                s->writer->begin(s->writer, to);
        s->began = true;
        if (s->object < s->request.object_count)
                st = text_reader_open(s->texts, view, &texts, err);
        while (!st && s->object < s->request.object_count && to->size < SYMBOLIZE_PIECE_BYTES)
                st = atomic_load(s->cancel) ? error_set(err, ST_BUSY, "the request was cancelled")
                                            : write_slice(s, view, texts, to, err);
        text_reader_close(texts);
        symbol_view_end(view);
        *end = s->object == s->request.object_count;
        if (!st && *end)
                s->writer->end(s->writer, to);
        return st;
}

static enum status symbolize_stream_create(struct http_request *req, struct symbol_index *index,
                                           struct text_cache *texts, struct symbolize_request *request,
                                           struct symbolize_writer *writer, struct symbolize_stream **ret,
                                           struct error *err)
{
        size_t kept = writer ? writer->kept_bytes + 2 * SYMBOLIZE_PIECE_BYTES : 0;
        size_t at_most = 64 * request->address_count; /* a small request needs only a part of `kept` */
        struct symbolize_stream *s = calloc(1, sizeof *s);
        enum status st;

        if (!s) {
                if (writer)
                        writer->destroy(writer);
                symbolize_request_deinit(request);
                return error_no_memory(err);
        }
        *s = (struct symbolize_stream){ .index = index,
                                        .texts = texts,
                                        .request = *request,
                                        .writer = writer,
                                        .slice = SLICE_FIRST,
                                        .cancel = http_request_cancelled(req) };
        *request = (struct symbolize_request){ 0 };
        s->keys = calloc(s->request.address_count < SLICE_MOST ? s->request.address_count + 1 : SLICE_MOST,
                         sizeof *s->keys);
        st = s->keys && writer ? deadline_check(http_request_deadline(req), err) : error_no_memory(err);
        if (!st)
                st = http_reserve_memory(
                        req, s->request.address_count * sizeof(uint64_t) + (kept < at_most ? kept : at_most), err);
        if (st)
                symbolize_stream_close(s);
        else
                *ret = s;
        return st;
}

void answer_symbolize(struct http_request *req, struct symbol_index *index, struct text_cache *texts,
                      struct symbolize_request *request, struct symbolize_writer *writer)
{
        struct symbolize_stream *s = NULL;
        struct error err;
        enum status st = symbolize_stream_create(req, index, texts, request, writer, &s, &err);

        if (st)
                http_fail(req, st, &err);
        else
                http_respond_pieces(req, s->writer->content_type, LIMIT_SYMBOLIZE_PIECE_BYTES, make_symbolize_piece,
                                    symbolize_stream_close, s);
}
