/* SPDX-License-Identifier: Apache-2.0 */
/* OTLP profiles over HTTP. docs/formats/ingest.md; OTLP specification 1.11.0, OTLP/HTTP. */
#include <string.h>

#include "common/clock.h"
#include "profile-formats/otlp.h"
#include "profile-formats/otlp_json.h"
#include "server/routes/ingest.h"

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

/* A duplicate is a success, and the message a warning: partial_success with nothing rejected. */
static void answer_otlp_success(struct http_request *req, const struct profile *p, bool duplicate, bool json)
{
        static const char again[] = "this batch was received before: nothing was added";
        char message[400] = "";
        struct buf body;

        buf_init(&body, KiB(4));
        if (p->rejected_samples)
                snprintf(message, sizeof message, "%s%s%llu samples rejected: %s", duplicate ? again : "",
                         duplicate ? "; " : "", (unsigned long long)p->rejected_samples, p->rejected_reason);
        else if (duplicate)
                snprintf(message, sizeof message, "%s", again);
        if (json)
                otlp_json_put_response(&body, p->rejected_samples, *message ? message : NULL);
        else
                otlp_put_response(&body, p->rejected_samples, *message ? message : NULL);
        http_respond_buf(req, 200, json ? JSON : PROTOBUF, &body);
}

static void handle_otlp_ingest(struct http_request *req, void *context)
{
        struct server *s = context;
        const char *type = http_header(req, "Content-Type");
        bool json = http_is_type(type, JSON);
        struct profile p;
        struct hash128 id;
        struct error err;
        const uint8_t *body;
        bool is_history, duplicate;
        size_t n;
        enum status st;

        if (!json && !http_is_type(type, PROTOBUF)) {
                count_ingest_failure(ST_UNSUPPORTED);
                http_fail_code(req, 415, "unsupported",
                               "Content-Type '%.60s' is not supported; send OTLP as " PROTOBUF " or " JSON,
                               type ? type : "(none)");
                return;
        }
        if (!check_history(req, &is_history))
                return;
        body = http_body(req, &n);
        st = read_batch_id(req, &id, &err);
        if (!st)
                st = json ? otlp_json_decode(body, n, &p, &err) : otlp_decode(body, n, &p, &err);
        if (st) {
                fail_ingest(req, st, &err);
                return;
        }
        profile_set_missing_times(&p, wall_clock_ns());
        st = append_ingested_batch(s, &p, id, is_history, &duplicate, &err);
        if (st)
                fail_ingest(req, st, &err);
        else
                answer_otlp_success(req, &p, duplicate, json);
        profile_deinit(&p);
}

static const struct http_route routes[] = {
        { .pool = POOL_INGEST,
          .method = "POST",
          .path = "/v1development/profiles",
          .scope = SCOPE_INGEST,
          .max_body = LIMIT_HTTP_BODY_BYTES,
          .handle = handle_otlp_ingest,
          .put_error = put_status },
        { .pool = POOL_INGEST,
          .method = "POST",
          .path = "/v1/profiles",
          .scope = SCOPE_INGEST,
          .max_body = LIMIT_HTTP_BODY_BYTES,
          .handle = handle_otlp_ingest,
          .put_error = put_status },
};
const struct route_table ingest_routes = ROUTE_TABLE(routes);
