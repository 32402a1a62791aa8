/* SPDX-License-Identifier: Apache-2.0 */
/* POST /symbolicate/v5: docs/formats/symbolicate.md */
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/metrics.h"
#include "server/scanned.h"
#include "server/server_internal.h"
#include "server/symbolicate_answer.h"

#define ALLOWED_HEADERS "Authorization, Content-Type, User-Agent" /* the Firefox Profiler says who it is */

static struct metric looked_up = METRIC_COUNTER("cairn_symbolicate_frames_total",
                                                "Frames asked for over Mozilla's symbolication API.", "");

/*
 * Pages of the named origins may read the answer (Fetch standard, CORS). None
 * are unless the service is told so: a page that somebody on this network opens
 * could read names and paths of a service that has no tokens.
 */
static bool allow_origin(struct http_request *req)
{
        bool allowed = http_origin_is_allowed(req);

        if (allowed) {
                http_set_header(req, "Access-Control-Allow-Origin", http_header(req, "Origin"));
                http_set_header(req, "Vary", "Origin");
        }
        return allowed;
}

static void preflight(struct http_request *req, void *context)
{
        (void)context;
        if (allow_origin(req)) {
                http_set_header(req, "Access-Control-Allow-Methods", "POST, OPTIONS");
                http_set_header(req, "Access-Control-Allow-Headers", ALLOWED_HEADERS);
                http_set_header(req, "Access-Control-Max-Age", "86400");
        }
        http_respond(req, 204, NULL, "", 0);
}

/* An object that is but in a scanned tree is indexed when somebody asks for addresses of it. */
static enum status ask_for_modules(struct server *s, const struct symbolicate_request *r, struct error *err)
{
        _cleanup_free_ bool *is_used = calloc(r->module_count + 1, sizeof *is_used);

        if (!is_used)
                return error_no_memory(err);
        for (size_t i = 0; i < r->frame_count; i++)
                if (r->frames[i].module != UINT32_MAX)
                        is_used[r->frames[i].module] = true;
        for (size_t i = 0; i < r->module_count; i++)
                if (is_used[i] && r->modules[i].is_valid)
                        scanned_ask_alike(s, r->modules[i].guid, DEBUG_ID_GUID_BYTES);
        return ST_OK;
}

static void symbolicate(struct http_request *req, void *context)
{
        struct server *s = context;
        struct symbolicate_request request;
        struct error err;
        const uint8_t *data;
        size_t n;
        enum status st;

        allow_origin(req);
        data = http_body(req, &n);
        st = symbolicate_request_read(data, n, &request, &err);
        http_body_done(req);
        if (!st && !s->symbols)
                st = error_set(&err, ST_NOT_FOUND, "this read-only service has no symbol index; ask one that has");
        if (!st && s->scan)
                st = ask_for_modules(s, &request, &err);
        if (st) {
                symbolicate_request_deinit(&request);
                http_fail(req, st, &err);
                return;
        }
        metric_add(&looked_up, (int64_t)request.frame_count);
        symbolicate_answer(req, s->symbols, s->symbol_texts, &request);
}

static const struct http_route routes[] = {
        { .pool = POOL_SYMBOLIZE, .method = "POST", .path = "/symbolicate/v5", .scope = SCOPE_READ, .max_body = LIMIT_HTTP_BODY_BYTES,
          .handle = symbolicate, .cross_origin = true },
        { .pool = POOL_SYMBOLIZE, .method = "OPTIONS", .path = "/symbolicate/v5", .scope = SCOPE_NONE, .handle = preflight,
          .cross_origin = true },
};
const struct route_table symbolicate_routes = ROUTE_TABLE(routes);
