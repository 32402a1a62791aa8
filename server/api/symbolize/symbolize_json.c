/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results as JSON (docs/formats/symbolize.md), written through pointers into reserved space. With a function call per
 * member, as in json_out.h, writing would take more time than the lookups.
 */
#include <stdlib.h>
#include <string.h>

#include "common/json/json_out.h"
#include "server/api/symbolize/symbolize_stream.h"

/* a result without its frames and state: address and member names */
#define RESULT_BYTES 128
#define FRAME_BYTES 64 /* a frame without its texts */

struct json_writer {
        struct symbolize_writer base; /* first */
        bool comma;                   /* needed before the next result */
};

static inline char *write_json_results(char *p, const char *text, size_t n)
{
        memcpy(p, text, n);
        return p + n;
}
#define PUT(p, literal) write_json_results(p, literal, sizeof(literal) - 1)

static inline char *write_json_hex(char *p, uint64_t v)
{
        unsigned digits = v ? (67 - (unsigned)__builtin_clzll(v)) / 4 : 1;

        for (unsigned i = digits; i-- > 0; v >>= 4)
                p[i] = "0123456789abcdef"[v & 15];
        return p + digits;
}

static inline char *put_decimal(char *p, uint32_t v)
{
        char digits[10];
        unsigned n = 0;

        do
                digits[n++] = (char)('0' + v % 10);
        while (v /= 10);
        while (n)
                *p++ = digits[--n];
        return p;
}

static void json_begin(struct symbolize_writer *w, struct buf *to)
{
        (void)w;
        buf_append_str(to, "{\"objects\":[");
}

static void json_object_begin(struct symbolize_writer *w, size_t index, const struct symbolize_object *requested,
                              const struct symbol_object *object, bool first, struct buf *to)
{
        char hex[BUILD_ID_HEX_MAX];

        if (!first)
                return;
        ((struct json_writer *)w)->comma = false;
        buf_printf(to, "%s{\"build_id\":\"%s\",\"state\":\"%s\",\"quality\":\"%s\",\"generation\":%llu,",
                   index ? "," : "", build_id_hex(&requested->id, hex), symbol_object_state_name(object->state),
                   symbol_quality_name(object->quality), (unsigned long long)object->generation);
        if (object->partial[0]) {
                buf_append_str(to, "\"partial\":");
                json_out_quote(to, object->partial, strlen(object->partial));
                buf_append_u8(to, ',');
        }
        if (requested->file_offsets)
                buf_append_str(to, "\"file_offsets\":true,");
        buf_append_str(to, "\"results\":[");
}

static enum status write_json_frames(struct text_reader *texts, const struct symbol_frame *frames, uint32_t count,
                                     struct buf *to, struct error *err)
{
        for (uint32_t i = 0; i < count; i++) {
                const struct rendered_text *function, *file;
                enum status st = text_reader_get_function(texts, frames[i].function, &function, err);
                char *p;

                if (!st)
                        st = text_reader_get_file(texts, frames[i].file, &file, err);
                if (st)
                        return st;
                p = buf_reserve(to, (size_t)function->json_size + file->json_size + FRAME_BYTES);
                if (!p)
                        return ST_OK;
                p = i ? PUT(p, ",{") : PUT(p, "{");
                p = write_json_results(p, function->json, function->json_size);
                p = PUT(p, ",\"file\":");
                p = write_json_results(p, file->json, file->json_size);
                p = PUT(p, ",\"line\":");
                p = put_decimal(p, frames[i].line);
                p = frames[i].inlined ? PUT(p, ",\"inlined\":true}") : PUT(p, ",\"inlined\":false}");
                to->size = (size_t)((uint8_t *)p - to->data);
        }
        return ST_OK;
}

static enum status write_json_result(struct json_writer *w, struct text_reader *texts, uint64_t address,
                                     const struct symbol_result *r, const struct symbol_frame *frames, struct buf *to,
                                     struct error *err)
{
        const char *state = symbol_state_name(r->state);
        char *p = buf_reserve(to, RESULT_BYTES + strlen(state));
        enum status st;

        if (!p)
                return ST_OK;
        p = w->comma ? PUT(p, ",{\"address\":\"0x") : PUT(p, "{\"address\":\"0x");
        w->comma = true;
        p = write_json_hex(p, address);
        p = PUT(p, "\",\"state\":\"");
        p = write_json_results(p, state, strlen(state));
        p = PUT(p, "\",\"frames\":[");
        to->size = (size_t)((uint8_t *)p - to->data);
        st = write_json_frames(texts, frames + r->first_frame, r->frame_count, to, err);
        buf_append(to, "]}", 2);
        return st;
}

/* Prefetch the texts of the next results together. @return their number, at least one */
static size_t prefetch_results(const struct text_reader *texts, const struct symbolize_run *run, size_t first)
{
        const struct symbol_frame *frames[PREFETCH_MAX];
        size_t i = first, count = 0;

        do {
                const struct symbol_result *r = &run->results[i++];

                for (uint32_t k = 0; k < r->frame_count && count < PREFETCH_MAX; k++)
                        frames[count++] = &run->frames[r->first_frame + k];
        } while (i < run->count && count + run->results[i].frame_count <= PREFETCH_MAX && i - first < PREFETCH_MAX);
        text_reader_prefetch(texts, frames, count);
        return i - first;
}

static enum status json_results(struct symbolize_writer *w, struct text_reader *texts, const struct symbolize_run *run,
                                struct buf *to, size_t *done_ret, struct error *err)
{
        enum status st = ST_OK;
        size_t i = 0, prefetched = 0;

        do {
                if (i == prefetched)
                        prefetched += prefetch_results(texts, run, i);
                st = write_json_result((struct json_writer *)w, texts, run->addresses[i], &run->results[i], run->frames,
                                       to, err);
                i++;
        } while (!st && !to->failed && i < run->count && to->size < SYMBOLIZE_PIECE_BYTES);
        *done_ret = i;
        return st ? st : buf_status(to, err, "the answer to one address");
}

static void json_object_end(struct symbolize_writer *w, bool last, struct buf *to)
{
        (void)w;
        if (last)
                buf_append_str(to, "]}");
}

static void json_end(struct symbolize_writer *w, struct buf *to)
{
        (void)w;
        buf_append_str(to, "]}\n");
}

static void json_destroy(struct symbolize_writer *w)
{
        free(w);
}

struct symbolize_writer *symbolize_json_create(void)
{
        struct json_writer *w = calloc(1, sizeof *w);

        if (!w)
                return NULL;
        w->base = (struct symbolize_writer){ .content_type = "application/json",
                                             .begin = json_begin,
                                             .object_begin = json_object_begin,
                                             .results = json_results,
                                             .object_end = json_object_end,
                                             .end = json_end,
                                             .destroy = json_destroy };
        return &w->base;
}
