/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_CORE_ROUTE_TABLES_H
#define CAIRN_SERVER_CORE_ROUTE_TABLES_H

/**
 * @file
 * The HTTP routes of the service, one table for each group.
 */
#include "http/http_server.h"
#include "server/core/node_roles.h"

/* Each routes_*.c has a table; api/routes.c joins them. The context of handlers is struct server. */
struct route_table {
        unsigned roles; /* a node with one of these answers its routes */
        const struct http_route *routes;
        size_t count;
};
/* The head of a route: what is requested, the scope that a token needs for it, and whose data it reads or writes. */
#define ROUTE(verb, pattern, needed_scope, data_of)                                                                    \
        .method = (verb), .path = (pattern), .scope = (needed_scope), .tenancy = (data_of)
/* The same for a route that needs no token. */
#define OPEN_ROUTE(verb, pattern) .method = (verb), .path = (pattern), .scope = SCOPE_NONE
#define ROUTE_TABLE(of_roles, items)                                                                                   \
        {                                                                                                              \
                .roles = (of_roles), .routes = (items), .count = sizeof(items) / sizeof *(items)                       \
        }

extern const struct route_table status_routes, ingest_routes, pyroscope_routes, upload_routes, debuginfod_routes,
        debuginfo_routes, upstream_routes, upkeep_routes, source_routes, table_routes, symbolize_routes,
        symbolicate_routes, query_routes, symbolz_routes, why_routes, offsets_routes, connect_upload_routes,
        metadata_routes, resymbolize_routes, store_routes, s3_routes, querier_routes, share_routes, session_routes,
        parca_routes, render_routes, node_routes, recording_routes, collection_routes, node_batch_routes, scrape_routes;

/**
 * All routes. In a read-only service, routes that modify data respond with 403; those of roles that the node does not
 * have respond with 421. Owned by the caller, free().
 */
enum status routes_join(bool read_only, unsigned roles, struct http_route **ret, size_t *count_ret,
                        struct error *err) MUST_CHECK;

#endif
