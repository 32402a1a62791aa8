/* SPDX-License-Identifier: Apache-2.0 */
/* Re-symbolization on request, and its progress. */
#include <string.h>

#include "common/clock.h"
#include "common/json/json_out.h"
#include "common/json/json_value.h"
#include "pipeline/id_set.h"
#include "pipeline/resymbolize_report.h"
#include "query/engine/unit_text.h"
#include "server/core/route_tables.h"
#include "server/core/server_internal.h"
#include "server/protocol/respond.h"

#define MAX_RESYMBOLIZE_IDS 100000

/* ---- request ---- */

static enum status read_build_ids(const struct json_value *ids, struct id_set *ret, struct error *err)
{
        struct json_value item;
        char hex[BUILD_ID_HEX_MAX];
        struct json_scan items;
        enum status st = ST_OK;

        if (!json_value_open_array(ids, &items))
                return error_set(err, ST_BAD_DATA, "'build_ids' is not an array");
        if (json_value_count(ids, MAX_RESYMBOLIZE_IDS) > MAX_RESYMBOLIZE_IDS)
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

static enum status read_since(const struct json_value *since, int64_t *ret, struct error *err)
{
        char text[64];
        int64_t ns;
        enum status st;

        if (!json_value_copy(since, text, sizeof text))
                return error_set(err, ST_BAD_DATA, "'since' is not a time as text, such as \"now-1h\"");
        st = time_text_parse(text, wall_clock_ns(), &ns, err);
        if (!st)
                *ret = ns > 1000000000 ? ns / 1000000000 : 1;
        return st;
}

/* An empty body, or {"build_ids": [...], "since": "TIME", "dry_run": true}; no build_ids means all. */
static enum status read_resymbolize_request(struct http_request *req, struct id_set *ids,
                                            struct resymbolize_request *ret, struct error *err)
{
        static const char *const members[] = { "build_ids", "since", "dry_run", NULL };
        struct json_value body, member;
        const uint8_t *data;
        size_t n;
        enum status st;

        data = http_body(req, &n);
        if (n == 0)
                return ST_OK;
        st = json_value_parse(data, n, &body, err);
        if (!st)
                st = json_value_check_members(&body, members, err);
        if (!st && json_value_member(&body, "build_ids", &member))
                st = read_build_ids(&member, ids, err);
        if (!st && json_value_member(&body, "since", &member))
                st = read_since(&member, &ret->indexed_since_unix_s, err);
        if (!st && json_value_member(&body, "dry_run", &member) && !json_value_bool(&body, "dry_run", &ret->dry_run))
                st = error_set(err, ST_BAD_DATA, "'dry_run' is neither true nor false");
        ret->ids = ids->items;
        ret->count = ids->count;
        return st;
}

/* ---- progress ---- */

static void set_resymbolize_progress(void *context, uint64_t done, uint64_t all)
{
        struct tenant *t = context;

        atomic_store(&t->resymbolize_done, done);
        atomic_store(&t->resymbolize_all, all);
}

static void handle_progress(struct http_request *req)
{
        struct tenant *t = get_request_tenant(req);
        struct json_out j;
        struct buf body;

        buf_init(&body, KiB(1));
        json_out_init(&j, &body);
        json_out_object(&j, NULL);
        json_out_uint(&j, "running", atomic_load(&t->resymbolize_running));
        json_out_uint(&j, "locations_done", atomic_load(&t->resymbolize_done));
        json_out_uint(&j, "locations_all", atomic_load(&t->resymbolize_all));
        json_out_object_end(&j);
        respond_json(req, &body);
}

static void handle_resymbolize(struct http_request *req)
{
        struct tenant *t = get_request_tenant(req);
        struct resymbolize_request request = { .progress = set_resymbolize_progress, .context = t };
        struct id_set ids = { 0 };
        struct buf body;
        struct error err;
        enum status st = read_resymbolize_request(req, &ids, &request, &err);

        buf_init(&body, KiB(16));
        if (!st) {
                atomic_fetch_add(&t->resymbolize_running, 1);
                st = resymbolize_and_report(t->profiles, &request, get_request_space(req)->counts, &body, &err);
                atomic_fetch_sub(&t->resymbolize_running, 1);
        }
        id_set_deinit(&ids);
        respond_result(req, st, &body, &err);
}

static const struct http_route routes[] = {
        { ROUTE("GET", "/api/v1/resymbolize", SCOPE_READ, TENANCY_OWN), .pool = POOL_STATUS,
          .handle = handle_progress },
        { ROUTE("POST", "/api/v1/resymbolize", SCOPE_ADMIN, TENANCY_OWN), .pool = POOL_ADMIN,
          .max_body = LIMIT_HTTP_JSON_BYTES, .body_type = "application/json", .handle = handle_resymbolize,
          .writes = true },
};
const struct route_table resymbolize_routes = ROUTE_TABLE(ROLE_SYMBOLIZE, routes);
