/* SPDX-License-Identifier: Apache-2.0 */
/* The page at "/", and GET /api/v1/query/OPERATION: docs/formats/query-api.md */
#include "common/clock.h"
#include "common/metrics.h"
#include "query/assets.h"
#include "query/query.h"
#include "server/server_internal.h"

static struct metric queries = METRIC_COUNTER("cairn_queries_total", "Questions answered.", "");

static const char *param(void *context, const char *name)
{
        return http_query(context, name);
}

static void query(struct http_request *req, void *context)
{
        struct server *s = context;
        const char *content_type;
        struct buf body;
        struct error err;
        enum status st;

        buf_init(&body, LIMIT_RESPONSE_BYTES);
        st = query_run(s->profiles, http_path_part(req, "operation"), param, req, wall_clock_ns(), &body, &content_type, &err);
        if (!st) {
                metric_add(&queries, 1);
                http_respond_buf(req, 200, content_type, &body);
                return;
        }
        buf_deinit(&body);
        http_fail(req, st, &err);
}

static void page(struct http_request *req, void *context)
{
        struct buf body;

        (void)context;
        buf_init(&body, MiB(16));
        page_put_index(&body);
        http_respond_buf(req, 200, "text/html; charset=utf-8", &body);
}

static const struct http_route routes[] = {
        { .method = "GET", .path = "/", .handle = page },
        { .method = "GET", .path = "/api/v1/query/{operation}", .scope = SCOPE_READ, .handle = query },
};
const struct route_table query_routes = ROUTE_TABLE(routes);
