/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-store/tables/table_storage.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/limits.h"
#include "storage/local_storage.h"
#include "storage/s3/s3_location.h"
#include "storage/s3/s3_storage.h"

static uint64_t cache_limit = TABLE_CACHE_BYTES;

void set_table_cache_limit(uint64_t bytes)
{
        cache_limit = bytes;
}

enum status get_table_location(const char *dir, char **ret, struct error *err)
{
        _cleanup_free_ char *path = path_join(dir, "tables/object-store");
        enum status st = path ? file_read_first_line(path, KiB(4), ret, err) : error_no_memory(err);

        if (st != ST_NOT_FOUND)
                return st;
        *ret = NULL;
        return ST_OK;
}

enum status open_table_storage(const char *dir, struct storage **ret, struct error *err)
{
        _cleanup_free_ char *tables = path_join(dir, "tables"), *cache = path_join(dir, "tables/cache"), *url = NULL;
        const struct s3_storage_options options = { .cache_dir = cache, .cache_bytes = cache_limit };
        enum status st = tables && cache ? get_table_location(dir, &url, err) : error_no_memory(err);

        if (st)
                return st;
        return url ? s3_storage_open(url, &options, ret, err) : local_storage_open(tables, ret, err);
}

static enum status check_same_location(const char *dir, const char *there, const char *url, struct error *err)
{
        if (strcmp(there, url) == 0)
                return ST_OK;
        return error_set(err, ST_USAGE,
                         "the tables of '%.80s' are in %.60s, not in %.60s: give that address, or another "
                         "data directory",
                         dir, there, url);
}

enum status set_table_location(const char *dir, const char *url, struct error *err)
{
        _cleanup_free_ char *path = path_join(dir, "tables/object-store"), *tables = path_join(dir, "tables");
        _cleanup_free_ char *local = path_join(dir, "tables/samples"), *there = NULL, *line = NULL;
        _cleanup_s3_location_ struct s3_location checked = { 0 };
        struct stat info;
        enum status st = path && tables && local ? s3_location_parse(url, &checked, err) : error_no_memory(err);

        if (!st)
                st = get_table_location(dir, &there, err);
        if (st || there)
                return st ? st : check_same_location(dir, there, url, err);
        if (stat(local, &info) == 0)
                return check_same_location(dir, "files of this directory", url, err);
        if (asprintf(&line, "%s\n", url) < 0) {
                line = NULL;
                return error_no_memory(err);
        }
        st = file_make_dirs(tables, err);
        return st ? st : file_write_durable(path, line, strlen(line), err);
}
