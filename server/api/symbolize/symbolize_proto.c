/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results as protobuf (profile-formats/proto/symbolize.proto): texts once per answer, results in columns. An object's
 * columns are collected in separate buffers, because the texts that they refer to precede them in the answer.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash/number_table.h"
#include "common/limits.h"
#include "common/text/utf8.h"
#include "profile-formats/proto/symbolize.pb-c.h"
#include "profile-formats/proto_message.h"
#include "server/api/symbolize/symbolize_stream.h"

#define RESULTS_RESERVED 64 /* results for which columns make room at once */

typedef Cairn__Symbolize__V1__SymbolizeAnswer proto_answer;
typedef Cairn__Symbolize__V1__SymbolizeAnswer__Object proto_object;
typedef Cairn__Symbolize__V1__SymbolizeAnswer__Function proto_function;

struct sent_texts {
        struct number_table numbers; /* number in the index -> number in the answer */
        uint32_t last;
};

struct proto_writer {
        struct symbolize_writer base; /* first */
        struct sent_texts functions, files;
        uint32_t states[SYMBOL_STATE_COUNT], last_state; /* numbers in the answer; 0: not sent */
        struct buf scratch;                              /* texts, each with a NUL */
        struct buf partial;                              /* symbol_object.partial of the object */
        proto_object object;                             /* without its columns */
        struct buf state_column, count_column, function_column, file_column, line_column; /* of uint32_t */
        size_t packed_bytes; /* encoded size of the columns */
        bool unresolved;     /* an address of the object's part is unresolved */
};

/* Append a number; the caller has reserved space. */
static inline void add_to_column(struct proto_writer *w, struct buf *column, uint32_t v)
{
        assert(column->capacity - column->size >= sizeof v);
        memcpy(column->data + column->size, &v, sizeof v);
        column->size += sizeof v;
        w->packed_bytes += v < 1u << 7 ? 1 : v < 1u << 14 ? 2 : v < 1u << 21 ? 3 : v < 1u << 28 ? 4 : 5;
}

/* Assign the next number in the answer to a text. A full table is cleared; its texts are then sent again. */
static bool sent_texts_add(struct sent_texts *s, uint32_t number)
{
        if (s->numbers.count == LIMIT_SYMBOLIZE_SENT)
                number_table_clear(&s->numbers);
        return number_table_add(&s->numbers, number, ++s->last);
}

static enum status send_function_text(struct proto_writer *w, struct text_reader *texts, uint32_t function,
                                      struct buf *to, uint32_t *ret, struct error *err)
{
        proto_function message = CAIRN__SYMBOLIZE__V1__SYMBOLIZE_ANSWER__FUNCTION__INIT, *functions[] = { &message };
        proto_answer answer = CAIRN__SYMBOLIZE__V1__SYMBOLIZE_ANSWER__INIT;
        const struct rendered_text *text;
        enum status st;

        *ret = 0;
        if (!function || number_table_get(&w->functions.numbers, function, ret))
                return ST_OK;
        st = text_reader_get_function(texts, function, &text, err);
        if (st)
                return st;
        buf_clear(&w->scratch);
        buf_append(&w->scratch, text->name, text->name_size);
        buf_append_u8(&w->scratch, 0);
        buf_append(&w->scratch, text->linkage, text->linkage_size);
        buf_append_u8(&w->scratch, 0);
        st = buf_status(&w->scratch, err, "function name");
        if (st)
                return st;
        message.name = (char *)w->scratch.data;
        message.linkage_name = (char *)w->scratch.data + text->name_size + 1;
        answer.n_functions = 1;
        answer.functions = functions;
        proto_message_append(to, &answer.base);
        if (!sent_texts_add(&w->functions, function))
                return error_no_memory(err);
        *ret = w->functions.last;
        return ST_OK;
}

static enum status send_file_text(struct proto_writer *w, struct text_reader *texts, uint32_t file, struct buf *to,
                                  uint32_t *ret, struct error *err)
{
        proto_answer answer = CAIRN__SYMBOLIZE__V1__SYMBOLIZE_ANSWER__INIT;
        char *files[1];
        const struct rendered_text *text;
        enum status st;

        *ret = 0;
        if (!file || number_table_get(&w->files.numbers, file, ret))
                return ST_OK;
        st = text_reader_get_file(texts, file, &text, err);
        if (st)
                return st;
        buf_clear(&w->scratch);
        buf_append(&w->scratch, text->name, text->name_size);
        if (!buf_cstr(&w->scratch))
                return buf_status(&w->scratch, err, "file path");
        files[0] = (char *)w->scratch.data;
        answer.n_files = 1;
        answer.files = files;
        proto_message_append(to, &answer.base);
        if (!sent_texts_add(&w->files, file))
                return error_no_memory(err);
        *ret = w->files.last;
        return ST_OK;
}

static uint32_t send_state_text(struct proto_writer *w, enum symbol_state state, struct buf *to)
{
        if (state == SYMBOL_RESOLVED)
                return 0;
        w->unresolved = true;
        if (!w->states[state]) {
                proto_answer answer = CAIRN__SYMBOLIZE__V1__SYMBOLIZE_ANSWER__INIT;
                char *states[] = { (char *)symbol_state_name(state) };

                answer.n_states = 1;
                answer.states = states;
                proto_message_append(to, &answer.base);
                w->states[state] = ++w->last_state;
        }
        return w->states[state];
}

/* Make room for `count` results. */
static bool reserve_columns(struct proto_writer *w, const struct symbol_result *results, size_t count)
{
        size_t frames = 0;

        for (size_t i = 0; i < count; i++)
                frames += results[i].frame_count;
        return buf_reserve(&w->state_column, count * sizeof(uint32_t)) &&
               buf_reserve(&w->count_column, count * sizeof(uint32_t)) &&
               buf_reserve(&w->function_column, frames * sizeof(uint32_t)) &&
               buf_reserve(&w->file_column, frames * sizeof(uint32_t)) &&
               buf_reserve(&w->line_column, frames * sizeof(uint32_t));
}

static enum status write_proto_result(struct proto_writer *w, struct text_reader *texts, const struct symbol_result *r,
                                      const struct symbol_frame *frames, struct buf *to, struct error *err)
{
        add_to_column(w, &w->state_column, send_state_text(w, r->state, to));
        add_to_column(w, &w->count_column, r->frame_count);
        for (uint32_t i = 0; i < r->frame_count; i++) {
                uint32_t function, file;
                enum status st = send_function_text(w, texts, frames[i].function, to, &function, err);

                if (!st)
                        st = send_file_text(w, texts, frames[i].file, to, &file, err);
                if (st)
                        return st;
                add_to_column(w, &w->function_column, function);
                add_to_column(w, &w->file_column, file);
                add_to_column(w, &w->line_column, frames[i].line);
        }
        return ST_OK;
}

static void proto_object_begin(struct symbolize_writer *base, size_t index, const struct symbolize_object *requested,
                               const struct symbol_object *object, bool first, struct buf *to)
{
        struct proto_writer *w = (struct proto_writer *)base;

        (void)first;
        (void)to;
        buf_clear(&w->state_column);
        buf_clear(&w->count_column);
        buf_clear(&w->function_column);
        buf_clear(&w->file_column);
        buf_clear(&w->line_column);
        w->unresolved = false;
        w->packed_bytes = 0;
        buf_clear(&w->partial);
        buf_append_str(&w->partial, utf8_replace_invalid(object->partial, &w->scratch));
        if (!buf_cstr(&w->partial))
                to->failed = w->partial.failed;
        cairn__symbolize__v1__symbolize_answer__object__init(&w->object);
        w->object.index = (uint32_t)index;
        w->object.build_id = proto_bytes(requested->id.bytes, requested->id.size);
        w->object.state = (char *)symbol_object_state_name(object->state);
        w->object.quality = (char *)symbol_quality_name(object->quality);
        w->object.generation = object->generation;
        w->object.partial = (char *)w->partial.data;
        w->object.file_offsets = requested->file_offsets;
}

static enum status proto_results(struct symbolize_writer *base, struct text_reader *texts,
                                 const struct symbolize_run *run, struct buf *to, size_t *done_ret, struct error *err)
{
        struct proto_writer *w = (struct proto_writer *)base;
        enum status st = ST_OK;
        size_t i = 0;

        do {
                const struct symbol_result *r = &run->results[i];
                size_t left = run->count - i;

                if (i++ % RESULTS_RESERVED == 0 &&
                    !reserve_columns(w, r, left < RESULTS_RESERVED ? left : RESULTS_RESERVED))
                        return error_no_memory(err);
                st = write_proto_result(w, texts, r, run->frames + r->first_frame, to, err);
        } while (!st && !to->failed && i < run->count && to->size + w->packed_bytes < SYMBOLIZE_PIECE_BYTES);
        *done_ret = i;
        return st ? st : buf_status(to, err, "the answer to one address");
}

static size_t fill_proto_column(uint32_t **ret, const struct buf *column)
{
        *ret = (uint32_t *)(void *)column->data;
        return column->size / sizeof **ret;
}

static void proto_object_end(struct symbolize_writer *base, bool last, struct buf *to)
{
        struct proto_writer *w = (struct proto_writer *)base;
        proto_answer answer = CAIRN__SYMBOLIZE__V1__SYMBOLIZE_ANSWER__INIT;
        proto_object *objects[] = { &w->object };

        (void)last;
        if (to->failed)
                return;
        if (w->unresolved)
                w->object.n_states = fill_proto_column(&w->object.states, &w->state_column);
        w->object.n_frame_counts = fill_proto_column(&w->object.frame_counts, &w->count_column);
        w->object.n_functions = fill_proto_column(&w->object.functions, &w->function_column);
        w->object.n_files = fill_proto_column(&w->object.files, &w->file_column);
        w->object.n_lines = fill_proto_column(&w->object.lines, &w->line_column);
        answer.n_objects = 1;
        answer.objects = objects;
        proto_message_append(to, &answer.base);
}

static void write_nothing(struct symbolize_writer *w, struct buf *to)
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
        buf_deinit(&w->partial);
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
                                             .begin = write_nothing,
                                             .object_begin = proto_object_begin,
                                             .results = proto_results,
                                             .object_end = proto_object_end,
                                             .end = write_nothing,
                                             .destroy = proto_destroy };
        buf_init(&w->scratch, MiB(1)); /* two texts of LIMIT_NAME_BYTES; replacing invalid UTF-8 may triple them */
        buf_init(&w->partial, 3 * SYMBOL_PARTIAL_BYTES + 1);
        buf_init(&w->state_column, LIMIT_SYMBOLIZE_PIECE_BYTES);
        buf_init(&w->count_column, LIMIT_SYMBOLIZE_PIECE_BYTES);
        buf_init(&w->function_column, LIMIT_SYMBOLIZE_PIECE_BYTES);
        buf_init(&w->file_column, LIMIT_SYMBOLIZE_PIECE_BYTES);
        buf_init(&w->line_column, LIMIT_SYMBOLIZE_PIECE_BYTES);
        return &w->base;
}
