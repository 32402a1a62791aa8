/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Read-only access to the three tables for remote engines: a list of the live files, and the files with range requests.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "common/file.h"
#include "common/json_out.h"
#include "profile-store/delta/delta_log.h"
#include "server/server_internal.h"

static const char *const tables[] = { "samples", "stacks", "locations" };

static bool is_table(const char *name)
{
        for (size_t i = 0; i < 3; i++)
                if (strcmp(tables[i], name) == 0)
                        return true;
        return false;
}

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

/* A table that has no log yet has no files. */
static enum status put_table(struct json_out *j, struct server *s, const char *name, struct error *err)
{
        _cleanup_free_ char *dir = path_join(s->tables_dir, name);
        struct delta_snapshot *snapshot = NULL;
        struct delta_table *table = NULL;
        enum status st = dir ? delta_table_open(dir, &table, err) : error_no_memory(err);

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

static void handle_table_list(struct http_request *req, void *context)
{
        const char *only = http_path_part(req, "table");
        struct json_out j;
        struct buf body;
        struct error err;
        enum status st = ST_OK;

        if (*only && !is_table(only)) {
                http_fail_code(req, 404, "not_found",
                               "unknown table '%.60s'; the tables are samples, stacks and locations", only);
                return;
        }
        buf_init_budget(&body, LIMIT_RESPONSE_BYTES, MEMORY_ANSWERS);
        json_out_init(&j, &body);
        json_out_object(&j, NULL);
        json_out_array(&j, "tables");
        for (size_t i = 0; !st && i < 3; i++)
                if (!*only || strcmp(only, tables[i]) == 0)
                        st = put_table(&j, context, tables[i], &err);
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

static bool has_file_suffix(const char *text, const char *end)
{
        size_t n = strlen(text), k = strlen(end);

        return n > k && strcmp(text + n - k, end) == 0;
}

/*
 * No component may be empty or start with a dot, so a path cannot leave the directory, and temporary files are hidden.
 */
static bool path_is_plain(const char *path)
{
        for (const char *p = path;; p++) {
                size_t n = strcspn(p, "/");

                if (n == 0 || *p == '.')
                        return false;
                p += n;
                if (!*p)
                        return true;
        }
}

static bool is_public(const char *path)
{
        if (!path_is_plain(path))
                return false;
        if (strncmp(path, "_delta_log/", 11) == 0)
                return !strchr(path + 11, '/') &&
                       (has_file_suffix(path, ".json") || has_file_suffix(path, ".parquet") ||
                        strcmp(path + 11, "_last_checkpoint") == 0);
        return has_file_suffix(path, ".parquet");
}

static void handle_table_file(struct http_request *req, void *context)
{
        const char *table = http_path_part(req, "table"), *path = http_path_part(req, "path");
        struct server *s = context;
        _cleanup_free_ char *full = NULL;
        struct stat st;
        char etag[64];
        int fd;

        if (!is_table(table) || !is_public(path) || asprintf(&full, "%s/%s/%s", s->tables_dir, table, path) < 0) {
                full = NULL;
                http_fail_code(req, 404, "not_found", "'%.200s' does not exist", http_path(req));
                return;
        }
        fd = open(full, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
                if (fd >= 0)
                        close(fd);
                http_fail_code(req, 404, "not_found", "'%.200s' does not exist", http_path(req));
                return;
        }
        snprintf(etag, sizeof etag, "%" PRIx64 "-%" PRIx64 "-%" PRIx64, (uint64_t)st.st_ino, (uint64_t)st.st_size,
                 (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec);
        http_respond_file(req,
                          has_file_suffix(path, ".parquet") ? "application/vnd.apache.parquet" : "application/json", fd,
                          etag);
}

static const struct http_route routes[] = {
        { .method = "GET", .path = "/store/", .scope = SCOPE_READ, .handle = handle_table_list },
        { .method = "GET", .path = "/store/{table}/", .scope = SCOPE_READ, .handle = handle_table_list },
        { .method = "GET", .path = "/store/{table}/{path...}", .scope = SCOPE_READ, .handle = handle_table_file },
};
const struct route_table table_routes = ROUTE_TABLE(routes);
