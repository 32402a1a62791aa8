/* SPDX-License-Identifier: Apache-2.0 */
#include "server/protocol/grpc_query.h"

#include <string.h>

#include "common/clock.h"
#include "common/compress/compress.h"
#include "common/limits.h"
#include "grpc/message_reader.h"
#include "server/core/query_work.h"
#include "server/core/server_internal.h"
#include "server/core/tenants.h"

#define REQUEST_MEMORY_BYTES MiB(8) /* decoded from a body of at most GRPC_QUERY_BYTES */
#define TRAILERS_FLAG 0x80

/* One call, over either transport. */
struct service_call {
        const struct grpc_query_service *service;
        struct tenant *tenant;
        const uint8_t *message;
        size_t size;
        struct query_work *work;
};

static enum status run_query_method(const struct service_call *call, const struct querier_method *method,
                                    struct buf *ret, struct error *err)
{
        _cleanup_arena_ struct arena request_memory, memory;
        struct querier_input input = { .method = method,
                                       .now_unix_ns = wall_clock_ns(),
                                       .meter = &call->work->meter,
                                       .report = &call->work->report };
        const ProtobufCMessage *answer;
        enum status st;

        arena_init_budget(&request_memory, REQUEST_MEMORY_BYTES, MEMORY_BODIES);
        arena_init_budget(&memory, LIMIT_PROFILE_MEMORY_BYTES, MEMORY_QUERIES);
        st = proto_message_decode(querier_get_request_type(method), call->message, call->size, &request_memory,
                                  "message", &input.request, err);
        if (!st)
                st = querier_run(call->tenant->profiles, &input, &memory, &answer, err);
        if (st) {
                query_work_count_failure(call->work);
                return st;
        }
        proto_message_append(ret, answer);
        if (query_work_finish(call->work, ret))
                metric_add(call->service->calls, 1);
        return buf_status(ret, err, "the answer");
}

/* ---- gRPC ---- */

void grpc_query_answer(const struct grpc_query_service *service, struct grpc_call *grpc, struct server *s)
{
        const char *name = strrchr(grpc_call_path(grpc), '/') + 1;
        struct query_work work;
        const struct tenant *tenant = grpc_call_tenant(grpc);
        const struct query_bounds bounds = { .kind = service->kind,
                                             .target = grpc_call_path(grpc),
                                             .tenant = tenant->name,
                                             .arrived_ns = grpc_call_arrived_ns(grpc),
                                             .deadline = grpc_call_deadline(grpc),
                                             .stopping = &s->stopping };
        struct service_call call = { .service = service, .tenant = grpc_call_tenant(grpc), .work = &work };
        struct error err;
        struct buf answer;
        enum status st;

        call.message = grpc_call_message(grpc, &call.size);
        query_work_init_other(&work, &bounds);
        buf_init_budget(&answer, LIMIT_RESPONSE_BYTES, MEMORY_ANSWERS);
        st = run_query_method(&call, service->find_method(name), &answer, &err);
        if (!st) {
                grpc_call_reply(grpc, &answer);
                return;
        }
        buf_deinit(&answer);
        grpc_call_fail_status(grpc, st, &err);
}

/* ---- gRPC-Web ---- */

static void put_web_trailers(struct buf *to, enum grpc_code code, const char *text)
{
        _cleanup_buf_ struct buf trailers;
        size_t at = to->size;

        buf_init(&trailers, KiB(4));
        buf_printf(&trailers, "grpc-status: %u\r\n", (unsigned)code);
        if (code) {
                buf_append_str(&trailers, "grpc-message: ");
                put_grpc_message(&trailers, text);
                buf_append_str(&trailers, "\r\n");
        }
        put_message_prefix(to, (uint32_t)trailers.size);
        buf_append(to, trailers.data, trailers.size);
        if (!to->failed)
                to->data[at] = TRAILERS_FLAG;
}

void grpc_query_fail_web(struct http_request *req, enum grpc_code code, const char *text)
{
        struct buf body;

        buf_init(&body, KiB(8));
        put_web_trailers(&body, code, text);
        http_respond_buf(req, 200, GRPC_WEB_TYPE, &body);
}

static void respond_web_call(struct http_request *req, const struct buf *answer)
{
        struct buf body;
        struct error err;
        enum status st;

        buf_init_budget(&body, LIMIT_RESPONSE_BYTES, MEMORY_ANSWERS);
        put_message_prefix(&body, (uint32_t)answer->size);
        if (answer->size)
                buf_append(&body, answer->data, answer->size);
        put_web_trailers(&body, GRPC_OK, "");
        st = buf_status(&body, &err, "the answer");
        if (!st) {
                http_respond_buf(req, 200, GRPC_WEB_TYPE, &body);
                return;
        }
        buf_deinit(&body);
        grpc_query_fail_web(req, grpc_code_from_status(st), err.text);
}

/* Read the only message of a body. @param unpacked  holds it if it was compressed. */
static enum status read_web_message(struct http_request *req, struct service_call *call, struct buf *message,
                                    struct buf *unpacked, struct error *err)
{
        const char *coding = http_header(req, "Grpc-Encoding");
        struct message_reader reader = { 0 };
        const uint8_t *body;
        size_t n, used = 0;
        enum status st;

        body = http_body(req, &n);
        st = message_reader_feed(&reader, body, n, message, &used, err);
        if (!st && (!message_reader_is_complete(&reader, message) || used < n))
                st = error_set(err, ST_BAD_DATA, "the body is not one message");
        if (!st && reader.is_compressed) {
                if (!coding || strcmp(coding, "gzip") != 0)
                        return error_set(err, ST_UNSUPPORTED, "the compression '%.40s' is not known; use gzip or none",
                                         coding ? coding : "");
                st = gzip_decompress(message->data, message->size, unpacked, err);
                message = unpacked;
        }
        call->message = message->data;
        call->size = message->size;
        return st;
}

static void run_web_call(const struct grpc_query_service *service, struct http_request *req,
                         const struct querier_method *method)
{
        _cleanup_buf_ struct buf message, unpacked, answer;
        struct query_work work;
        struct service_call call = { .service = service, .tenant = get_request_tenant(req), .work = &work };
        struct error err;
        enum status st;

        buf_init_budget(&message, GRPC_QUERY_BYTES, MEMORY_BODIES);
        buf_init_budget(&unpacked, GRPC_QUERY_BYTES, MEMORY_BODIES);
        buf_init_budget(&answer, LIMIT_RESPONSE_BYTES, MEMORY_ANSWERS);
        query_work_init(&work, req, service->kind);
        st = read_web_message(req, &call, &message, &unpacked, &err);
        if (!st)
                st = run_query_method(&call, method, &answer, &err);
        if (st)
                grpc_query_fail_web(req, grpc_code_from_status(st), err.text);
        else
                respond_web_call(req, &answer);
}

bool grpc_query_is_web(const struct http_request *req)
{
        const char *type = http_header(req, "Content-Type");

        return http_is_type(type, GRPC_WEB_TYPE) || http_is_type(type, "application/grpc-web");
}

void grpc_query_answer_web(const struct grpc_query_service *service, struct http_request *req)
{
        const char *name = http_path_part(req, "method");
        const struct querier_method *method = service->find_method(name);
        char text[160];

        if (method) {
                run_web_call(service, req, method);
                return;
        }
        snprintf(text, sizeof text, "method '%.60s' of %s is not implemented", name, service->name);
        grpc_query_fail_web(req, GRPC_UNIMPLEMENTED, text);
}
