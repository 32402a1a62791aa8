/* SPDX-License-Identifier: Apache-2.0 */
/* Answers from a service: POST /api/v1/symbolize in protobuf (docs/formats/symbolize.proto). */
#include <stdlib.h>
#include <string.h>

#include "cli/service.h"
#include "cli/symbolize.h"
#include "common/arena.h"
#include "common/array.h"
#include "common/build_id.h"
#include "common/limits.h"
#include "common/utf8.h"
#include "profile-formats/wire.h"
#include "symbolizer/lookup.h"

enum { REQUEST_OBJECTS = 1, ASKED_BUILD_ID = 1, ASKED_ADDRESSES = 2, ASKED_FILE_OFFSETS = 3 };
enum { ANSWER_FUNCTIONS = 1, ANSWER_FILES = 2, ANSWER_STATES = 3, ANSWER_OBJECTS = 4 };
enum { FUNCTION_NAME = 1, FUNCTION_LINKAGE_NAME = 2 };
enum { OBJECT_QUALITY = 4, OBJECT_STATES = 6, OBJECT_FRAME_COUNTS, OBJECT_FUNCTIONS, OBJECT_FILES, OBJECT_LINES,
       OBJECT_PARTIAL, OBJECT_FILE_OFFSETS };

struct server_source {
        struct http_client *client;
        struct build_id id;
        const char *quality;                    /* a constant; NULL unknown */
        char partial[4 * SYMBOL_PARTIAL_BYTES]; /* a byte of it may become \xNN */
};

struct text {
        struct answer_text name, linkage_name;
};

struct texts { /* numbered from 1 in the order they come */
        struct text *items;
        uint32_t count;
        size_t capacity;
};

/* An answer being read. */
struct reading {
        struct server_source *source;
        struct arena arena;
        struct texts functions, files, states;
        bool file_offsets;
        const uint64_t *addresses;
        size_t count, given;
        void (*give)(void *printer, const struct answer *);
        void *printer;
};

static void server_source_close(void *context)
{
        struct server_source *s = context;

        http_client_destroy(s->client);
        free(s);
}

static void write_request(const struct server_source *s, const struct reading *r, struct buf *b)
{
        size_t object = wire_begin(b, REQUEST_OBJECTS), column;

        wire_put_bytes(b, ASKED_BUILD_ID, s->id.bytes, s->id.size);
        column = wire_begin(b, ASKED_ADDRESSES);
        for (size_t i = 0; i < r->count; i++)
                buf_append_uleb128(b, r->addresses[i]);
        wire_end(b, column);
        wire_put_uint(b, ASKED_FILE_OFFSETS, r->file_offsets);
        wire_end(b, object);
}

static enum status malformed(struct error *err)
{
        return error_set(err, ST_BAD_DATA, "the service's answer is malformed");
}

static bool copy_text(struct arena *arena, const struct reader *bytes, struct answer_text *ret)
{
        const char *copy = bytes->size ? arena_strndup(arena, (const char *)bytes->data, bytes->size) : "";

        *ret = (struct answer_text){ copy, copy ? strlen(copy) : 0 };
        return copy != NULL;
}

static enum status add_text(struct texts *t, struct arena *arena, const struct reader *bytes, const struct reader *linkage,
                            struct error *err)
{
        struct text *text;

        if (!array_reserve(&t->items, &t->capacity, t->count))
                return error_no_memory(err);
        text = &t->items[t->count++];
        return copy_text(arena, bytes, &text->name) && copy_text(arena, linkage, &text->linkage_name) ?
                       ST_OK : error_no_memory(err);
}

static enum status add_function(struct reading *r, struct wire_field *message, struct error *err)
{
        struct reader name, linkage;
        struct wire_field f;

        reader_init(&name, "", 0);
        linkage = name;
        while (wire_next(&message->bytes, &f)) {
                if (f.number == FUNCTION_NAME && f.type == WIRE_BYTES)
                        name = f.bytes;
                else if (f.number == FUNCTION_LINKAGE_NAME && f.type == WIRE_BYTES)
                        linkage = f.bytes;
        }
        return message->bytes.failed ? malformed(err) : add_text(&r->functions, &r->arena, &name, &linkage, err);
}

/* The next number of a column; one that does not name a text is malformed. */
static bool next_text(struct wire_field *column, const struct texts *t, const struct text **ret)
{
        static const struct text unknown = { { "", 0 }, { "", 0 } };
        uint64_t number;

        if (!wire_next_number(column, WIRE_VARINT, &number) || number > t->count)
                return false;
        *ret = number ? &t->items[number - 1] : &unknown;
        return true;
}

static bool next_frame(const struct reading *r, struct wire_field *columns, bool inlined, struct answer_frame *ret)
{
        const struct text *function, *file;
        uint64_t line;

        if (!next_text(&columns[OBJECT_FUNCTIONS], &r->functions, &function) ||
            !next_text(&columns[OBJECT_FILES], &r->files, &file) ||
            !wire_next_number(&columns[OBJECT_LINES], WIRE_VARINT, &line))
                return false;
        *ret = (struct answer_frame){ .function = function->name, .linkage_name = function->linkage_name,
                                      .file = file->name, .line = (uint32_t)line, .inlined = inlined };
        return true;
}

static enum status give_results(struct reading *r, struct wire_field *columns, struct error *err)
{
        bool has_states = columns[OBJECT_STATES].type == WIRE_BYTES && columns[OBJECT_STATES].bytes.size;
        static struct answer_frame frames[LIMIT_INLINE_DEPTH];
        uint64_t count;

        while (wire_next_number(&columns[OBJECT_FRAME_COUNTS], WIRE_VARINT, &count)) {
                struct answer a = { .state = "resolved", .frames = frames, .frame_count = count };
                const struct text *state = NULL;

                if (r->given == r->count || count > LIMIT_INLINE_DEPTH ||
                    (has_states && !next_text(&columns[OBJECT_STATES], &r->states, &state)))
                        return malformed(err);
                if (state && state->name.size)
                        a.state = state->name.data;
                for (uint64_t i = 0; i < count; i++)
                        if (!next_frame(r, columns, i + 1 < count, &frames[i]))
                                return malformed(err);
                a.address = r->addresses[r->given++];
                r->give(r->printer, &a);
        }
        return ST_OK;
}

/* What a describe() tells. Of another service than ours it may be any text; ours says it in one line. */
static void take_quality(struct server_source *s, const struct reader *bytes)
{
        enum symbol_quality quality;
        char name[32];

        snprintf(name, sizeof name, "%.*s", (int)(bytes->size < sizeof name ? bytes->size : 0),
                 (const char *)bytes->data);
        if (symbol_quality_parse(name, &quality))
                s->quality = symbol_quality_name(quality);
}

static void take_partial(struct server_source *s, const struct reader *bytes)
{
        _cleanup_buf_ struct buf escaped;
        char text[SYMBOL_PARTIAL_BYTES];

        snprintf(text, sizeof text, "%.*s", (int)(bytes->size < sizeof text ? bytes->size : sizeof text - 1),
                 (const char *)bytes->data);
        buf_init(&escaped, sizeof s->partial);
        utf8_put_escaped(&escaped, text);
        if (buf_cstr(&escaped))
                snprintf(s->partial, sizeof s->partial, "%s", buf_cstr(&escaped));
}

static void server_source_describe(void *context, struct answer_source *source)
{
        struct server_source *s = context;

        source->quality = s->quality;
        source->partial = s->partial[0] ? s->partial : NULL;
}

static enum status read_object(struct reading *r, struct wire_field *message, struct error *err)
{
        struct wire_field columns[OBJECT_LINES + 1], f;
        bool file_offsets = false;

        for (unsigned i = 0; i <= OBJECT_LINES; i++) {
                columns[i] = (struct wire_field){ .type = WIRE_BYTES };
                reader_init(&columns[i].bytes, "", 0);
        }
        while (wire_next(&message->bytes, &f))
                if (f.number >= OBJECT_STATES && f.number <= OBJECT_LINES)
                        columns[f.number] = f;
                else if (f.number == OBJECT_FILE_OFFSETS && f.type == WIRE_VARINT)
                        file_offsets = f.value != 0;
                else if (f.number == OBJECT_QUALITY && f.type == WIRE_BYTES)
                        take_quality(r->source, &f.bytes);
                else if (f.number == OBJECT_PARTIAL && f.type == WIRE_BYTES)
                        take_partial(r->source, &f.bytes);
        if (!message->bytes.failed && file_offsets != r->file_offsets)
                return error_set(err, ST_UNSUPPORTED, "the service does not take file offsets: it is older than this program");
        return message->bytes.failed ? malformed(err) : give_results(r, columns, err);
}

static enum status read_answer(struct reading *r, const struct buf *body, struct error *err)
{
        struct reader nothing, all;
        struct wire_field f;
        enum status st = ST_OK;

        reader_init(&nothing, "", 0);
        reader_init(&all, body->data, body->size);
        while (!st && wire_next(&all, &f)) {
                if (f.type != WIRE_BYTES)
                        continue;
                if (f.number == ANSWER_FUNCTIONS)
                        st = add_function(r, &f, err);
                else if (f.number == ANSWER_FILES)
                        st = add_text(&r->files, &r->arena, &f.bytes, &nothing, err);
                else if (f.number == ANSWER_STATES)
                        st = add_text(&r->states, &r->arena, &f.bytes, &nothing, err);
                else if (f.number == ANSWER_OBJECTS)
                        st = read_object(r, &f, err);
        }
        if (!st && all.failed)
                return malformed(err);
        return !st && r->given < r->count ? error_set(err, ST_BAD_DATA, "the service did not answer every address") : st;
}

static enum status send_and_read(struct server_source *s, struct reading *r, struct error *err)
{
        static const char *const headers[] = { "Content-Type: application/x-protobuf", "Accept: application/x-protobuf", NULL };
        _cleanup_buf_ struct buf body = { 0 };
        _cleanup_http_client_response_ struct http_client_response response = { 0 };
        struct http_client_request request = { .method = "POST", .path = "/api/v1/symbolize", .headers = headers,
                                               .max_response = LIMIT_RESPONSE_BYTES, .repeatable = true };
        enum status st;

        buf_init(&body, LIMIT_HTTP_BODY_BYTES);
        write_request(s, r, &body);
        st = buf_status(&body, err, "request");
        if (st)
                return st;
        request.body = body.data;
        request.body_size = body.size;
        st = http_client_send(s->client, &request, &response, err);
        if (st)
                return st;
        if (strncmp(response.content_type, "application/x-protobuf", 22) != 0)
                return error_set(err, ST_UNSUPPORTED, "the service answers with '%s', no protobuf: it is older than this program",
                                 response.content_type);
        arena_init(&r->arena, LIMIT_RESPONSE_BYTES);
        st = read_answer(r, &response.body, err);
        arena_deinit(&r->arena);
        free(r->functions.items);
        free(r->files.items);
        free(r->states.items);
        return st;
}

static enum status server_source_ask(void *context, const uint64_t *addresses, size_t count,
                                     void (*give)(void *printer, const struct answer *), void *printer,
                                     struct error *err)
{
        struct reading r = { .source = context, .addresses = addresses, .count = count, .give = give, .printer = printer };

        return send_and_read(context, &r, err);
}

static enum status server_source_ask_offsets(void *context, const uint64_t *offsets, size_t count,
                                             void (*give)(void *printer, const struct answer *), void *printer,
                                             struct error *err)
{
        struct reading r = { .source = context, .file_offsets = true, .addresses = offsets, .count = count,
                             .give = give, .printer = printer };

        return send_and_read(context, &r, err);
}

enum status answer_source_server(const struct service_options *service, const char *build_id,
                                 struct answer_source *ret, struct error *err)
{
        const struct http_client_options how = { .size = sizeof how };
        struct server_source *s;
        struct build_id id;
        enum status st;

        if (!build_id_from_hex(&id, build_id, strlen(build_id)))
                return error_set(err, ST_USAGE, "'%s' is not a build-id", build_id);
        s = calloc(1, sizeof *s);
        if (!s)
                return error_no_memory(err);
        s->id = id;
        st = service_connect(service, &how, &s->client, err);
        if (st) {
                server_source_close(s);
                return st;
        }
        *ret = (struct answer_source){ .context = s, .ask = server_source_ask,
                                        .ask_offsets = server_source_ask_offsets,
                                        .describe = server_source_describe, .close = server_source_close };
        build_id_hex(&id, ret->build_id);
        return ST_OK;
}
