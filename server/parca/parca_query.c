/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parca.query.v1alpha1.QueryService over gRPC, and over gRPC-Web for Grafana's Parca data source. The methods are
 * implemented in query/querier/parca.c. docs/formats/parca.md; gRPC-Web: PROTOCOL-WEB.md of grpc/grpc.
 */
#include <string.h>

#include "common/clock.h"
#include "common/compress/compress.h"
#include "common/metrics.h"
#include "grpc/message_reader.h"
#include "query/querier/querier.h"
#include "server/parca/grpc_unary.h"
#include "server/parca/parca_methods.h"
#include "server/routes/profiles/query_work.h"
#include "server/server_internal.h"
#include "server/tenants.h"

#define SERVICE "/parca.query.v1alpha1.QueryService/"
#define REQUEST_MEMORY_BYTES MiB(8) /* decoded from a body of at most PARCA_QUERY_BYTES */
#define TRAILERS_FLAG 0x80
#define WEB_TYPE "application/grpc-web+proto"

static struct metric parca_calls =
        METRIC_COUNTER("cairn_parca_calls_total", "Calls of Parca's query API answered.", "");

/* One call, over either transport. */
struct parca_call {
        struct tenant *tenant;
        const uint8_t *message;
        size_t size;
        struct query_work *work;
};

static enum status run_parca_method(const struct parca_call *call, const struct querier_method *method, struct buf *ret,
                                    struct error *err)
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
        query_work_finish(call->work);
        metric_add(&parca_calls, 1);
        return buf_status(ret, err, "the answer");
}

/* ---- gRPC ---- */

void handle_parca_query(struct grpc_call *grpc, void *context)
{
        const struct querier_method *method = querier_find_parca_method(grpc_call_path(grpc) + strlen(SERVICE));
        struct server *s = context;
        struct query_work work;
        const struct tenant *tenant = grpc_call_tenant(grpc);
        const struct query_bounds bounds = { .kind = "parca",
                                             .target = grpc_call_path(grpc),
                                             .tenant = tenant->name,
                                             .arrived_ns = grpc_call_arrived_ns(grpc),
                                             .deadline = grpc_call_deadline(grpc),
                                             .stopping = &s->stopping };
        struct parca_call call = { .tenant = grpc_call_tenant(grpc), .work = &work };
        struct error err;
        struct buf answer;
        enum status st;

        call.message = grpc_call_message(grpc, &call.size);
        query_work_init_other(&work, &bounds);
        buf_init_budget(&answer, LIMIT_RESPONSE_BYTES, MEMORY_ANSWERS);
        st = run_parca_method(&call, method, &answer, &err);
        if (!st) {
                grpc_call_reply(grpc, &answer);
                return;
        }
        buf_deinit(&answer);
        grpc_call_fail_status(grpc, st, &err);
}

/* ---- gRPC-Web: gRPC frames in the body of an HTTP/1.1 message; the last frame has the trailers ---- */

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

static void fail_web_call(struct http_request *req, enum grpc_code code, const char *text)
{
        struct buf body;

        buf_init(&body, KiB(8));
        put_web_trailers(&body, code, text);
        http_respond_buf(req, 200, WEB_TYPE, &body);
}

static void respond_web_call(struct http_request *req, const struct buf *answer)
{
        struct buf body;

        buf_init_budget(&body, LIMIT_RESPONSE_BYTES, MEMORY_ANSWERS);
        put_message_prefix(&body, (uint32_t)answer->size);
        if (answer->size)
                buf_append(&body, answer->data, answer->size);
        put_web_trailers(&body, GRPC_OK, "");
        http_respond_buf(req, 200, WEB_TYPE, &body);
}

/* Read the only message of a body. @param unpacked  holds it if it was compressed. */
static enum status read_web_message(struct http_request *req, struct parca_call *call, struct buf *message,
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

static void run_web_call(struct http_request *req, const struct querier_method *method)
{
        _cleanup_buf_ struct buf message, unpacked, answer;
        struct query_work work;
        struct parca_call call = { .tenant = get_request_tenant(req), .work = &work };
        struct error err;
        enum status st;

        buf_init_budget(&message, PARCA_QUERY_BYTES, MEMORY_BODIES);
        buf_init_budget(&unpacked, PARCA_QUERY_BYTES, MEMORY_BODIES);
        buf_init_budget(&answer, LIMIT_RESPONSE_BYTES, MEMORY_ANSWERS);
        query_work_init(&work, req, "parca");
        st = read_web_message(req, &call, &message, &unpacked, &err);
        if (!st)
                st = run_parca_method(&call, method, &answer, &err);
        if (st)
                fail_web_call(req, grpc_code_from_status(st), err.text);
        else
                respond_web_call(req, &answer);
}

static void handle_parca_web_query(struct http_request *req, void *context)
{
        const char *type = http_header(req, "Content-Type"), *name = http_path_part(req, "method");
        const struct querier_method *method = querier_find_parca_method(name);
        char text[160];

        (void)context;
        snprintf(text, sizeof text, "method '%.60s' of parca.query.v1alpha1.QueryService is not implemented", name);
        if (!http_is_type(type, WEB_TYPE) && !http_is_type(type, "application/grpc-web"))
                http_fail_code(req, 415, "unsupported",
                               "Parca's queries are gRPC-Web: send " WEB_TYPE
                               ", or gRPC to the address of --listen-otlp-grpc");
        else if (!method)
                fail_web_call(req, GRPC_UNIMPLEMENTED, text);
        else
                run_web_call(req, method);
}

static const struct http_route routes[] = {
        { .method = "POST",
          .path = SERVICE "{method}",
          .scope = SCOPE_READ,
          .tenancy = TENANCY_OWN,
          .max_body = PARCA_QUERY_BYTES + MESSAGE_PREFIX_BYTES,
          .handle = handle_parca_web_query },
};
const struct route_table parca_routes = ROUTE_TABLE(routes);
