/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "common/error.h"
#include <string.h>

#include "server/core/route_tables.h"
#include "server/core/server_internal.h"

static const struct route_table *const tables[] = {
        &status_routes,    &ingest_routes,         &pyroscope_routes, &upload_routes,      &debuginfod_routes,
        &debuginfo_routes, &upstream_routes,       &upkeep_routes,    &source_routes,      &table_routes,
        &symbolize_routes, &symbolicate_routes,    &query_routes,     &symbolz_routes,     &why_routes,
        &offsets_routes,   &connect_upload_routes, &metadata_routes,  &resymbolize_routes, &store_routes,
        &s3_routes,        &querier_routes,        &parca_routes,     &share_routes,       &session_routes,
        &render_routes,    &node_routes,           &recording_routes, &collection_routes,  &node_batch_routes,
        &scrape_routes,
};

static void refuse_change(struct http_request *req)
{
        http_fail_code(req, 403, "read_only",
                       "this service is read-only; send the request to the service that writes the directory");
}

/* The roles of which one answers a route. */
static unsigned get_route_roles(const struct http_route *route)
{
        for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
                for (size_t k = 0; k < tables[i]->count; k++)
                        if (strcmp(tables[i]->routes[k].path, route->path) == 0 &&
                            strcmp(tables[i]->routes[k].method, route->method) == 0)
                                return tables[i]->roles;
        return 0;
}

static void refuse_other_role(struct http_request *req)
{
        const struct server *s = http_context(req);
        char own[NODE_ROLES_TEXT], needed[NODE_ROLES_TEXT];

        http_fail_code(req, 421, "role",
                       "%s %s needs the role %s, and this node has only %s (--role): send the request to another node",
                       http_route(req)->method, http_route(req)->path,
                       node_roles_write(get_route_roles(http_route(req)), needed),
                       node_roles_write(s->options->roles, own));
}

static enum status refuse_chunk(struct http_request *req, const void *data, size_t *n)
{
        (void)req;
        (void)data;
        (void)n;
        return ST_USAGE; /* unreachable: begin has responded */
}

static bool modifies_data(const struct http_route *r)
{
        return r->scope == SCOPE_INGEST || r->scope == SCOPE_UPLOAD || r->scope == SCOPE_ADMIN;
}

static struct http_route make_refusing_route(const struct http_route *r, void (*refuse)(struct http_request *req))
{
        return (struct http_route){ .method = r->method,
                                    .path = r->path,
                                    .scope = SCOPE_NONE,
                                    .pool = POOL_STATUS,
                                    .begin = refuse,
                                    .chunk = refuse_chunk,
                                    .handle = refuse };
}

static enum status fail_tenancy_check(struct http_route *routes, const struct http_route *r, struct error *err)
{
        error_set(err, ST_UNSUPPORTED, "%s %s: a route has a tenancy if, and only if, it needs a scope", r->method,
                  r->path);
        free(routes);
        return ST_UNSUPPORTED;
}

enum status routes_join(bool read_only, unsigned roles, struct http_route **ret, size_t *count_ret, struct error *err)
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
                                *r = make_refusing_route(r, refuse_change);
                        else if (!(tables[i]->roles & roles))
                                *r = make_refusing_route(r, refuse_other_role);
                }
        }
        *ret = routes;
        *count_ret = count;
        return ST_OK;
}
