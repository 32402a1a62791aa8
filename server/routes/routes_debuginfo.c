/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of stored and of missing debuginfo; re-symbolization. */
#include <string.h>

#include "common/clock.h"
#include "common/json_out.h"
#include "common/json_value.h"
#include "query/query.h"
#include "server/routes/debuginfo_list.h"
#include "pipeline/id_set.h"
#include "server/routes/query_work.h"
#include "server/server_internal.h"

#define MAX_RESYMBOLIZE_IDS 100000

static void handle_list(struct http_request *req, void *context)
{
        struct server *s = context;
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

static void handle_missing(struct http_request *req, void *context)
{
        struct server *s = context;
        const char *content_type;
        struct query_work work;
        struct buf body;
        struct error err;
        enum status st;

        buf_init_budget(&body, LIMIT_RESPONSE_BYTES, MEMORY_ANSWERS);
        query_work_init(&work, req);
        st = query_run(s->profiles, "uploads", get_missing_param, req, wall_clock_ns(), &work.meter, &body,
                       &content_type, &err);
        if (!st) {
                respond_json(req, &body);
                return;
        }
        buf_deinit(&body);
        query_work_answer_failure(&work, st, &err);
}

/* An empty body, or {"build_ids": [...]}: none means all. */
static enum status read_resymbolize_ids(struct http_request *req, struct id_set *ret, struct error *err)
{
        struct json_value request, ids, item;
        char hex[BUILD_ID_HEX_MAX];
        struct json_scan items;
        const uint8_t *data;
        size_t n;
        enum status st;

        data = http_body(req, &n);
        if (n == 0)
                return ST_OK;
        st = json_value_parse(data, n, &request, err);
        if (st || !json_value_member(&request, "build_ids", &ids) || !json_value_open_array(&ids, &items))
                return st;
        if (json_value_count(&ids, MAX_RESYMBOLIZE_IDS) > MAX_RESYMBOLIZE_IDS)
                return error_set(err, ST_TOO_BIG, "'build_ids' has more than %d entries", MAX_RESYMBOLIZE_IDS);
        while (!st && json_value_next(&items, &item)) {
                struct build_id id;

                if (!json_value_copy(&item, hex, sizeof hex) || !build_id_from_hex(&id, hex, strlen(hex)))
                        st = error_set(err, ST_BAD_DATA, "'build_ids' holds something that is not a build-id");
                else if (id_set_add(ret, &id))
                        st = error_no_memory(err);
        }
        return st;
}

static void handle_resymbolize(struct http_request *req, void *context)
{
        struct server *s = context;
        struct resymbolize_result result = { 0 };
        struct id_set ids = { 0 };
        struct json_out j;
        struct buf body;
        struct error err;
        enum status st = read_resymbolize_ids(req, &ids, &err);

        if (!st)
                st = profile_store_resymbolize(s->profiles, ids.items, ids.count, NULL, NULL, &result, &err);
        id_set_deinit(&ids);
        buf_init(&body, KiB(4));
        json_out_init(&j, &body);
        json_out_object(&j, NULL);
        json_out_uint(&j, "locations_seen", result.locations_seen);
        json_out_uint(&j, "locations_changed", result.locations_changed);
        json_out_uint(&j, "files_rewritten", result.files_rewritten);
        json_out_object_end(&j);
        respond_result(req, st, &body, &err);
}

static const struct http_route routes[] = {
        { .method = "GET", .path = "/api/v1/debuginfo", .scope = SCOPE_READ, .handle = handle_list },
        { .method = "GET", .path = "/api/v1/debuginfo/missing", .scope = SCOPE_READ, .handle = handle_missing },
        { .method = "POST",
          .path = "/api/v1/resymbolize",
          .scope = SCOPE_ADMIN,
          .max_body = LIMIT_HTTP_JSON_BYTES,
          .body_type = "application/json",
          .pool = POOL_ADMIN,
          .handle = handle_resymbolize,
          .writes = true },
};
const struct route_table debuginfo_routes = ROUTE_TABLE(routes);
