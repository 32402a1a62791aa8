/* SPDX-License-Identifier: Apache-2.0 */
/* POST /api/v1/symbolize: docs/formats/symbolize.md */
#include "common/metrics.h"
#include "server/api/symbolize/symbolize_stream.h"
#include "server/core/route_tables.h"
#include "server/core/server_internal.h"

static struct metric looked_up =
        METRIC_COUNTER("cairn_symbolize_addresses_total", "Addresses requested over HTTP.", "");

struct histogram symbolize_duration =
        HISTOGRAM("cairn_symbolize_duration_seconds",
                  "Time from the last byte of a symbolization request until its answer begins.", "");

static bool is_proto(const char *type)
{
        return http_is_type(type, "application/x-protobuf") || http_is_type(type, "application/protobuf");
}

static bool wants_proto(struct http_request *req, bool is_proto_request)
{
        const char *accept = http_header(req, "Accept");

        if (is_proto(accept))
                return true;
        return is_proto_request && !http_is_type(accept, "application/json");
}

static void handle_symbolize(struct http_request *req)
{
        struct debuginfo_space *s = get_request_space(req);
        struct symbolize_request request = { 0 };
        bool proto = is_proto(http_header(req, "Content-Type"));
        struct error err;
        const uint8_t *data;
        size_t n;
        enum status st;

        data = http_body(req, &n);
        st = proto ? symbolize_request_read_proto(data, n, &request, &err)
                   : symbolize_request_read_json(data, n, &request, &err);
        http_free_body(req);
        if (!st && !s->symbols)
                st = error_set(&err, ST_NOT_FOUND, "this read-only service has no symbol index; use another service");
        if (st) {
                symbolize_request_deinit(&request);
                http_fail(req, st, &err);
                return;
        }
        for (size_t i = 0; i < request.object_count && !deadline_expired(http_request_deadline(req)); i++)
                scan_demand_request(&s->scan_demand, &request.objects[i].id);
        metric_add(&looked_up, (int64_t)request.address_count);
        answer_symbolize(req, s->symbols, s->symbol_texts, &request,
                         wants_proto(req, proto) ? symbolize_proto_create() : symbolize_json_create());
}

static const struct http_route routes[] = {
        { ROUTE("POST", "/api/v1/symbolize", SCOPE_READ, TENANCY_SPACE), .pool = POOL_SYMBOLIZE,
          .max_body = LIMIT_HTTP_BODY_BYTES, .duration = &symbolize_duration, .handle = handle_symbolize },
};
const struct route_table symbolize_routes = ROUTE_TABLE(ROLE_SYMBOLIZE, routes);
