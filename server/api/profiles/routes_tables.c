/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Read-only access to the three tables for remote engines: a list of the live files, and the files, with byte ranges.
 */
#include <string.h>

#include "common/json/json_out.h"
#include "profile-store/delta/delta_log.h"
#include "profile-store/tables/table_schema.h"
#include "server/api/profiles/table_files.h"
#include "server/core/route_tables.h"
#include "server/protocol/respond.h"

/* ---- listing ---- */

static void write_file_list(struct json_out *j, const char *table, const struct delta_snapshot *s)
{
        char path[LIMIT_PATH_BYTES];

        json_out_int(j, "version", (int64_t)s->version);
        json_out_array(j, "files");
        for (size_t i = 0; i < s->file_count; i++) {
                snprintf(path, sizeof path, "/store/%s/%s", table, s->files[i]->path);
                json_out_object(j, NULL);
                json_out_str(j, "path", path);
                json_out_uint(j, "size", s->files[i]->size);
                json_out_int(j, "modified_ms", s->files[i]->modified_ms);
                json_out_object_end(j);
        }
        json_out_array_end(j);
}

/* A table without a log has no files yet. */
static enum status put_table(struct json_out *j, const struct tenant *t, const char *name, struct error *err)
{
        struct delta_snapshot *snapshot = NULL;
        struct delta_table *table = NULL;
        enum status st = delta_table_open(t->tables, name, &table, err);

        if (!st)
                st = delta_snapshot_acquire(table, &snapshot, err);
        if (st && st != ST_NOT_FOUND) {
                delta_table_close(table);
                return st;
        }
        json_out_object(j, NULL);
        json_out_str(j, "table", name);
        if (snapshot) {
                write_file_list(j, name, snapshot);
                delta_snapshot_release(snapshot);
        } else {
                json_out_array(j, "files");
                json_out_array_end(j);
        }
        json_out_object_end(j);
        delta_table_close(table);
        return ST_OK;
}

static void handle_table_list(struct http_request *req)
{
        const char *only = http_path_part(req, "table");
        struct json_out j;
        struct buf body;
        struct error err;
        enum status st = ST_OK;

        if (*only && !is_table_name(only)) {
                http_fail_code(req, 404, "not_found",
                               "unknown table '%.60s'; the tables are samples, stacks, locations and function_history",
                               only);
                return;
        }
        buf_init_budget(&body, LIMIT_RESPONSE_BYTES, MEMORY_ANSWERS);
        json_out_init(&j, &body);
        json_out_object(&j, NULL);
        json_out_array(&j, "tables");
        for (size_t i = 0; !st && i < TABLE_COUNT; i++)
                if (!*only || strcmp(only, table_name(i)) == 0)
                        st = put_table(&j, get_request_tenant(req), table_name(i), &err);
        json_out_array_end(&j);
        json_out_object_end(&j);
        if (!st) {
                respond_json(req, &body);
                return;
        }
        buf_deinit(&body);
        http_fail(req, st, &err);
}

/* ---- files ---- */

static void handle_table_file(struct http_request *req)
{
        const char *path = http_path_part(req, "path");
        size_t n = strlen(path);
        struct table_file f;
        struct error err;

        if (open_table_file(get_request_tenant(req), http_path_part(req, "table"), path, &f, &err)) {
                http_fail(req, err.code, &err);
                return;
        }
        http_respond_file(req,
                          n > 8 && strcmp(path + n - 8, ".parquet") == 0 ? "application/vnd.apache.parquet"
                                                                         : "application/json",
                          f.fd, f.etag);
}

static const struct http_route routes[] = {
        { ROUTE("GET", "/store/", SCOPE_READ, TENANCY_OWN), .cacheable = true, .handle = handle_table_list },
        { ROUTE("GET", "/store/{table}/", SCOPE_READ, TENANCY_OWN), .cacheable = true, .handle = handle_table_list },
        { ROUTE("GET", "/store/{table}/{path...}", SCOPE_READ, TENANCY_OWN), .cacheable = true,
          .handle = handle_table_file },
};
const struct route_table table_routes = ROUTE_TABLE(ROLE_QUERY, routes);
