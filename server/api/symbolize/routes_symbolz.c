/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Symbol requests of `go tool pprof URL`: it posts addresses without names to "symbolz" in the profile's folder, or in
 * the root folder (Go 1.19), and fails when that request fails. The profile already has all names that Cairn has, so
 * the answer is empty. Source: pprof, internal/symbolz/symbolz.go.
 */
#include <string.h>

#include "server/core/route_tables.h"
#include "server/core/server_internal.h"

static void handle_symbolz(struct http_request *req)
{
        static const char none[] = "num_symbols: 0\n";

        http_respond(req, 200, "text/plain; charset=utf-8", none, strlen(none));
}

static const struct http_route routes[] = {
        { ROUTE("POST", "/api/v1/query/symbolz", SCOPE_READ, TENANCY_SPACE), .max_body = LIMIT_HTTP_BODY_BYTES,
          .duration = &symbolize_duration, .handle = handle_symbolz },
        { ROUTE("POST", "/symbolz", SCOPE_READ, TENANCY_SPACE), .max_body = LIMIT_HTTP_BODY_BYTES,
          .duration = &symbolize_duration, .handle = handle_symbolz },
        { ROUTE("POST", "/share/{id}/symbolz", SCOPE_READ, TENANCY_SPACE), .max_body = LIMIT_HTTP_BODY_BYTES,
          .duration = &symbolize_duration, .handle = handle_symbolz },
};
const struct route_table symbolz_routes = ROUTE_TABLE(ROLE_QUERY, routes);
