/* SPDX-License-Identifier: Apache-2.0 */
/* cairn store copy: tables and debuginfo of a data directory into an object store, or back, or of one into another. */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/commands/store/bucket_directory.h"
#include "cli/commands/store/store_command.h"
#include "common/files/data_format.h"
#include "common/files/file.h"
#include "common/files/tenant_name.h"
#include "common/text/number_text.h"
#include "common/text/utf8.h"
#include "debuginfo-store/object_copy.h"
#include "pipeline/table_copy.h"
#include "profile-store/profile_store.h"
#include "profile-store/tables/table_storage.h"
#include "storage/s3/s3_location.h"

/* Source or target, as a data directory. */
struct copy_side {
        const char *place; /* as given */
        const char *data;
        struct bucket_directory bucket;
};

struct store_copy {
        struct copy_side from, to;
        struct storage_copies count;
        bool shows_progress;
};

static void print_copy_progress(void *context, const struct storage_copies *c)
{
        const struct store_copy *copy = context;
        char bytes[40];

        if (copy->shows_progress)
                fprintf(stderr, "\rcairn store copy: %" PRIu64 " copied (%s), %s\033[K", c->copied,
                        format_store_bytes(c->copied_bytes, bytes), COUNTED(c->present, "was there", "were there"));
}

/* ---- source and target ---- */

static enum status open_copy_source(struct copy_side *s, struct error *err)
{
        _cleanup_free_ char *profiles = NULL;
        enum status st;

        s->data = s->place;
        if (is_s3_url(s->place)) {
                st = bucket_directory_create(s->place, NULL, &s->bucket, err);
                s->data = s->bucket.path;
                return st ? st : bucket_directory_load_records(&s->bucket, err);
        }
        profiles = tenant_profiles_path(s->place, NULL);
        st = profiles ? data_format_check(s->place, err) : error_no_memory(err);
        return st ? st : profile_store_check_exists(profiles, err);
}

static enum status open_copy_target(struct copy_side *s, struct error *err)
{
        _cleanup_free_ char *profiles = tenant_profiles_path(s->place, NULL), *url = NULL;
        enum status st = profiles ? ST_OK : error_no_memory(err);

        s->data = s->place;
        if (!st && is_s3_url(s->place)) {
                st = bucket_directory_create_empty(&s->bucket, err);
                s->data = s->bucket.path;
                return st;
        }
        if (!st)
                st = get_table_location(profiles, &url, err);
        if (!st && url)
                st = error_set(err, ST_USAGE, "the tables of '%.100s' are in %.100s: copy there", s->place, url);
        if (!st)
                st = file_make_dirs(s->place, err);
        if (!st)
                st = data_format_check(s->place, err);
        return st ? st : data_format_write(s->place, err);
}

/* ---- one tenant ---- */

static enum status copy_objects(struct store_copy *c, const char *from_base, const char *to_base, struct error *err)
{
        _cleanup_free_ char *from_dir = path_join(from_base, "debuginfo"), *to_dir = path_join(to_base, "debuginfo");
        _cleanup_free_ char *records = from_dir ? path_join(from_dir, "meta") : NULL;
        struct debuginfo_store *from = NULL, *to = NULL;
        enum status st;

        if (!records || !to_dir)
                return error_no_memory(err);
        if (access(records, F_OK) != 0)
                return ST_OK;
        st = debuginfo_store_open(from_dir, true, &from, err);
        if (!st)
                st = file_make_dirs(to_dir, err);
        if (!st)
                st = debuginfo_store_open(to_dir, false, &to, err);
        if (!st)
                st = debuginfo_store_copy(from, to, &c->count, err);
        debuginfo_store_close(from);
        debuginfo_store_close(to);
        return st;
}

static enum status copy_tenant(struct store_copy *c, const char *tenant, struct error *err)
{
        _cleanup_free_ char *from_base = tenant_data_path(c->from.data, tenant),
                            *to_base = tenant_data_path(c->to.data, tenant);
        _cleanup_free_ char *from = tenant_profiles_path(c->from.data, tenant),
                            *to = tenant_profiles_path(c->to.data, tenant);
        _cleanup_free_ char *tables = to ? path_join(to, "tables") : NULL;
        enum status st = from_base && to_base && from && tables ? ST_OK : error_no_memory(err);

        if (!st && c->to.bucket.path)
                st = bucket_directory_link(&c->to.bucket, c->to.place, tenant, err);
        else if (!st)
                st = file_make_dirs(tables, err);
        if (!st)
                st = copy_tables(from, to, &c->count, err);
        return st ? st : copy_objects(c, from_base, to_base, err);
}

static enum status copy_all_tenants(struct store_copy *c, struct error *err)
{
        _cleanup_free_ char *tenants = path_join(c->from.data, "tenants");
        _cleanup_closedir_ DIR *d = tenants ? opendir(tenants) : NULL;
        const struct dirent *entry;
        enum status st = tenants ? copy_tenant(c, NULL, err) : error_no_memory(err);

        while (!st && d && (entry = readdir(d)))
                if (tenant_name_is_valid(entry->d_name))
                        st = copy_tenant(c, entry->d_name, err);
        return st;
}

/* ---- the verb ---- */

enum status store_copy_command(const struct store_command *command, const char *from, struct error *err)
{
        struct store_copy c = { .from.place = from,
                                .to.place = command->second,
                                .shows_progress = isatty(STDERR_FILENO) };
        char bytes[40];
        enum status st;

        c.count.progress = print_copy_progress;
        c.count.context = &c;
        st = open_copy_source(&c.from, err);
        if (!st)
                st = open_copy_target(&c.to, err);
        if (!st)
                st = copy_all_tenants(&c, err);
        if (c.shows_progress && (c.count.copied || c.count.present))
                fputc('\n', stderr);
        bucket_directory_remove(&c.from.bucket);
        bucket_directory_remove(&c.to.bucket);
        if (st && c.count.copied)
                error_prefix(err, st, "after %s, which a repetition finds",
                             COUNTED(c.count.copied, "object", "objects"));
        if (st)
                return st;
        if (command->json)
                printf("{\"copied\":%" PRIu64 ",\"copied_bytes\":%" PRIu64 ",\"present\":%" PRIu64 "}\n",
                       c.count.copied, c.count.copied_bytes, c.count.present);
        else
                printf("%s: %s (%s), %" PRIu64 " were there\n", PRINTABLE(c.to.place),
                       COUNTED(c.count.copied, "object copied", "objects copied"),
                       format_store_bytes(c.count.copied_bytes, bytes), c.count.present);
        return ST_OK;
}
