/* SPDX-License-Identifier: Apache-2.0 */
/*
 * querier.v1.QuerierService, which Grafana's Pyroscope data source and Profiles Drilldown call, over Connect, gRPC and
 * gRPC-Web, and "unimplemented" errors for its sibling services. docs/formats/querier.md
 */
#include "common/clock.h"
#include "common/metrics.h"
#include "grpc/message_reader.h"
#include "query/querier/querier.h"
#include "server/api/profiles/querier_methods.h"
#include "server/core/query_work.h"
#include "server/core/route_tables.h"
#include "server/core/server_internal.h"
#include "server/protocol/connect_unary.h"
#include "server/protocol/grpc_query.h"

static struct metric querier_calls = METRIC_COUNTER("cairn_querier_calls_total", "Calls of querier.v1 answered.", "");

static const struct grpc_query_service service = { .name = "querier.v1.QuerierService",
                                                   .kind = "querier",
                                                   .find_method = querier_find_method,
                                                   .calls = &querier_calls };

void handle_querier_call(struct grpc_call *call, void *context)
{
        grpc_query_answer(&service, call, context);
}

static void answer_querier_call(struct connect_unary *call, const struct querier_method *method)
{
        struct query_work work;
        const struct querier_input input = { .method = method,
                                             .request = call->message,
                                             .now_unix_ns = wall_clock_ns(),
                                             .meter = &work.meter,
                                             .report = &work.report };
        _cleanup_arena_ struct arena memory;
        const ProtobufCMessage *answer;
        struct buf body;
        struct error err;
        enum status st;

        arena_init_budget(&memory, LIMIT_PROFILE_MEMORY_BYTES, MEMORY_QUERIES);
        query_work_init(&work, call->req, "querier");
        st = querier_run(get_request_tenant(call->req)->profiles, &input, &memory, &answer, &err);
        if (st) {
                query_work_answer_failure(&work, st, &err);
                return;
        }
        connect_unary_write(call, answer, &body);
        if (query_work_finish(&work, &body))
                metric_add(&querier_calls, 1);
        connect_unary_respond_body(call, &body);
}

static void handle_querier(struct http_request *req)
{
        const struct querier_method *method = querier_find_method(http_path_part(req, "method"));
        _cleanup_connect_unary_ struct connect_unary call = { 0 };

        if (grpc_query_is_web(req)) {
                grpc_query_answer_web(&service, req);
                return;
        }
        if (!method) {
                http_fail_code(req, 501, "unimplemented",
                               "method '%.60s' of querier.v1.QuerierService is not implemented",
                               http_path_part(req, "method"));
                return;
        }
        if (connect_unary_begin(req, querier_get_request_type(method), &call))
                answer_querier_call(&call, method);
}

static void refuse_service(struct http_request *req)
{
        static const char text[] = "Cairn does not implement this service";

        if (grpc_query_is_web(req))
                grpc_query_fail_web(req, GRPC_UNIMPLEMENTED, text);
        else
                http_fail_code(req, 501, "unimplemented", "%s", text);
}

static const struct http_route routes[] = {
        { ROUTE("POST", "/querier.v1.QuerierService/{method}", SCOPE_READ, TENANCY_OWN),
          .max_body = GRPC_QUERY_BYTES + MESSAGE_PREFIX_BYTES, .handle = handle_querier,
          .put_error = connect_put_query_error },
        { ROUTE("POST", "/vcs.v1.VCSService/{method}", SCOPE_READ, TENANCY_OWN), .max_body = GRPC_QUERY_BYTES,
          .handle = refuse_service, .put_error = connect_put_query_error },
        { ROUTE("POST", "/settings.v1.SettingsService/{method}", SCOPE_READ, TENANCY_OWN), .max_body = GRPC_QUERY_BYTES,
          .handle = refuse_service, .put_error = connect_put_query_error },
        { ROUTE("POST", "/adhocprofiles.v1.AdHocProfileService/{method}", SCOPE_READ, TENANCY_OWN),
          .max_body = GRPC_QUERY_BYTES, .handle = refuse_service, .put_error = connect_put_query_error },
        { ROUTE("POST", "/capabilities.v1.FeatureFlagsService/{method}", SCOPE_READ, TENANCY_OWN),
          .max_body = GRPC_QUERY_BYTES, .handle = refuse_service, .put_error = connect_put_query_error },
};
const struct route_table querier_routes = ROUTE_TABLE(ROLE_QUERY, routes);
