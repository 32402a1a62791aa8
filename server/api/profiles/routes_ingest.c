/* SPDX-License-Identifier: Apache-2.0 */
/* OTLP profiles over HTTP. docs/formats/ingest.md; OTLP specification 1.11.0, OTLP/HTTP. */
#include <inttypes.h>
#include <string.h>

#include "profile-formats/otlp/otlp.h"
#include "profile-formats/otlp/otlp_json.h"
#include "server/core/ingest.h"
#include "server/core/route_tables.h"

#define PROTOBUF "application/x-protobuf"
#define JSON "application/json"

/* Errors have OTLP's body: google.rpc.Status with a code of google.rpc.Code, in the request's type. */
static const char *put_status(struct buf *to, const char *type, unsigned code, const char *text)
{
        enum {
                INVALID_ARGUMENT = 3,
                PERMISSION_DENIED = 7,
                RESOURCE_EXHAUSTED = 8,
                INTERNAL = 13,
                UNAVAILABLE = 14,
                UNAUTHENTICATED = 16
        };
        static const struct {
                unsigned http;
                uint32_t rpc;
        } codes[] = {
                { 400, INVALID_ARGUMENT },   { 401, UNAUTHENTICATED },  { 403, PERMISSION_DENIED },
                { 413, RESOURCE_EXHAUSTED }, { 415, INVALID_ARGUMENT }, { 429, RESOURCE_EXHAUSTED },
                { 503, UNAVAILABLE },
        };
        uint32_t rpc = INTERNAL;

        for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
                if (codes[i].http == code)
                        rpc = codes[i].rpc;
        if (http_is_type(type, PROTOBUF)) {
                otlp_put_status(to, rpc, text);
                return PROTOBUF;
        }
        if (http_is_type(type, JSON)) {
                otlp_json_put_status(to, rpc, text);
                return JSON;
        }
        return NULL;
}

static void answer_otlp_success(struct http_request *req, const struct otlp_outcome *r, bool json)
{
        const char *message = r->message[0] ? r->message : NULL;
        char expiring[24];
        struct buf body;

        buf_init(&body, KiB(4));
        snprintf(expiring, sizeof expiring, "%" PRIu64, r->expiring);
        if (r->expiring)
                http_set_header(req, "X-Cairn-Expiring-Samples", expiring);
        if (json)
                otlp_json_put_response(&body, r->rejected, message);
        else
                otlp_put_response(&body, r->rejected, message);
        http_respond_buf(req, 200, json ? JSON : PROTOBUF, &body);
}

static void handle_otlp_ingest(struct http_request *req)
{
        const char *type = http_header(req, "Content-Type");
        struct ingest_batch batch = begin_http_batch(req);
        struct otlp_body body = { .is_json = http_is_type(type, JSON) };
        struct otlp_outcome outcome;
        struct error err;
        enum status st;

        if (!body.is_json && !http_is_type(type, PROTOBUF)) {
                count_ingest_failure(&batch, ST_UNSUPPORTED, "the Content-Type is neither " PROTOBUF " nor " JSON);
                http_fail_code(req, 415, "unsupported",
                               "Content-Type '%.60s' is not supported; send OTLP as " PROTOBUF " or " JSON,
                               type ? type : "(none)");
                return;
        }
        if (!check_history(req, &batch.is_history))
                return;
        body.bytes = http_body(req, &body.size);
        st = read_batch_id(req, &batch.id, &err);
        if (!st)
                st = ingest_otlp_batch(&batch, &body, &outcome, &err);
        if (st)
                fail_ingest(req, st, &err);
        else
                answer_otlp_success(req, &outcome, body.is_json);
}

static const struct http_route routes[] = {
        { ROUTE("POST", "/v1development/profiles", SCOPE_INGEST, TENANCY_OWN), .pool = POOL_INGEST,
          .max_body = LIMIT_HTTP_BODY_BYTES, .handle = handle_otlp_ingest, .put_error = put_status },
        { ROUTE("POST", "/v1/profiles", SCOPE_INGEST, TENANCY_OWN), .pool = POOL_INGEST,
          .max_body = LIMIT_HTTP_BODY_BYTES, .handle = handle_otlp_ingest, .put_error = put_status },
};
const struct route_table ingest_routes = ROUTE_TABLE(ROLE_INGEST | ROLE_GATEWAY, routes);
