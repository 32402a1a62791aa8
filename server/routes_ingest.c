/* SPDX-License-Identifier: Apache-2.0 */
/* OTLP profiles over HTTP. docs/formats/ingest.md; OTLP specification 1.11.0, OTLP/HTTP. */
#include <string.h>

#include "common/clock.h"
#include "profile-formats/otlp.h"
#include "server/ingest.h"

/* Codes of google.rpc.Code. */
enum { RPC_INVALID_ARGUMENT = 3, RPC_RESOURCE_EXHAUSTED = 8, RPC_INTERNAL = 13, RPC_UNAVAILABLE = 14 };

#define PROTOBUF "application/x-protobuf"

static bool has_type(const char *content_type, const char *want)
{
        size_t n = strlen(want);

        return content_type && strncasecmp(content_type, want, n) == 0 && (!content_type[n] || strchr("; \t", content_type[n]));
}

/* Errors have the body that OTLP gives them, with the text that JSON would have. */
static void fail(struct http_request *req, enum status st, const struct error *err)
{
        unsigned code = st == ST_BAD_DATA || st == ST_USAGE ? 400 : st == ST_TOO_BIG ? 413 : st == ST_BUSY ? 429 : 500;
        uint32_t rpc = code == 400 ? RPC_INVALID_ARGUMENT : code == 500 ? RPC_INTERNAL : RPC_RESOURCE_EXHAUSTED;
        struct buf body;

        ingest_count_failure(st);
        if (code == 500)
                log_error("ingest", "%s", err->text);
        if (code == 429)
                http_set_header(req, "Retry-After", "5");
        buf_init(&body, KiB(4));
        otlp_put_status(&body, rpc, err->text);
        http_respond_buf(req, code, PROTOBUF, &body);
}

static void succeed(struct http_request *req, const struct profile *p)
{
        char message[256];
        struct buf body;

        buf_init(&body, KiB(4));
        snprintf(message, sizeof message, "%llu samples rejected: %s", (unsigned long long)p->rejected_samples,
                 p->rejected_reason);
        otlp_put_response(&body, p->rejected_samples, p->rejected_samples ? message : NULL);
        http_respond_buf(req, 200, PROTOBUF, &body);
}

static void ingest(struct http_request *req, void *context)
{
        struct server *s = context;
        struct profile p;
        struct hash128 id;
        struct error err;
        const uint8_t *body;
        size_t n;
        enum status st;

        if (!has_type(http_header(req, "Content-Type"), PROTOBUF)) {
                ingest_count_failure(ST_UNSUPPORTED);
                http_fail_code(req, 415, "unsupported", "Content-Type '%.60s' is not taken here; send OTLP as " PROTOBUF,
                               http_header(req, "Content-Type") ? http_header(req, "Content-Type") : "(none)");
                return;
        }
        body = http_body(req, &n);
        st = ingest_batch_id(req, &id, &err);
        if (!st)
                st = otlp_decode(body, n, &p, &err);
        if (st) {
                fail(req, st, &err);
                return;
        }
        profile_default_time(&p, wall_clock_ns());
        st = ingest_append(s, &p, id, &err);
        if (st)
                fail(req, st, &err);
        else
                succeed(req, &p);
        profile_deinit(&p);
}

static const struct http_route routes[] = {
        { .method = "POST", .path = "/v1development/profiles", .scope = SCOPE_INGEST, .max_body = LIMIT_HTTP_BODY_BYTES,
          .handle = ingest },
        { .method = "POST", .path = "/v1/profiles", .scope = SCOPE_INGEST, .max_body = LIMIT_HTTP_BODY_BYTES,
          .handle = ingest },
};
const struct route_table ingest_routes = ROUTE_TABLE(routes);
