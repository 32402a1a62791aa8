/* SPDX-License-Identifier: Apache-2.0 */
/* Answers from a service: POST /api/v1/symbolize in protobuf (profile-formats/proto/symbolize.proto). */
#include <stdlib.h>
#include <string.h>

#include "cli/shared/service.h"
#include "cli/symbols/answer_source.h"
#include "common/build_id.h"
#include "common/limits.h"
#include "common/memory/arena.h"
#include "common/text/utf8.h"
#include "common/text.h"
#include "profile-formats/proto/symbolize.pb-c.h"
#include "profile-formats/proto_message.h"
#include "symbol-index/lookup.h"

#define ANSWER_MEMORY_BYTES (4 * LIMIT_RESPONSE_BYTES) /* a decoded answer */

typedef Cairn__Symbolize__V1__SymbolizeAnswer proto_answer;
typedef Cairn__Symbolize__V1__SymbolizeAnswer__Object proto_object;

struct server_source {
        struct http_client *client;
        struct build_id id;
        const char *quality;                    /* a constant; NULL unknown */
        char partial[4 * SYMBOL_PARTIAL_BYTES]; /* a byte of it may become \xNN */
};

/* The request, and how far its answer has been printed. */
struct server_query {
        struct server_source *source;
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

static void write_symbolize_request(const struct server_query *q, struct buf *b)
{
        Cairn__Symbolize__V1__SymbolizeRequest__Object object = CAIRN__SYMBOLIZE__V1__SYMBOLIZE_REQUEST__OBJECT__INIT;
        Cairn__Symbolize__V1__SymbolizeRequest__Object *objects[] = { &object };
        Cairn__Symbolize__V1__SymbolizeRequest request = CAIRN__SYMBOLIZE__V1__SYMBOLIZE_REQUEST__INIT;

        object.build_id = proto_bytes(q->source->id.bytes, q->source->id.size);
        object.n_addresses = q->count;
        object.addresses = (uint64_t *)q->addresses;
        object.file_offsets = q->file_offsets;
        request.n_objects = 1;
        request.objects = objects;
        proto_message_append(b, &request.base);
}

static enum status set_malformed_answer(struct error *err)
{
        return error_set(err, ST_BAD_DATA, "the service's response is malformed");
}

static struct answer_text make_answer_text(const char *text)
{
        size_t size = strlen(text);

        return (struct answer_text){ text, size, utf8_count_plain(text, size) == size };
}

/* The texts of an answer by their numbers, which start at 1; 0 is unknown, "". In the arena of the answer. */
struct server_texts {
        struct answer_text *names, *linkage_names, *files;
        size_t function_count, file_count;
};

static enum status make_server_texts(const proto_answer *answer, struct arena *memory, struct server_texts *ret,
                                     struct error *err)
{
        struct server_texts t = { .function_count = answer->n_functions, .file_count = answer->n_files };

        t.names = arena_alloc(memory, (t.function_count + 1) * sizeof *t.names);
        t.linkage_names = arena_alloc(memory, (t.function_count + 1) * sizeof *t.linkage_names);
        t.files = arena_alloc(memory, (t.file_count + 1) * sizeof *t.files);
        if (!t.names || !t.linkage_names || !t.files)
                return error_no_memory(err);
        t.names[0] = t.linkage_names[0] = t.files[0] = make_answer_text("");
        for (size_t i = 0; i < t.function_count; i++) {
                t.names[i + 1] = make_answer_text(answer->functions[i]->name);
                t.linkage_names[i + 1] = make_answer_text(answer->functions[i]->linkage_name);
        }
        for (size_t i = 0; i < t.file_count; i++)
                t.files[i + 1] = make_answer_text(answer->files[i]);
        *ret = t;
        return ST_OK;
}

/* Position i of the frame columns. */
static bool read_proto_frame(const struct server_texts *t, const proto_object *o, size_t i, struct answer_frame *ret)
{
        uint32_t function, file;

        if (i >= o->n_functions || i >= o->n_files || i >= o->n_lines)
                return false;
        function = o->functions[i];
        file = o->files[i];
        if (function > t->function_count || file > t->file_count)
                return false;
        *ret = (struct answer_frame){ .function = t->names[function],
                                      .linkage_name = t->linkage_names[function],
                                      .file = t->files[file],
                                      .line = o->lines[i] };
        return true;
}

static enum status give_server_results(struct server_query *q, const proto_answer *answer,
                                       const struct server_texts *texts, const proto_object *o, struct error *err)
{
        static struct answer_frame frames[LIMIT_INLINE_DEPTH];
        size_t next_frame = 0;

        for (size_t i = 0; i < o->n_frame_counts; i++) {
                uint32_t count = o->frame_counts[i];
                struct answer a = { .state = "resolved", .frames = frames, .frame_count = count };

                if (q->given == q->count || count > LIMIT_INLINE_DEPTH)
                        return set_malformed_answer(err);
                if (o->n_states) {
                        if (i >= o->n_states || o->states[i] > answer->n_states)
                                return set_malformed_answer(err);
                        if (o->states[i] && *answer->states[o->states[i] - 1])
                                a.state = answer->states[o->states[i] - 1];
                }
                for (uint32_t k = 0; k < count; k++) {
                        if (!read_proto_frame(texts, o, next_frame++, &frames[k]))
                                return set_malformed_answer(err);
                        frames[k].inlined = k + 1 < count;
                }
                a.address = q->addresses[q->given++];
                q->give(q->printer, &a);
        }
        return ST_OK;
}

/* The partial text of a service other than Cairn may contain anything. */
static void keep_description(struct server_source *s, const proto_object *o)
{
        _cleanup_buf_ struct buf escaped;
        char text[SYMBOL_PARTIAL_BYTES];
        enum symbol_quality quality;

        buf_init(&escaped, sizeof s->partial);
        if (symbol_quality_parse(o->quality, &quality))
                s->quality = symbol_quality_name(quality);
        if (!*o->partial)
                return;
        snprintf(text, sizeof text, "%s", o->partial);
        utf8_append_escaped(&escaped, text);
        if (buf_cstr(&escaped))
                snprintf(s->partial, sizeof s->partial, "%s", buf_cstr(&escaped));
}

static void server_source_describe(void *context, struct answer_source *source)
{
        struct server_source *s = context;

        source->quality = s->quality;
        source->partial = s->partial[0] ? s->partial : NULL;
}

static enum status read_symbolize_answer(struct server_query *q, const struct buf *body, struct error *err)
{
        _cleanup_arena_ struct arena memory;
        const proto_answer *answer;
        struct server_texts texts = { 0 };
        const void *message;
        enum status st;

        arena_init(&memory, ANSWER_MEMORY_BYTES);
        st = proto_message_decode(&cairn__symbolize__v1__symbolize_answer__descriptor, body->data, body->size, &memory,
                                  "the service's answer", &message, err);
        if (st)
                return st == ST_BAD_DATA ? set_malformed_answer(err) : st;
        answer = message;
        st = make_server_texts(answer, &memory, &texts, err);
        for (size_t i = 0; !st && i < answer->n_objects; i++) {
                if ((answer->objects[i]->file_offsets != 0) != q->file_offsets)
                        return error_set(err, ST_UNSUPPORTED,
                                         "the service does not support file offsets: it is older than this program");
                keep_description(q->source, answer->objects[i]);
                st = give_server_results(q, answer, &texts, answer->objects[i], err);
        }
        return !st && q->given < q->count ? error_set(err, ST_BAD_DATA, "the service did not answer every address")
                                          : st;
}

static enum status send_symbolize_request(struct server_source *s, struct server_query *q, struct error *err)
{
        static const char *const headers[] = { "Content-Type: application/x-protobuf", "Accept: application/x-protobuf",
                                               NULL };
        _cleanup_buf_ struct buf body = { 0 };
        _cleanup_http_client_response_ struct http_client_response response = { 0 };
        struct http_client_request request = { .method = "POST",
                                               .path = "/api/v1/symbolize",
                                               .headers = headers,
                                               .max_response = LIMIT_RESPONSE_BYTES,
                                               .repeatable = true,
                                               .no_timeout_retry = true };
        enum status st;

        buf_init(&body, LIMIT_HTTP_BODY_BYTES);
        write_symbolize_request(q, &body);
        st = buf_status(&body, err, "request");
        if (st)
                return st;
        request.body = body.data;
        request.body_size = body.size;
        st = service_send(s->client, &request, &response, err);
        if (st)
                return st;
        if (!starts_with(response.content_type, "application/x-protobuf"))
                return error_set(err, ST_UNSUPPORTED,
                                 "the response is '%s', not protobuf: the service is older than this program",
                                 response.content_type);
        return read_symbolize_answer(q, &response.body, err);
}

static enum status server_source_ask(void *context, const uint64_t *addresses, size_t count,
                                     void (*give)(void *printer, const struct answer *), void *printer,
                                     struct error *err)
{
        struct server_query q = {
                .source = context, .addresses = addresses, .count = count, .give = give, .printer = printer
        };

        return send_symbolize_request(context, &q, err);
}

static enum status server_source_ask_offsets(void *context, const uint64_t *offsets, size_t count,
                                             void (*give)(void *printer, const struct answer *), void *printer,
                                             struct error *err)
{
        struct server_query q = { .source = context,
                                  .file_offsets = true,
                                  .addresses = offsets,
                                  .count = count,
                                  .give = give,
                                  .printer = printer };

        return send_symbolize_request(context, &q, err);
}

enum status answer_source_server(const struct service_options *service, const char *build_id, struct answer_source *ret,
                                 struct error *err)
{
        /* The service ends a request that takes too long (--symbolize-timeout), and sends nothing before. */
        const struct http_client_options how = { .size = sizeof how, .idle_timeout_s = 3600 };
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
        *ret = (struct answer_source){ .context = s,
                                       .ask = server_source_ask,
                                       .ask_offsets = server_source_ask_offsets,
                                       .describe = server_source_describe,
                                       .close = server_source_close };
        build_id_hex(&id, ret->build_id);
        return ST_OK;
}
