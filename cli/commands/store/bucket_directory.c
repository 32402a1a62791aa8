/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands/store/bucket_directory.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/files/data_format.h"
#include "common/files/file.h"
#include "common/files/tenant_name.h"
#include "common/limits.h"
#include "debuginfo-store/debuginfo_store.h"
#include "debuginfo-store/object_table.h"
#include "debuginfo-store/remote_objects.h"
#include "profile-store/tables/table_storage.h"
#include "storage/s3/s3_storage.h"

#define CACHE_BYTES GiB(1)
#define TENANTS "tenants/"
#define SAMPLES_LOG "tables/samples/_delta_log/"

static enum status make_temporary_directory(char **ret, struct error *err)
{
        const char *parent = getenv("TMPDIR");
        _cleanup_free_ char *path = path_join(parent && *parent ? parent : "/tmp", "cairn-store-XXXXXX");

        if (!path)
                return error_no_memory(err);
        if (!mkdtemp(path))
                return error_os(err, errno, "cannot create the directory '%s'", path);
        *ret = steal_ptr(path);
        return ST_OK;
}

/* ---- what the store has ---- */

/* The first key behind another one; a list ends with a failure of its visit. */
struct first_key {
        char *key; /* owned */
        bool is_found;
};

static enum status take_first_key(void *context, const char *key, const struct storage_info *info, struct error *err)
{
        struct first_key *f = context;

        (void)info;
        f->is_found = true;
        f->key = strdup(key);
        return f->key ? ST_BUSY : error_no_memory(err);
}

/* @param ret  owned; NULL: there is none. */
static enum status find_first_key(struct storage *s, const char *folder, const char *after, char **ret,
                                  struct error *err)
{
        struct first_key f = { 0 };
        enum status st = storage_list(s, folder, after, take_first_key, &f, err);

        *ret = f.key;
        return st == ST_BUSY && f.is_found ? ST_OK : st;
}

static enum status check_tables_exist(struct storage *s, const char *tenant, struct error *err)
{
        _cleanup_free_ char *root = tenant_store_url("", tenant), *key = NULL;
        _cleanup_free_ char *folder = root ? path_join(root + (*root == '/'), SAMPLES_LOG) : NULL;
        enum status st =
                !folder ? error_no_memory(err) : find_first_key(s, *root ? folder : SAMPLES_LOG, "", &key, err);

        if (!st && !key)
                st = error_set(err, ST_NOT_FOUND, "'%.150s' has no tables%s%s: give the address of cairn serve --store",
                               storage_root(s), tenant ? " of tenant " : "", tenant ? tenant : "");
        return st;
}

/* ---- the directory ---- */

enum status bucket_directory_link(const struct bucket_directory *b, const char *url, const char *tenant,
                                  struct error *err)
{
        _cleanup_free_ char *root = tenant_store_url(url, tenant), *base = tenant_data_path(b->path, tenant);
        _cleanup_free_ char *tables = root ? path_join(root, "tables") : NULL;
        _cleanup_free_ char *profiles = tenant_profiles_path(b->path, tenant);
        _cleanup_free_ char *objects = base ? path_join(base, "debuginfo") : NULL;
        enum status st;

        if (!tables || !profiles || !objects)
                return error_no_memory(err);
        st = set_table_location(profiles, tables, err);
        return st ? st : debuginfo_store_set_address(objects, root, err);
}

/* "tenants/NAME/..." of each tenant: one request for each. */
static enum status link_all_tenants(const struct bucket_directory *b, const char *url, struct storage *s,
                                    struct error *err)
{
        _cleanup_free_ char *after = strdup("");
        enum status st = after ? bucket_directory_link(b, url, NULL, err) : error_no_memory(err);

        while (!st) {
                _cleanup_free_ char *key = NULL, *name = NULL;

                st = find_first_key(s, TENANTS, after, &key, err);
                if (st || !key)
                        return st;
                name = strndup(key + strlen(TENANTS), strcspn(key + strlen(TENANTS), "/"));
                free(after);
                after = NULL;
                if (!name || asprintf(&after, TENANTS "%s/\x7f", name) < 0) {
                        after = NULL;
                        return error_no_memory(err);
                }
                if (tenant_name_is_valid(name) && strcmp(name, TENANT_DEFAULT) != 0)
                        st = bucket_directory_link(b, url, name, err);
        }
        return st;
}

enum status bucket_directory_create_empty(struct bucket_directory *ret, struct error *err)
{
        _cleanup_bucket_directory_ struct bucket_directory b = { 0 };
        enum status st = make_temporary_directory(&b.path, err);

        set_table_cache_limit(CACHE_BYTES);
        set_debuginfo_cache_limit(CACHE_BYTES);
        if (!st)
                st = data_format_write(b.path, err);
        if (!st)
                ret->path = steal_ptr(b.path);
        return st;
}

enum status bucket_directory_create(const char *url, const char *tenant, struct bucket_directory *ret,
                                    struct error *err)
{
        _cleanup_bucket_directory_ struct bucket_directory b = { 0 };
        _cleanup_storage_ struct storage *s = NULL;
        _cleanup_free_ char *cache = NULL;
        struct s3_storage_options options = { .cache_bytes = CACHE_BYTES };
        enum status st = bucket_directory_create_empty(&b, err);

        if (st)
                return st;
        options.cache_dir = cache = path_join(b.path, "cache");
        st = cache ? s3_storage_open(url, &options, &s, err) : error_no_memory(err);
        if (!st)
                st = check_tables_exist(s, tenant, err);
        if (!st)
                st = link_all_tenants(&b, url, s, err);
        if (!st)
                ret->path = steal_ptr(b.path);
        return st;
}

void bucket_directory_remove(struct bucket_directory *b)
{
        if (b->path)
                (void)!file_remove_tree(b->path, NULL);
        free(steal_ptr(b->path));
}

/* ---- records ---- */

static enum status load_tenant_records(const char *base, struct error *err)
{
        _cleanup_free_ char *dir = path_join(base, "debuginfo");
        _cleanup_storage_ struct storage *s = NULL;
        struct debuginfo_store *objects = NULL;
        struct object_table *table = NULL;
        enum status st = dir ? remote_objects_open_storage(dir, &s, err) : error_no_memory(err);

        if (st || !s)
                return st;
        st = object_table_open(s, true, &table, err);
        object_table_close(table);
        if (st == ST_NOT_FOUND) /* a service that never had debuginfo; opening it would create the table */
                return file_remove_tree(dir, err);
        if (!st)
                st = debuginfo_store_open(dir, false, &objects, err);
        debuginfo_store_close(objects);
        return st;
}

enum status bucket_directory_load_records(const struct bucket_directory *b, struct error *err)
{
        _cleanup_free_ char *tenants = path_join(b->path, "tenants");
        _cleanup_closedir_ DIR *d = tenants ? opendir(tenants) : NULL;
        const struct dirent *entry;
        enum status st = tenants ? load_tenant_records(b->path, err) : error_no_memory(err);

        while (!st && d && (entry = readdir(d))) {
                _cleanup_free_ char *base = entry->d_name[0] == '.' ? NULL : path_join(tenants, entry->d_name);

                if (base)
                        st = load_tenant_records(base, err);
        }
        return st;
}
