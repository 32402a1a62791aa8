/* SPDX-License-Identifier: Apache-2.0 */
/* The page at "/" with its assets, and GET /api/v1/query/OPERATION: docs/formats/query-api.md */
#include <string.h>

#include "common/clock.h"
#include "common/metrics.h"
#include "query/formats/assets.h"
#include "query/query.h"
#include "query/query_operations.h"
#include "server/api/debuginfo/object_code.h"
#include "server/api/debuginfo/source_text.h"
#include "server/core/query_work.h"
#include "server/core/route_tables.h"
#include "server/core/server_internal.h"

static struct metric queries = METRIC_COUNTER("cairn_queries_total", "Queries answered.", "");

/* The label of /label/{name}/values is passed as the parameter `name`. */
static const char *get_query_param(void *context, const char *name)
{
        const char *part = strcmp(name, "name") == 0 ? http_path_part(context, "name") : "";

        return *part ? part : http_query(context, name);
}

/* A misspelled parameter would have no effect, and nothing would tell; so would the name of a label beside the one in
 * the path. @return false: refused. */
static bool check_parameter_names(struct http_request *req)
{
        const bool has_label = *http_path_part(req, "name") != 0;
        const char *name;

        for (size_t i = 0; (name = http_query_name(req, i)); i++) {
                if (*http_query(req, name) &&
                    (!query_parameter_exists(name) || (has_label && strcmp(name, "name") == 0))) {
                        http_fail_code(req, 400, "usage", "unknown query parameter '%.80s'", name);
                        return false;
                }
        }
        return true;
}

static void answer_query(struct http_request *req, const char *operation)
{
        struct query_work work;
        struct query_fetches fetches = { .space = get_request_space(req), .req = req };
        const struct query_sources sources = { .read = read_source_text, .context = &fetches };
        const struct query_code code = { .disassemble = disassemble_object,
                                         .find_addresses = find_code_addresses,
                                         .look_up = look_up_code_places,
                                         .context = &fetches };
        struct query_input input = { .param = get_query_param, .param_context = req, .now_unix_ns = wall_clock_ns() };
        struct query_answer answer;
        struct buf body;
        struct error err;
        enum status st;

        if (query_operation_find(operation) && !check_parameter_names(req))
                return;
        buf_init_budget(&body, LIMIT_RESPONSE_BYTES, MEMORY_ANSWERS);
        query_work_init(&work, req, operation);
        input.meter = &work.meter;
        input.report = &work.report;
        input.sources = &sources;
        input.code = &code;
        st = query_run(get_request_tenant(req)->profiles, operation, &input, &body, &answer, &err);
        if (!st) {
                metric_add(&queries, 1);
                query_work_respond(&work, &answer, &body);
                return;
        }
        buf_deinit(&body);
        query_work_answer_failure(&work, st, &err);
}

static void handle_query(struct http_request *req)
{
        answer_query(req, http_path_part(req, "operation"));
}

static void label_values(struct http_request *req)
{
        answer_query(req, "values");
}

/* The page is not cached, so that each load refers to the assets of the running version. */
static void handle_page(struct http_request *req)
{
        struct buf body;

        buf_init_budget(&body, LIMIT_RESPONSE_BYTES, MEMORY_ANSWERS);
        page_put_index(&body);
        http_set_header(req, "Content-Security-Policy", PAGE_INDEX_POLICY);
        http_respond_packed(req, 200, "text/html; charset=utf-8", &body);
}

/* An asset's name is the hash of its content, so browsers may cache it forever. */
static void handle_page_asset(struct http_request *req)
{
        const struct page_asset *asset = page_find_asset(http_path_part(req, "name"));
        struct buf body;

        if (!asset) {
                http_set_header(req, "Cache-Control", "no-store");
                http_fail_code(req, 404, "not_found", "there is no asset with this name; reload the page");
                return;
        }
        http_set_header(req, "Cache-Control", "public, max-age=31536000, immutable");
        if (http_answer_unchanged(req, asset->name))
                return;
        buf_init_budget(&body, LIMIT_RESPONSE_BYTES, MEMORY_ANSWERS);
        buf_append(&body, asset->text, asset->n);
        http_respond_packed(req, 200, asset->content_type, &body);
}

static const struct http_route routes[] = {
        { OPEN_ROUTE("GET", "/"), .handle = handle_page },
        { OPEN_ROUTE("GET", "/assets/{name}"), .handle = handle_page_asset, .cacheable = true },
        { ROUTE("GET", "/api/v1/query/{operation}", SCOPE_READ, TENANCY_OWN), .handle = handle_query },
        { ROUTE("GET", "/api/v1/query/label/{name}/values", SCOPE_READ, TENANCY_OWN), .handle = label_values },
};
const struct route_table query_routes = ROUTE_TABLE(ROLE_QUERY, routes);
