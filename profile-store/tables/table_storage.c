/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-store/tables/table_storage.h"

#include <stdlib.h>

#include "common/limits.h"
#include "storage/local_storage.h"
#include "storage/s3/s3_storage.h"
#include "storage/s3/store_address.h"

static uint64_t cache_limit = TABLE_CACHE_BYTES;

void set_table_cache_limit(uint64_t bytes)
{
        cache_limit = bytes;
}

uint64_t get_table_cache_limit(void)
{
        return cache_limit;
}

enum status get_table_location(const char *dir, char **ret, struct error *err)
{
        _cleanup_free_ char *tables = path_join(dir, "tables");

        return tables ? store_address_read(tables, ret, err) : error_no_memory(err);
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

enum status set_table_location(const char *dir, const char *url, struct error *err)
{
        _cleanup_free_ char *tables = path_join(dir, "tables");

        return tables ? store_address_set(tables, url, "samples", "tables", dir, err) : error_no_memory(err);
}
