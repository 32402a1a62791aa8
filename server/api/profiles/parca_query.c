/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parca.query.v1alpha1.QueryService over gRPC, and over gRPC-Web for Grafana's Parca data source. The methods are
 * implemented in query/querier/parca.c. docs/formats/parca.md
 */
#include "grpc/message_reader.h"
#include "server/core/route_tables.h"
#include "server/core/server_internal.h"
#include "server/protocol/grpc_query.h"
#include "server/protocol/parca_methods.h"

static struct metric parca_calls =
        METRIC_COUNTER("cairn_parca_calls_total", "Calls of Parca's query API answered.", "");

static const struct grpc_query_service service = { .name = "parca.query.v1alpha1.QueryService",
                                                   .kind = "parca",
                                                   .find_method = querier_find_parca_method,
                                                   .calls = &parca_calls };

void handle_parca_query(struct grpc_call *call, void *context)
{
        grpc_query_answer(&service, call, context);
}

static void handle_parca_web_query(struct http_request *req)
{
        if (grpc_query_is_web(req))
                grpc_query_answer_web(&service, req);
        else
                http_fail_code(req, 415, "unsupported",
                               "Parca's queries are gRPC-Web: send " GRPC_WEB_TYPE
                               ", or gRPC to the address of --listen-otlp-grpc");
}

static const struct http_route routes[] = {
        { ROUTE("POST", "/parca.query.v1alpha1.QueryService/{method}", SCOPE_READ, TENANCY_OWN),
          .max_body = GRPC_QUERY_BYTES + MESSAGE_PREFIX_BYTES, .handle = handle_parca_web_query },
};
const struct route_table parca_routes = ROUTE_TABLE(ROLE_QUERY, routes);
