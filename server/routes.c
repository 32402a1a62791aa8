/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/memory/buf.h"
#include "common/clock.h"
#include "common/metrics.h"
#include "common/config/options.h"
#include "http/server.h"
#include "server/server_internal.h"

bool check_max_size(struct http_request *req, uint64_t size)
{
        const char *header = http_header(req, "X-DEBUGINFOD-MAXSIZE");
        uint64_t max;
        char text[24];

        if (size == 0)
                return true;
        snprintf(text, sizeof text, "%" PRIu64, size);
        http_set_header(req, "X-DEBUGINFOD-SIZE", text);
        if (!header || !parse_uint(header, &max) || max == 0 || size <= max)
                return true;
        http_fail_code(req, 406, "too_big", "the file has %" PRIu64 " bytes, the request allows %" PRIu64, size, max);
        return false;
}

#define USE_LOG_NS 60000000000ll

static const struct route_table *const tables[] = {
        &status_routes,         &ingest_routes,      &pyroscope_routes,   &upload_routes,  &debuginfod_routes,
        &debuginfo_routes,      &upstream_routes,    &upkeep_routes,      &source_routes,  &table_routes,
        &symbolize_routes,      &symbolicate_routes, &query_routes,       &symbolz_routes, &why_routes,
        &connect_upload_routes, &metadata_routes,    &resymbolize_routes, &store_routes,   &s3_routes,
        &querier_routes,        &parca_routes,       &share_routes,       &session_routes, &render_routes,
};

static void refuse_change(struct http_request *req, void *context)
{
        (void)context;
        http_fail_code(req, 403, "read_only",
                       "this service is read-only; send the request to the service that writes the directory");
}

static enum status refuse_chunk(struct http_request *req, void *context, const void *data, size_t *n)
{
        (void)req;
        (void)context;
        (void)data;
        (void)n;
        return ST_USAGE; /* unreachable: begin has responded */
}

static bool modifies_data(const struct http_route *r)
{
        return r->scope == SCOPE_INGEST || r->scope == SCOPE_UPLOAD || r->scope == SCOPE_ADMIN;
}

static enum status fail_tenancy_check(struct http_route *routes, const struct http_route *r, struct error *err)
{
        error_set(err, ST_UNSUPPORTED, "%s %s: a route has a tenancy if, and only if, it needs a scope", r->method,
                  r->path);
        free(routes);
        return ST_UNSUPPORTED;
}

enum status routes_join(bool read_only, struct http_route **ret, size_t *count_ret, struct error *err)
{
        size_t count = 0;
        struct http_route *routes;

        for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
                count += tables[i]->count;
        routes = calloc(count, sizeof *routes);
        if (!routes)
                return error_no_memory(err);
        count = 0;
        for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
                for (size_t k = 0; k < tables[i]->count; k++) {
                        struct http_route *r = &routes[count++];

                        *r = tables[i]->routes[k];
                        if ((r->scope == SCOPE_NONE) != (r->tenancy == TENANCY_UNDECIDED))
                                return fail_tenancy_check(routes, r, err);
                        if (read_only && modifies_data(r))
                                *r = (struct http_route){ .method = r->method,
                                                          .path = r->path,
                                                          .scope = SCOPE_NONE,
                                                          .begin = refuse_change,
                                                          .chunk = refuse_chunk,
                                                          .handle = refuse_change };
                }
        }
        *ret = routes;
        *count_ret = count;
        return ST_OK;
}

bool get_route_build_id(struct http_request *req, struct build_id *ret)
{
        const char *hex = http_path_part(req, "id");

        if (build_id_from_hex(ret, hex, strlen(hex)))
                return true;
        http_fail_code(req, 400, "build_id",
                       "'%.130s' is not a build-id: expected an even number of hexadecimal digits, 2 to 128", hex);
        return false;
}

void respond_json(struct http_request *req, struct buf *body)
{
        buf_append_str(body, "\n");
        http_respond_buf(req, 200, "application/json", body);
}

void respond_result(struct http_request *req, enum status st, struct buf *body, const struct error *err)
{
        if (!st) {
                respond_json(req, body);
                return;
        }
        buf_deinit(body);
        http_fail(req, st, err);
}

static struct metric unrecorded_uses =
        METRIC_COUNTER("cairn_debuginfo_uses_unnoted_total", "Uses of objects that could not be recorded.", "");

/* On a full disk this fails for every request, so it is logged at most once a minute; the metric counts all. */
void record_object_use(struct debuginfo_space *s, const struct build_id *id, enum object_kind kind)
{
        static _Atomic int64_t logged_ns;
        const struct object_name name = { *id, kind };
        int64_t last = atomic_load(&logged_ns), now;
        struct error err;

        metric_register(&unrecorded_uses);
        if (s->options->read_only || !debuginfo_store_note_use(s->objects, &name, 1, &err))
                return;
        metric_add(&unrecorded_uses, 1);
        now = monotonic_ns();
        if ((!last || now - last > USE_LOG_NS) && atomic_compare_exchange_strong(&logged_ns, &last, now))
                log_warn("debuginfod", "cannot record a use: %s", err.text);
}
