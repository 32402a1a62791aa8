/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /metadata of the debuginfod web API: build-ids by file name, from the store, the scanned trees and the upstreams.
 * "complete" is false when a time or size limit was reached, or an upstream did not respond.
 * Source: elfutils, debuginfod(8), since 0.192; key=buildid since 0.195.
 */
#include <fnmatch.h>
#include <string.h>

#include "common/clock.h"
#include "common/files/file.h"
#include "common/json/json_out.h"
#include "common/json/json_value.h"
#include "server/core/route_tables.h"
#include "server/core/server_internal.h"
#include "server/protocol/respond.h"

#define SEARCH_NS 5000000000ll
#define UPSTREAMS_S 10

enum key { KEY_FILE, KEY_GLOB, KEY_BUILD_ID };

struct metadata_search {
        enum key key;
        const char *value;
        struct build_id id; /* for KEY_BUILD_ID */
        int64_t deadline_ns;
        const atomic_bool *cancel;
        struct buf *body;
        struct json_out json;
        bool is_complete, is_over; /* is_over: a time or size limit was reached */
        unsigned steps;
};

/* Reads the clock once every 256 calls. */
static bool is_search_over(struct metadata_search *q)
{
        if ((++q->steps & 0xff) == 0 && (monotonic_ns() > q->deadline_ns || atomic_load(q->cancel)))
                q->is_over = true;
        if (q->body->size > LIMIT_METADATA_BYTES)
                q->is_over = true;
        if (q->is_over)
                q->is_complete = false;
        return q->is_over;
}

static bool is_search_match(const struct metadata_search *q, const struct build_id *id, const char *file)
{
        switch (q->key) {
        case KEY_FILE:
                return strcmp(q->value, file) == 0;
        case KEY_GLOB:
                return fnmatch(q->value, file, FNM_PATHNAME) == 0;
        default:
                return build_id_equal(&q->id, id);
        }
}

static void write_search_result(struct metadata_search *q, const char *type, const char *build_id, const char *file,
                                const char *archive)
{
        json_out_object(&q->json, NULL);
        json_out_str(&q->json, "type", type);
        json_out_str(&q->json, "buildid", build_id);
        if (file && *file)
                json_out_str(&q->json, "file", file);
        if (archive && *archive)
                json_out_str(&q->json, "archive", archive);
        json_out_object_end(&q->json);
}

/* The API has two types, debuginfo and executable; a supplementary file is served as debuginfo. */
static bool is_listed(enum object_kind kind)
{
        return kind == OBJECT_DEBUGINFO || kind == OBJECT_EXECUTABLE || kind == OBJECT_SUPPLEMENTARY;
}

static enum status match_stored_object(void *context, const struct stored_object *o)
{
        struct metadata_search *q = context;
        char hex[BUILD_ID_HEX_MAX];

        if (is_search_over(q))
                return ST_BUSY;
        if (is_listed(o->kind) && is_search_match(q, &o->build_id, o->name))
                write_search_result(q, o->kind == OBJECT_EXECUTABLE ? "executable" : "debuginfo",
                                    build_id_hex(&o->build_id, hex), o->name, NULL);
        return ST_OK;
}

static enum status match_scanned_object(void *context, const struct package_object *o, const struct package_file *f)
{
        struct metadata_search *q = context;
        const char *file = *o->path ? o->path : f->path, *archive = *o->path ? f->path : NULL;
        char hex[BUILD_ID_HEX_MAX];

        if (is_search_over(q))
                return ST_BUSY;
        if (!is_search_match(q, &o->build_id, file))
                return ST_OK;
        build_id_hex(&o->build_id, hex);
        if (o->kinds & PACKAGE_EXECUTABLE)
                write_search_result(q, "executable", hex, file, archive);
        if (o->kinds & PACKAGE_DEBUGINFO)
                write_search_result(q, "debuginfo", hex, file, archive);
        return ST_OK;
}

static enum status search_local_objects(struct debuginfo_space *s, struct metadata_search *q, struct error *err)
{
        enum status st = s->objects ? debuginfo_store_list(s->objects, match_stored_object, q, err) : ST_OK;

        if (!st && s->scan_demand.scan)
                st = package_scan_list(s->scan_demand.scan, q->key == KEY_BUILD_ID ? &q->id : NULL,
                                       match_scanned_object, q, err);
        return st == ST_BUSY ? ST_OK : st;
}

/* ---- upstreams ---- */

static void merge_result(struct metadata_search *q, const struct json_value *one)
{
        char type[32], hex[BUILD_ID_HEX_MAX], file[LIMIT_PATH_BYTES], archive[LIMIT_PATH_BYTES];
        struct build_id id;

        if (json_value_text(one, "type", type, sizeof type) && json_value_text(one, "buildid", hex, sizeof hex) &&
            build_id_from_hex(&id, hex, strlen(hex)))
                write_search_result(q, type, hex, json_value_text(one, "file", file, sizeof file),
                                    json_value_text(one, "archive", archive, sizeof archive));
}

/* Malformed results are omitted. */
static enum status merge_upstream_results(struct metadata_search *q, const void *data, size_t n, struct error *err)
{
        struct json_value answer, results, one;
        bool complete = false, has_results;
        struct json_scan items;
        enum status st = json_value_parse(data, n, &answer, err);

        if (st)
                return st;
        has_results = json_value_member(&answer, "results", &results) && json_value_open_array(&results, &items);
        while (has_results && !is_search_over(q) && json_value_next(&items, &one))
                merge_result(q, &one);
        if (!has_results || !json_value_bool(&answer, "complete", &complete) || !complete)
                q->is_complete = false;
        return ST_OK;
}

static enum status merge_upstream_answer(void *context, int fd, struct error *err)
{
        _cleanup_file_map_ struct file_map map = { 0 };
        enum status st = file_map_fd(fd, LIMIT_METADATA_BYTES, "the metadata of an upstream", &map, err);

        return st ? st : merge_upstream_results(context, map.data, map.size, err);
}

static void log_upstream_failure(void *context, const char *url, const struct error *why)
{
        (void)context;
        log_warn("debuginfod", "no metadata from %s: %s", url, why->text);
}

static void search_upstreams(struct debuginfo_space *s, struct http_request *req, struct metadata_search *q)
{
        const struct federation_client client = { .forwarded_for = http_header(req, "X-Forwarded-For"),
                                                  .cancel = q->cancel };
        struct federation_query query = { .total_s = UPSTREAMS_S,
                                          .max_bytes = LIMIT_METADATA_BYTES,
                                          .answered = merge_upstream_answer,
                                          .failed = log_upstream_failure,
                                          .context = q };
        _cleanup_buf_ struct buf path;
        struct error err;

        buf_init(&path, KiB(64));
        if (!s->federation)
                return;
        buf_append_str(&path, "metadata?key=");
        buf_append_str(&path, http_query(req, "key"));
        buf_append_str(&path, "&value=");
        buf_append_url_encoded(&path, q->value, "");
        query.path = buf_cstr(&path);
        q->deadline_ns = monotonic_ns() + 2 * UPSTREAMS_S * 1000000000ll; /* includes the time to merge the answers */
        if (!query.path || http_begin_wait(&err)) {
                q->is_complete = false;
                return;
        }
        if (federation_query_all(s->federation, &query, &client, &err))
                q->is_complete = false;
        http_end_wait();
}

/* ---- the request ---- */

static bool read_search_request(struct http_request *req, struct metadata_search *q)
{
        const char *key = http_query(req, "key"), *value = http_query(req, "value");
        static const char *const names[] = { "file", "glob", "buildid" };
        unsigned k = 0;

        while (key && k < 3 && strcmp(key, names[k]) != 0)
                k++;
        if (!key || !value || k == 3) {
                http_fail_code(req, 400, "usage",
                               "write /metadata?key=KEY&value=VALUE, where KEY is file, glob or buildid");
                return false;
        }
        q->key = (enum key)k;
        q->value = value;
        if (q->key != KEY_BUILD_ID || build_id_from_hex(&q->id, value, strlen(value)))
                return true;
        http_fail_code(req, 400, "build_id",
                       "'%.130s' is not a build-id: expected an even number of hexadecimal digits, 2 to 128", value);
        return false;
}

static void handle_metadata(struct http_request *req)
{
        struct buf body;
        struct metadata_search q = { .deadline_ns = monotonic_ns() + SEARCH_NS,
                                     .cancel = http_request_cancelled(req),
                                     .body = &body,
                                     .is_complete = true };
        struct error err;
        enum status st;

        if (!read_search_request(req, &q))
                return;
        buf_init_budget(&body, LIMIT_RESPONSE_BYTES, MEMORY_ANSWERS);
        json_out_init(&q.json, &body);
        json_out_object(&q.json, NULL);
        json_out_array(&q.json, "results");
        st = search_local_objects(get_request_space(req), &q, &err);
        q.is_over = false; /* the upstreams have their own time limit */
        if (!st)
                search_upstreams(get_request_space(req), req, &q);
        json_out_array_end(&q.json);
        json_out_bool(&q.json, "complete", q.is_complete);
        json_out_object_end(&q.json);
        if (!st)
                st = deadline_check(http_request_deadline(req), &err);
        if (!st)
                st = buf_status(&body, &err, "the answer");
        respond_result(req, st, &body, &err);
}

static const struct http_route routes[] = {
        { ROUTE("GET", "/metadata", SCOPE_READ, TENANCY_SPACE), .pool = POOL_DEBUGINFOD, .handle = handle_metadata },
};
const struct route_table metadata_routes = ROUTE_TABLE(ROLE_DEBUGINFOD, routes);
