/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/table_copy.h"

#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "common/memory/array.h"
#include "common/text/number_text.h"
#include "profile-store/delta/delta_log.h"
#include "profile-store/delta/delta_place.h"
#include "profile-store/profile_store.h"
#include "profile-store/tables/table_storage.h"
#include "profile-store/tables/tables.h"

#define BATCH_IDS "_batch_ids/"

struct key_list {
        char **items; /* all owned */
        size_t count, capacity;
        uint64_t version; /* of commits and checkpoints: no later ones */
        const struct delta_place *place;
};

static void deinit_copied_keys(struct key_list *l)
{
        for (size_t i = 0; i < l->count; i++)
                free(l->items[i]);
        free(l->items);
}

/* Takes the key. */
static enum status append_copied_key(struct key_list *l, char *key, struct error *err)
{
        if (!key || !array_reserve(&l->items, &l->capacity, l->count)) {
                free(key);
                return error_no_memory(err);
        }
        l->items[l->count++] = key;
        return ST_OK;
}

static enum status append_log_key(void *context, const char *name, const struct storage_info *info, struct error *err)
{
        struct key_list *l = context;
        const char *suffix = "";
        int64_t version = delta_parse_version(name, &suffix);

        (void)info;
        if (version < 0 || (uint64_t)version > l->version ||
            (strcmp(suffix, DELTA_COMMIT_SUFFIX) != 0 && strcmp(suffix, DELTA_CHECKPOINT_SUFFIX) != 0))
                return ST_OK;
        return append_copied_key(l, delta_make_log_key(l->place, name), err);
}

static enum status append_any_key(void *context, const char *key, const struct storage_info *info, struct error *err)
{
        (void)info;
        return append_copied_key(context, strdup(key), err);
}

/* ---- the target ---- */

/* A commit of the source may be gone, since its log was cleaned up, unless it is a later one than the source has. */
static enum status compare_copied_commits(struct storage *from, struct storage *to, const char *key, uint64_t newest,
                                          struct error *err)
{
        const char *suffix = "";
        int64_t version = delta_parse_version(path_base(key), &suffix);
        _cleanup_buf_ struct buf a, b;
        enum status st;

        buf_init(&a, LIMIT_DELTA_COMMIT_BYTES);
        buf_init(&b, LIMIT_DELTA_COMMIT_BYTES);
        st = storage_read(to, key, &b, err);
        if (!st)
                st = storage_read(from, key, &a, err);
        if (st == ST_NOT_FOUND && version >= 0 && (uint64_t)version <= newest)
                return ST_OK;
        if (st && st != ST_NOT_FOUND)
                return st;
        if (st || a.size != b.size || (a.size && memcmp(a.data, b.data, a.size) != 0))
                return error_set(err, ST_USAGE,
                                 "'%.150s' has other tables: a copy needs an empty place, or one where it was begun",
                                 storage_root(to));
        return ST_OK;
}

/* Each commit that the target has must be one of the source. */
static enum status check_target_log(struct storage *from, struct storage *to, enum table t, uint64_t newest,
                                    struct error *err)
{
        _cleanup_delta_place_ struct delta_place place = { 0 };
        struct key_list keys = { .version = UINT64_MAX, .place = &place };
        enum status st = delta_place_init(&place, to, table_name(t), err);

        if (!st)
                st = delta_list_log(&place, append_log_key, &keys, err);
        st = st == ST_NOT_FOUND ? ST_OK : st;
        for (size_t i = 0; !st && i < keys.count; i++)
                if (!strstr(keys.items[i], DELTA_CHECKPOINT_SUFFIX))
                        st = compare_copied_commits(from, to, keys.items[i], newest, err);
        deinit_copied_keys(&keys);
        return st;
}

/* ---- one table ---- */

static enum status copy_keys(struct storage *from, struct storage *to, const struct key_list *keys,
                             struct storage_copies *count, struct error *err)
{
        enum status st = ST_OK;

        for (size_t i = keys->count; !st && i > 0; i--)
                st = storage_copy(from, keys->items[i - 1], to, NULL, count, err);
        return st;
}

static enum status list_live_keys(const struct delta_snapshot *s, enum table t, struct key_list *ret, struct error *err)
{
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < s->file_count; i++)
                st = append_copied_key(ret, make_table_key(t, s->files[i]->path), err);
        return st;
}

static enum status copy_table_log(struct storage *from, struct storage *to, enum table t, uint64_t version,
                                  struct storage_copies *count, struct error *err)
{
        _cleanup_delta_place_ struct delta_place place = { 0 };
        _cleanup_free_ char *ids = make_table_key(t, BATCH_IDS);
        struct key_list keys = { .version = version, .place = &place }, id_keys = { 0 };
        enum status st = ids ? delta_place_init(&place, from, table_name(t), err) : error_no_memory(err);

        if (!st)
                st = storage_list(from, ids, "", append_any_key, &id_keys, err);
        if (!st)
                st = copy_keys(from, to, &id_keys, count, err);
        if (!st)
                st = delta_list_log(&place, append_log_key, &keys, err);
        if (!st)
                st = copy_keys(from, to, &keys, count, err);
        deinit_copied_keys(&keys);
        deinit_copied_keys(&id_keys);
        return st;
}

static enum status copy_table(struct storage *from, struct storage *to, enum table t, struct storage_copies *count,
                              struct error *err)
{
        struct delta_snapshot *s = NULL;
        struct delta_table *log = NULL;
        struct key_list live = { 0 };
        enum status st = delta_table_open(from, table_name(t), &log, err);

        if (!st)
                st = delta_snapshot_acquire(log, &s, err);
        if (!st)
                st = check_target_log(from, to, t, s->version, err);
        if (!st)
                st = list_live_keys(s, t, &live, err);
        if (!st)
                st = copy_keys(from, to, &live, count, err);
        if (!st)
                st = copy_table_log(from, to, t, s->version, count, err);
        delta_snapshot_release(s);
        delta_table_close(log);
        deinit_copied_keys(&live);
        return st;
}

/* ---- all tables ---- */

static enum status check_queue_empty(const char *dir, struct error *err)
{
        const struct profile_store_options options = { .size = sizeof options, .read_only = true };
        struct profile_store_stat stat;
        struct profile_store *store;
        enum status st = profile_store_open(dir, &options, &store, err);

        if (st)
                return st;
        st = profile_store_stat(store, &stat, err);
        profile_store_close(store);
        if (!st && (stat.queued_batches || stat.health.quarantined_batches))
                st = error_set(err, ST_BUSY,
                               "'%.150s' has %s in its queue and %llu in quarantine, which are not copied: let the "
                               "service end, which writes the queue to the tables, and see cairn store quarantine",
                               dir, COUNTED(stat.queued_batches, "batch", "batches"),
                               (unsigned long long)stat.health.quarantined_batches);
        return st;
}

enum status copy_tables(const char *from, const char *to, struct storage_copies *count, struct error *err)
{
        _cleanup_storage_ struct storage *source = NULL, *target = NULL;
        enum status st = check_queue_empty(from, err);

        if (!st)
                st = open_table_storage(from, &source, err);
        if (!st)
                st = open_table_storage(to, &target, err);
        for (int t = 0; !st && t < TABLE_COUNT; t++)
                st = copy_table(source, target, t, count, err);
        return st;
}
