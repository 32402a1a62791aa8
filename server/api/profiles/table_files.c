/* SPDX-License-Identifier: Apache-2.0 */
#include "server/api/profiles/table_files.h"

#include <inttypes.h>
#include <string.h>

#include "common/files/file.h"
#include "common/hash.h"

#define ETAG_TAIL_BYTES KiB(64)

const char *const table_names[TABLE_NAME_COUNT] = { "function_history", "locations", "samples", "stacks" };

bool is_table_name(const char *name)
{
        for (size_t i = 0; i < TABLE_NAME_COUNT; i++)
                if (strcmp(table_names[i], name) == 0)
                        return true;
        return false;
}

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

bool is_readable_table_path(const char *path)
{
        if (!path_is_plain(path))
                return false;
        if (strncmp(path, "_delta_log/", 11) == 0)
                return !strchr(path + 11, '/') &&
                       (has_file_suffix(path, ".json") || has_file_suffix(path, ".parquet") ||
                        strcmp(path + 11, "_last_checkpoint") == 0);
        return has_file_suffix(path, ".parquet");
}

static enum status make_etag(struct table_file *f, const char *key, struct error *err)
{
        size_t size = (size_t)f->info.size, n = size < ETAG_TAIL_BYTES ? size : ETAG_TAIL_BYTES;
        _cleanup_free_ uint8_t *tail = malloc(n + 1);

        if (!tail)
                return error_no_memory(err);
        if (pread(f->fd, tail, n, (off_t)(size - n)) != (ssize_t)n)
                return error_os(err, errno, "cannot read '%s'", key);
        snprintf(f->etag, sizeof f->etag, "%zx-%016" PRIx64, size, hash_bytes64(tail, n));
        return ST_OK;
}

enum status open_table_file(const struct tenant *t, const char *table, const char *path, struct table_file *ret,
                            struct error *err)
{
        _cleanup_free_ char *key = NULL;
        struct table_file f;
        enum status st;

        if (!is_table_name(table) || !is_readable_table_path(path))
                return error_set(err, ST_NOT_FOUND, "table '%.60s' has no file '%.200s'", table, path);
        key = path_join(table, path);
        if (!key)
                return error_no_memory(err);
        if (storage_open(t->tables, key, &f.fd, &f.info, NULL))
                return error_set(err, ST_NOT_FOUND, "table '%.60s' has no file '%.200s'", table, path);
        st = make_etag(&f, key, err);
        if (!st)
                *ret = f;
        else
                close(f.fd);
        return st;
}
