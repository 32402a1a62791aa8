/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of stored and missing debuginfo. */
#include <string.h>

#include "common/clock.h"
#include "query/query.h"
#include "server/api/debuginfo/debuginfo_list.h"
#include "server/core/query_work.h"
#include "server/core/route_tables.h"
#include "server/core/server_internal.h"
#include "server/protocol/respond.h"

static void handle_list(struct http_request *req)
{
        struct debuginfo_space *s = get_request_space(req);
        struct buf body;
        struct error err;

        buf_init_budget(&body, LIMIT_RESPONSE_BYTES, MEMORY_ANSWERS);
        respond_result(req, write_debuginfo_list(s->objects, s->symbols, &body, &err), &body, &err);
}

/* Covers all samples by default. */
static const char *get_missing_param(void *context, const char *name)
{
        const char *value = http_query(context, name);

        if (strcmp(name, "format") == 0)
                return NULL;
        return strcmp(name, "from") == 0 && (!value || !*value) ? "0" : value;
}

static void handle_missing(struct http_request *req)
{
        struct query_input input = { .param = get_missing_param, .param_context = req, .now_unix_ns = wall_clock_ns() };
        struct query_answer answer;
        struct query_work work;
        struct buf body;
        struct error err;
        enum status st;

        buf_init_budget(&body, LIMIT_RESPONSE_BYTES, MEMORY_ANSWERS);
        query_work_init(&work, req, "uploads");
        input.meter = &work.meter;
        input.report = &work.report;
        st = query_run(get_request_tenant(req)->profiles, "uploads", &input, &body, &answer, &err);
        if (!st) {
                query_work_finish(&work, &body);
                respond_json(req, &body);
                return;
        }
        buf_deinit(&body);
        query_work_answer_failure(&work, st, &err);
}

static const struct http_route routes[] = {
        { ROUTE("GET", "/api/v1/debuginfo", SCOPE_READ, TENANCY_SPACE), .handle = handle_list },
        { ROUTE("GET", "/api/v1/debuginfo/missing", SCOPE_READ, TENANCY_OWN), .handle = handle_missing },
};
const struct route_table debuginfo_routes = ROUTE_TABLE(ROLE_DEBUGINFOD, routes);
