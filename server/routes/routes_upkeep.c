/* SPDX-License-Identifier: Apache-2.0 */
/* Maintenance of stored objects: show, pin, delete, garbage collection, rescan. */
#include <string.h>

#include "common/json_value.h"
#include "server/routes/debuginfo_list.h"
#include "server/routes/gc_answer.h"
#include "server/server_internal.h"

#define RULE_TEXT_BYTES 1024

static void handle_show(struct http_request *req, void *context)
{
        struct server *s = context;
        struct build_id id;
        struct buf body;
        struct error err;
        enum status st;

        if (!get_route_build_id(req, &id))
                return;
        buf_init(&body, MiB(1));
        st = s->objects ? write_debuginfo_object(s->objects, s->symbols, &id, &body, &err)
                        : error_set(&err, ST_NOT_FOUND, "this service has no objects");
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

static void handle_pin(struct http_request *req, void *context)
{
        struct server *s = context;
        bool pinned = strcmp(http_method(req), "PUT") == 0;
        enum object_kind kind;
        struct build_id id;
        struct error err;

        if (get_route_object(req, &id, &kind))
                answer_object_change(req, debuginfo_store_set_pin(s->objects, &id, kind, pinned, &err), &err,
                                     pinned ? "{\"pinned\":true}\n" : "{\"pinned\":false}\n");
}

static void handle_delete(struct http_request *req, void *context)
{
        struct server *s = context;
        enum object_kind kind;
        struct build_id id;
        struct error err;

        if (!get_route_object(req, &id, &kind))
                return;
        answer_object_change(req, debuginfo_store_remove(s->objects, &id, kind, &err), &err,
                             "{\"state\":\"removed\"}\n");
}

/* {"dry_run": true, "rules": ["..."]}, both optional, as is the whole body. */
static enum status read_gc_request(struct http_request *req, struct retention_rule *rules, size_t *count,
                                   bool *has_rules, bool *dry_run, struct error *err)
{
        struct json_value request, list, item;
        char text[RULE_TEXT_BYTES];
        struct json_scan items;
        const uint8_t *data;
        size_t n;
        enum status st;

        *count = 0;
        *dry_run = *has_rules = false;
        data = http_body(req, &n);
        if (n == 0)
                return ST_OK;
        st = json_value_parse(data, n, &request, err);
        if (st)
                return st;
        if (!json_value_bool(&request, "dry_run", dry_run))
                return error_set(err, ST_BAD_DATA, "'dry_run' is neither true nor false");
        *has_rules = json_value_member(&request, "rules", &list) && json_value_open_array(&list, &items);
        if (!*has_rules)
                return ST_OK;
        if (json_value_count(&list, RETENTION_RULES_MAX) > RETENTION_RULES_MAX)
                return error_set(err, ST_TOO_BIG, "'rules' has more than %d entries", RETENTION_RULES_MAX);
        while (!st && json_value_next(&items, &item))
                st = json_value_copy(&item, text, sizeof text)
                             ? retention_rule_parse(text, &rules[(*count)++], err)
                             : error_set(err, ST_BAD_DATA,
                                         "'rules' holds something that is not text of less than %d bytes",
                                         RULE_TEXT_BYTES);
        return st;
}

static void handle_gc(struct http_request *req, void *context)
{
        struct retention_rule rules[RETENTION_RULES_MAX];
        struct server *s = context;
        struct gc_options o;
        struct gc_result r;
        bool dry_run, has_rules;
        size_t count;
        struct buf body;
        struct error err;
        enum status st = read_gc_request(req, rules, &count, &has_rules, &dry_run, &err);

        if (st) {
                http_fail(req, st, &err);
                return;
        }
        o = gc_thread_collection_options(s->gc_thread, has_rules ? rules : NULL, count);
        o.dry_run = dry_run;
        buf_init_budget(&body, LIMIT_RESPONSE_BYTES, MEMORY_ANSWERS);
        st = run_gc_with_report(s->objects, &o, &r, &body, &err);
        if (!st && !dry_run)
                gc_thread_publish_metrics(&r);
        respond_result(req, st, &body, &err);
}

static void handle_rescan(struct http_request *req, void *context)
{
        struct server *s = context;

        if (!s->scan_demand.scan) {
                http_fail_code(req, 404, "not_found", "this service scans no trees: start it with --scan DIR");
                return;
        }
        scan_request_run(s->scan_demand.scan);
        http_respond(req, 202, "application/json", "{\"state\":\"asked\"}\n", strlen("{\"state\":\"asked\"}\n"));
}

static const struct http_route routes[] = {
        { .pool = POOL_ADMIN,
          .method = "POST",
          .path = "/api/v1/debuginfo/scan",
          .scope = SCOPE_ADMIN,
          .handle = handle_rescan,
          .writes = true },
        { .method = "GET", .path = "/api/v1/debuginfo/{id}", .scope = SCOPE_READ, .handle = handle_show },
        { .pool = POOL_ADMIN,
          .method = "PUT",
          .path = "/api/v1/debuginfo/{id}/{kind}/pin",
          .scope = SCOPE_ADMIN,
          .handle = handle_pin,
          .writes = true },
        { .pool = POOL_ADMIN,
          .method = "DELETE",
          .path = "/api/v1/debuginfo/{id}/{kind}/pin",
          .scope = SCOPE_ADMIN,
          .handle = handle_pin,
          .writes = true },
        { .pool = POOL_ADMIN,
          .method = "DELETE",
          .path = "/api/v1/debuginfo/{id}/{kind}",
          .scope = SCOPE_ADMIN,
          .handle = handle_delete,
          .writes = true },
        { .pool = POOL_ADMIN,
          .method = "POST",
          .path = "/api/v1/debuginfo/gc",
          .scope = SCOPE_ADMIN,
          .max_body = LIMIT_HTTP_JSON_BYTES,
          .body_type = "application/json",
          .handle = handle_gc,
          .writes = true },
};
const struct route_table upkeep_routes = ROUTE_TABLE(routes);
