/* SPDX-License-Identifier: Apache-2.0 */
/* Maintenance of stored objects: show, pin, delete, garbage collection, rescan. */
#include <string.h>

#include "server/api/debuginfo/debuginfo_list.h"
#include "server/api/debuginfo/gc_answer.h"
#include "server/core/route_tables.h"
#include "server/core/server_internal.h"
#include "server/protocol/respond.h"
#include "server/protocol/rules_request.h"

static void handle_show(struct http_request *req)
{
        struct debuginfo_space *s = get_request_space(req);
        struct build_id id;
        struct buf body;
        struct error err;
        enum status st;

        if (!get_route_build_id(req, &id))
                return;
        buf_init(&body, MiB(1));
        st = s->objects ? write_debuginfo_object(s->objects, s->symbols, &id, &body, &err)
                        : error_set(&err, ST_NOT_FOUND, "this service has no debuginfo store");
        respond_result(req, st, &body, &err);
}

static bool get_route_object(struct http_request *req, struct build_id *id, enum object_kind *kind)
{
        const char *name = http_path_part(req, "kind");

        if (!get_route_build_id(req, id))
                return false;
        if (object_kind_parse(name, kind))
                return true;
        http_fail_code(req, 400, "unsupported_kind", "'%.40s' is not a kind: " OBJECT_KIND_NAMES, name);
        return false;
}

static void answer_object_change(struct http_request *req, enum status st, const struct error *err, const char *text)
{
        if (st)
                http_fail(req, st, err);
        else
                http_respond(req, 200, "application/json", text, strlen(text));
}

static void handle_pin(struct http_request *req)
{
        struct debuginfo_space *s = get_request_space(req);
        bool pinned = strcmp(http_method(req), "PUT") == 0;
        enum object_kind kind;
        struct build_id id;
        struct error err;

        if (get_route_object(req, &id, &kind))
                answer_object_change(req, debuginfo_store_set_pin(s->objects, &id, kind, pinned, &err), &err,
                                     pinned ? "{\"pinned\":true}\n" : "{\"pinned\":false}\n");
}

static void handle_delete(struct http_request *req)
{
        struct debuginfo_space *s = get_request_space(req);
        enum object_kind kind;
        struct build_id id;
        struct error err;

        if (!get_route_object(req, &id, &kind))
                return;
        answer_object_change(req, debuginfo_store_remove(s->objects, &id, kind, &err), &err,
                             "{\"state\":\"removed\"}\n");
}

static enum status add_retention_rule(void *list, const char *rule, struct error *err)
{
        struct gc_rules *l = list;

        return retention_rule_parse(rule, &l->items[l->count++], err);
}

static void handle_gc(struct http_request *req)
{
        struct debuginfo_space *s = get_request_space(req);
        struct gc_options o;
        struct gc_result r;
        struct gc_rules rules = { .count = 0 };
        bool dry_run, has_rules;
        struct buf body;
        struct error err;
        enum status st =
                read_rules_request(req, RETENTION_RULES_MAX, add_retention_rule, &rules, &has_rules, &dry_run, &err);

        if (st) {
                http_fail(req, st, &err);
                return;
        }
        if (!has_rules)
                gc_thread_get_rules(s->gc_thread, &rules);
        o = gc_thread_collection_options(s->gc_thread, rules.items, rules.count);
        o.dry_run = dry_run;
        buf_init_budget(&body, LIMIT_RESPONSE_BYTES, MEMORY_ANSWERS);
        st = run_gc_with_report(s->objects, &o, &r, &body, &err);
        if (!st && !dry_run)
                gc_thread_publish_metrics(s->gc_thread, &r);
        respond_result(req, st, &body, &err);
}

static void handle_rescan(struct http_request *req)
{
        struct server *s = http_context(req);
        struct package_scan *scan = debuginfo_spaces_get_scan(s->spaces);

        if (!scan) {
                http_fail_code(req, 404, "not_found", "this service scans no trees: start it with --scan DIR");
                return;
        }
        package_scan_request_run(scan);
        http_respond(req, 202, "application/json", "{\"state\":\"asked\"}\n", strlen("{\"state\":\"asked\"}\n"));
}

static const struct http_route routes[] = {
        { ROUTE("POST", "/api/v1/debuginfo/scan", SCOPE_ADMIN, TENANCY_WHOLE), .pool = POOL_ADMIN,
          .handle = handle_rescan, .writes = true },
        { ROUTE("GET", "/api/v1/debuginfo/{id}", SCOPE_READ, TENANCY_SPACE), .handle = handle_show },
        { ROUTE("PUT", "/api/v1/debuginfo/{id}/{kind}/pin", SCOPE_ADMIN, TENANCY_UPKEEP), .pool = POOL_ADMIN,
          .handle = handle_pin, .writes = true },
        { ROUTE("DELETE", "/api/v1/debuginfo/{id}/{kind}/pin", SCOPE_ADMIN, TENANCY_UPKEEP), .pool = POOL_ADMIN,
          .handle = handle_pin, .writes = true },
        { ROUTE("DELETE", "/api/v1/debuginfo/{id}/{kind}", SCOPE_ADMIN, TENANCY_UPKEEP), .pool = POOL_ADMIN,
          .handle = handle_delete, .writes = true },
};
const struct route_table upkeep_routes = ROUTE_TABLE(ROLE_DEBUGINFOD, routes);

/* A collection asks the index which objects it may remove. */
static const struct http_route gc_route[] = {
        { ROUTE("POST", "/api/v1/debuginfo/gc", SCOPE_ADMIN, TENANCY_UPKEEP), .pool = POOL_ADMIN,
          .max_body = LIMIT_HTTP_JSON_BYTES, .body_type = "application/json", .handle = handle_gc, .writes = true },
};
const struct route_table collection_routes = ROUTE_TABLE(ROLE_SYMBOLIZE, gc_route);
