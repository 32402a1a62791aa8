/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results as protobuf (docs/formats/symbolize.proto): texts once per answer,
 * results in columns. An object's columns are gathered apart, because the texts
 * they refer to go before them.
 */
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "common/number_table.h"
#include "common/utf8.h"
#include "profile-formats/wire.h"
#include "server/symbolize_stream.h"

enum { ANSWER_FUNCTIONS = 1, ANSWER_FILES = 2, ANSWER_STATES = 3, ANSWER_OBJECTS = 4 };
enum { FUNCTION_NAME = 1, FUNCTION_LINKAGE_NAME = 2 };
enum {
        OBJECT_INDEX = 1, OBJECT_BUILD_ID, OBJECT_STATE, OBJECT_QUALITY, OBJECT_GENERATION,
        OBJECT_STATES, OBJECT_FRAME_COUNTS, OBJECT_FUNCTIONS, OBJECT_FILES, OBJECT_LINES, OBJECT_PARTIAL,
        OBJECT_FILE_OFFSETS,
};
#define VARINT_MAX 5 /* bytes of 32 bits */

struct sent {
        struct number_table numbers; /* of the index -> of the answer */
        uint32_t last;
};

struct proto_writer {
        struct symbolize_writer base; /* first */
        struct sent functions, files;
        uint32_t states[SYMBOL_STATE_COUNT], last_state; /* numbers of the answer; 0 not sent */
        struct buf scratch;
        struct buf message;      /* of the object: what goes before its columns */
        struct buf state_column, count_column, function_column, file_column, line_column;
        bool unresolved;         /* some address of the object's part */
};

static inline void put_varint(struct buf *b, uint32_t v) /* where there is room */
{
        uint8_t *p = b->data + b->size;

        for (; v >= 0x80; v >>= 7)
                *p++ = (uint8_t)(v | 0x80);
        *p++ = (uint8_t)v;
        b->size = (size_t)(p - b->data);
}

/* Give a number to what is sent next. Numbers that are forgotten are sent again under another one. */
static bool sent_add(struct sent *s, uint32_t number)
{
        if (s->numbers.count == LIMIT_SYMBOLIZE_SENT)
                number_table_clear(&s->numbers);
        return number_table_add(&s->numbers, number, ++s->last);
}

static enum status function_number(struct proto_writer *w, struct text_reader *texts, uint32_t function,
                                   struct buf *to, uint32_t *ret, struct error *err)
{
        const struct rendered *text;
        enum status st;
        size_t mark;

        *ret = 0;
        if (!function || number_table_get(&w->functions.numbers, function, ret))
                return ST_OK;
        st = text_reader_function(texts, function, &text, err);
        if (st)
                return st;
        mark = wire_begin(to, ANSWER_FUNCTIONS);
        wire_put_bytes(to, FUNCTION_NAME, text->name, text->name_size);
        if (text->linkage_size)
                wire_put_bytes(to, FUNCTION_LINKAGE_NAME, text->linkage, text->linkage_size);
        wire_end(to, mark);
        if (!sent_add(&w->functions, function))
                return error_no_memory(err);
        *ret = w->functions.last;
        return ST_OK;
}

static enum status file_number(struct proto_writer *w, struct text_reader *texts, uint32_t file, struct buf *to,
                               uint32_t *ret, struct error *err)
{
        const struct rendered *text;
        enum status st;

        *ret = 0;
        if (!file || number_table_get(&w->files.numbers, file, ret))
                return ST_OK;
        st = text_reader_file(texts, file, &text, err);
        if (st)
                return st;
        wire_put_bytes(to, ANSWER_FILES, text->name, text->name_size);
        if (!sent_add(&w->files, file))
                return error_no_memory(err);
        *ret = w->files.last;
        return ST_OK;
}

static uint32_t state_number(struct proto_writer *w, enum symbol_state state, struct buf *to)
{
        if (state == SYMBOL_RESOLVED)
                return 0;
        w->unresolved = true;
        if (!w->states[state]) {
                wire_put_str(to, ANSWER_STATES, symbol_state_name(state));
                w->states[state] = ++w->last_state;
        }
        return w->states[state];
}

static enum status put_result(struct proto_writer *w, struct text_reader *texts, const struct symbol_result *r,
                              const struct symbol_frame *frames, struct buf *to, struct error *err)
{
        size_t room = (size_t)r->frame_count * VARINT_MAX;

        if (!buf_reserve(&w->state_column, VARINT_MAX) || !buf_reserve(&w->count_column, VARINT_MAX) ||
            !buf_reserve(&w->function_column, room) || !buf_reserve(&w->file_column, room) ||
            !buf_reserve(&w->line_column, room))
                return error_no_memory(err);
        put_varint(&w->state_column, state_number(w, r->state, to));
        put_varint(&w->count_column, r->frame_count);
        for (uint32_t i = 0; i < r->frame_count; i++) {
                uint32_t function, file;
                enum status st = function_number(w, texts, frames[i].function, to, &function, err);

                if (!st)
                        st = file_number(w, texts, frames[i].file, to, &file, err);
                if (st)
                        return st;
                put_varint(&w->function_column, function);
                put_varint(&w->file_column, file);
                put_varint(&w->line_column, frames[i].line);
        }
        return ST_OK;
}

static void proto_object_begin(struct symbolize_writer *base, size_t index, const struct symbolize_object *asked,
                               const struct symbol_object *object, bool first, struct buf *to)
{
        struct proto_writer *w = (struct proto_writer *)base;

        (void)first;
        (void)to;
        buf_clear(&w->message);
        buf_clear(&w->state_column);
        buf_clear(&w->count_column);
        buf_clear(&w->function_column);
        buf_clear(&w->file_column);
        buf_clear(&w->line_column);
        w->unresolved = false;
        wire_put_uint(&w->message, OBJECT_INDEX, index);
        wire_put_bytes(&w->message, OBJECT_BUILD_ID, asked->id.bytes, asked->id.size);
        wire_put_str(&w->message, OBJECT_STATE, symbol_object_state_name(object->state));
        wire_put_str(&w->message, OBJECT_QUALITY, symbol_quality_name(object->quality));
        wire_put_uint(&w->message, OBJECT_GENERATION, object->generation);
        wire_put_str(&w->message, OBJECT_PARTIAL, utf8_clean(object->partial, &w->scratch));
        wire_put_uint(&w->message, OBJECT_FILE_OFFSETS, asked->file_offsets);
}

static enum status proto_results(struct symbolize_writer *base, struct text_reader *texts,
                                 const struct symbolize_run *run, struct buf *to, size_t *done_ret, struct error *err)
{
        struct proto_writer *w = (struct proto_writer *)base;
        enum status st = ST_OK;
        size_t i = 0;

        do {
                const struct symbol_result *r = &run->results[i++];

                st = put_result(w, texts, r, run->frames + r->first_frame, to, err);
        } while (!st && !to->failed && i < run->count &&
                 to->size + w->count_column.size + w->function_column.size + w->file_column.size + w->line_column.size <
                         SYMBOLIZE_PIECE_BYTES);
        *done_ret = i;
        return st ? st : buf_status(to, err, "the answer to one address");
}

static void put_column(struct buf *to, uint32_t number, const struct buf *column)
{
        if (column->size)
                wire_put_bytes(to, number, column->data, column->size);
}

static void proto_object_end(struct symbolize_writer *base, bool last, struct buf *to)
{
        struct proto_writer *w = (struct proto_writer *)base;

        (void)last;
        if (w->unresolved)
                put_column(&w->message, OBJECT_STATES, &w->state_column);
        put_column(&w->message, OBJECT_FRAME_COUNTS, &w->count_column);
        put_column(&w->message, OBJECT_FUNCTIONS, &w->function_column);
        put_column(&w->message, OBJECT_FILES, &w->file_column);
        put_column(&w->message, OBJECT_LINES, &w->line_column);
        if (w->message.failed)
                to->failed = w->message.failed;
        wire_put_bytes(to, ANSWER_OBJECTS, w->message.data, w->message.size);
}

static void proto_nothing(struct symbolize_writer *w, struct buf *to)
{
        (void)w;
        (void)to;
}

static void proto_destroy(struct symbolize_writer *base)
{
        struct proto_writer *w = (struct proto_writer *)base;

        number_table_deinit(&w->functions.numbers);
        number_table_deinit(&w->files.numbers);
        buf_deinit(&w->scratch);
        buf_deinit(&w->message);
        buf_deinit(&w->state_column);
        buf_deinit(&w->count_column);
        buf_deinit(&w->function_column);
        buf_deinit(&w->file_column);
        buf_deinit(&w->line_column);
        free(w);
}

struct symbolize_writer *symbolize_proto_create(void)
{
        struct proto_writer *w = calloc(1, sizeof *w);

        if (!w)
                return NULL;
        w->base = (struct symbolize_writer){ .content_type = "application/x-protobuf",
                                             .kept_bytes = 2 * 2 * LIMIT_SYMBOLIZE_SENT * sizeof(struct number_slot),
                                             .begin = proto_nothing,
                                             .object_begin = proto_object_begin,
                                             .results = proto_results,
                                             .object_end = proto_object_end,
                                             .end = proto_nothing,
                                             .destroy = proto_destroy };
        buf_init(&w->scratch, 3 * SYMBOL_PARTIAL_BYTES);
        buf_init(&w->message, LIMIT_SYMBOLIZE_PIECE_BYTES);
        buf_init(&w->state_column, LIMIT_SYMBOLIZE_PIECE_BYTES);
        buf_init(&w->count_column, LIMIT_SYMBOLIZE_PIECE_BYTES);
        buf_init(&w->function_column, LIMIT_SYMBOLIZE_PIECE_BYTES);
        buf_init(&w->file_column, LIMIT_SYMBOLIZE_PIECE_BYTES);
        buf_init(&w->line_column, LIMIT_SYMBOLIZE_PIECE_BYTES);
        return &w->base;
}
