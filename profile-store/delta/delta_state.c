/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file set has an array of references in no order, and a hash table of positions by path. Removal moves the last
 * file into the gap, which renumbers one entry of the table.
 *
 * A change takes two steps: delta_state_prepare() reserves memory for everything and checks the change,
 * delta_state_apply() moves the actions into the state and cannot fail. So a commit can be published between the two.
 * Removes are applied before adds.
 *
 * Snapshots are sorted by path and hold a reference to each file, so they outlive the state. The one of the current
 * version is kept until the next change, since every load of the tables requests it.
 *
 * In the file: files by path; the state; comparison of two states, for the verification of checkpoints; snapshots.
 * No lock: the lock of the table (delta_log.c) protects the state; reference counts are atomic.
 */
#include "profile-store/delta/delta_state.h"

#include <assert.h>
#include <json-c/json.h>
#include <string.h>

#include "common/memory/array.h"
#include "common/debug_check.h"
#include "common/limits.h"

struct counted_snapshot {
        struct delta_snapshot snapshot; /* first member: pointers are cast between the two types */
        atomic_uint refs;
        char *schema_json;
        const struct delta_file *files[];
};

void delta_state_init(struct delta_state *s)
{
        *s = (struct delta_state){ .version = -1 };
}

static void release_cached_snapshot(struct delta_state *s)
{
        delta_snapshot_release(s->snapshot);
        s->snapshot = NULL;
}

/* ---- files by path ---- */

static void file_set_deinit(struct delta_file_set *set)
{
        for (size_t i = 0; i < set->count; i++)
                delta_counted_file_unref(set->items[i]);
        free(set->items);
        hash_table_deinit(&set->by_path);
}

static uint32_t hash_path(const char *path)
{
        return hash_table_hash(path, strlen(path));
}

static bool is_file_at_path(const void *context, uint32_t number, const void *key, size_t size)
{
        (void)size;
        return strcmp(((const struct delta_file_set *)context)->items[number]->file.path, key) == 0;
}

static bool find_file_number(const struct delta_file_set *set, const char *path, uint32_t *ret)
{
        return hash_table_find(&set->by_path, hash_path(path), is_file_at_path, set, path, strlen(path), ret);
}

/* Reserve room for more files. hash_table_reserve() doubles a full table, so set its count to half of the slots. */
static enum status reserve_files(struct delta_file_set *set, size_t more, struct error *err)
{
        uint32_t count = set->by_path.count;
        enum status st = ST_OK;

        if (more > LIMIT_DELTA_FILES - set->count)
                return error_set(err, ST_TOO_BIG, "a table of more than %d files", LIMIT_DELTA_FILES);
        while (!st && set->by_path.slot_count / 2 < count + more) {
                set->by_path.count = set->by_path.slot_count / 2;
                st = hash_table_reserve(&set->by_path, err);
        }
        set->by_path.count = count;
        if (st)
                return st;
        return array_reserve_many(&set->items, &set->capacity, set->count, more) ? ST_OK : error_no_memory(err);
}

/* The last file is moved into the gap. */
static void drop_file(struct delta_file_set *set, const char *path)
{
        uint32_t number, last = (uint32_t)set->count - 1;
        bool found;

        if (!find_file_number(set, path, &number))
                return;
        found = hash_table_remove(&set->by_path, hash_path(path), number);
        assert(found);
        delta_counted_file_unref(set->items[number]);
        set->count--;
        if (number == last)
                return;
        found = hash_table_renumber(&set->by_path, hash_path(set->items[last]->file.path), last, number);
        assert(found);
        set->items[number] = set->items[last];
}

/* Takes f, which replaces a file of the same path. Room must be reserved. */
static void put_file(struct delta_file_set *set, struct delta_counted_file *f)
{
        uint32_t number;

        if (find_file_number(set, f->file.path, &number)) {
                delta_counted_file_unref(set->items[number]);
                set->items[number] = f;
                return;
        }
        assert(set->count < set->capacity);
        hash_table_insert(&set->by_path, hash_path(f->file.path), (uint32_t)set->count);
        set->items[set->count++] = f;
}

static void check_file_set(const struct delta_file_set *set)
{
        assert(set->by_path.count == set->count);
        assert(set->count <= set->capacity);
#if DEBUG_CHECKS
        for (size_t i = 0; i < set->count; i++) {
                uint32_t number;

                assert(find_file_number(set, set->items[i]->file.path, &number) && number == i);
        }
#else
        (void)set;
#endif
}

/* ---- the state ---- */

void delta_state_deinit(struct delta_state *s)
{
        file_set_deinit(&s->live);
        file_set_deinit(&s->removed);
        for (size_t i = 0; i < s->txn_count; i++)
                free(s->txns[i].app_id);
        free(s->txns);
        free(s->batch_ids);
        json_object_put(s->metadata);
        release_cached_snapshot(s);
        delta_state_init(s);
}

struct delta_counted_file *delta_state_find(const struct delta_state *s, const char *path)
{
        uint32_t number;

        return find_file_number(&s->live, path, &number) ? s->live.items[number] : NULL;
}

/* Assert that by_path finds every file under its index. Debug builds only. */
static void check_delta_state(const struct delta_state *s)
{
        check_file_set(&s->live);
        check_file_set(&s->removed);
}

enum status delta_state_prepare(struct delta_state *s, struct delta_actions *a, bool strict, struct error *err)
{
        enum status st = reserve_files(&s->live, a->add_count, err);

        if (!st)
                st = reserve_files(&s->removed, a->remove_count, err);
        if (st)
                return st;
        if (!array_reserve_many(&s->txns, &s->txn_capacity, s->txn_count, a->txn_count) ||
            !array_reserve_many(&s->batch_ids, &s->batch_id_capacity, s->batch_id_count, a->batch_id_count))
                return error_no_memory(err);
        for (size_t i = 0; strict && i < a->remove_count; i++) {
                if (!delta_state_find(s, a->removes[i]->file.path))
                        return error_set(err, ST_NOT_FOUND, "cannot remove file '%s': not in the table",
                                         a->removes[i]->file.path);
        }
        for (size_t i = 0; strict && i < a->add_count; i++) {
                if (delta_state_find(s, a->adds[i]->file.path))
                        return error_set(err, ST_USAGE, "cannot add file '%s': already in the table",
                                         a->adds[i]->file.path);
        }
        return ST_OK;
}

/* A remove may omit the size of the file; its add has it. */
static void apply_remove(struct delta_state *s, struct delta_counted_file *removed)
{
        const struct delta_counted_file *live = delta_state_find(s, removed->file.path);

        if (live && !removed->file.size)
                removed->file.size = live->file.size;
        drop_file(&s->live, removed->file.path);
        put_file(&s->removed, removed);
}

static void apply_add(struct delta_state *s, struct delta_counted_file *added)
{
        drop_file(&s->removed, added->file.path);
        put_file(&s->live, added);
}

static void set_txn_version(struct delta_state *s, struct delta_txn *txn)
{
        for (size_t i = 0; i < s->txn_count; i++) {
                if (!strcmp(s->txns[i].app_id, txn->app_id)) {
                        free(s->txns[i].app_id);
                        s->txns[i] = *txn;
                        return;
                }
        }
        s->txns[s->txn_count++] = *txn;
}

void delta_state_apply(struct delta_state *s, struct delta_actions *a, int64_t version)
{
        for (size_t i = 0; i < a->remove_count; i++)
                apply_remove(s, a->removes[i]);
        s->recent_actions += a->remove_count + a->add_count;
        a->remove_count = 0;
        for (size_t i = 0; i < a->add_count; i++)
                apply_add(s, a->adds[i]);
        a->add_count = 0;
        for (size_t i = 0; i < a->txn_count; i++)
                set_txn_version(s, &a->txns[i]);
        a->txn_count = 0;
        for (size_t i = 0; i < a->batch_id_count; i++)
                s->batch_ids[s->batch_id_count++] = (struct delta_batch_id){ a->batch_ids[i], version };
        if (a->metadata) {
                json_object_put(s->metadata);
                s->metadata = a->metadata;
                a->metadata = NULL;
        }
        s->has_protocol |= a->has_protocol;
        s->version = version;
        s->last_commit = (struct storage_info){ 0 };
        delta_actions_deinit(a);
        check_delta_state(s);
        release_cached_snapshot(s);
}

void delta_state_forget_batch_ids(struct delta_state *s, int64_t version)
{
        size_t n = 0;

        while (n < s->batch_id_count && s->batch_ids[n].version <= version && n < s->taken_batch_ids)
                n++;
        if (!n)
                return;
        memmove(s->batch_ids, s->batch_ids + n, (s->batch_id_count - n) * sizeof *s->batch_ids);
        s->batch_id_count -= n;
        s->taken_batch_ids -= n;
}

static int compare_file_paths(const void *a, const void *b)
{
        const struct delta_file *const *x = a, *const *y = b;

        return strcmp((*x)->path, (*y)->path);
}

void delta_state_forget(struct delta_state *s, const struct delta_file *f)
{
        uint32_t number;

        if (find_file_number(&s->removed, f->path, &number) &&
            s->removed.items[number]->file.removed_ms == f->removed_ms)
                drop_file(&s->removed, f->path);
}

static bool is_same_text(const char *a, const char *b)
{
        return a && b ? strcmp(a, b) == 0 : !a && !b;
}

static bool is_same_delta_file(const struct delta_file *a, const struct delta_file *b)
{
        if (a->size != b->size || a->partition_count != b->partition_count || a->removed_ms != b->removed_ms ||
            a->removal_changes_data != b->removal_changes_data || !is_same_text(a->stats, b->stats))
                return false;
        for (size_t i = 0; i < a->partition_count; i++) {
                if (!is_same_text(a->partitions[i].key, b->partitions[i].key) ||
                    !is_same_text(a->partitions[i].value, b->partitions[i].value))
                        return false;
        }
        return true;
}

/* Whether each file of b is in a. */
static bool contains_files(const struct delta_file_set *a, const struct delta_file_set *b)
{
        for (size_t i = 0; i < b->count; i++) {
                uint32_t number;

                if (!find_file_number(a, b->items[i]->file.path, &number) ||
                    !is_same_delta_file(&a->items[number]->file, &b->items[i]->file))
                        return false;
        }
        return true;
}

static bool contains_txns(const struct delta_state *a, const struct delta_state *b)
{
        for (size_t i = 0; i < b->txn_count; i++) {
                size_t k = 0;

                while (k < a->txn_count && strcmp(a->txns[k].app_id, b->txns[i].app_id) != 0)
                        k++;
                if (k == a->txn_count || a->txns[k].version != b->txns[i].version)
                        return false;
        }
        return true;
}

bool delta_state_matches(const struct delta_state *a, const struct delta_state *b)
{
        static const char *const keys[] = { "id", "schemaString", "partitionColumns", "configuration" };

        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
                if (!json_object_equal(json_object_object_get(a->metadata, keys[i]),
                                       json_object_object_get(b->metadata, keys[i])))
                        return false;
        }
        return a->version == b->version && a->has_protocol && a->live.count == b->live.count &&
               a->txn_count == b->txn_count && contains_txns(a, b) && contains_files(&a->live, &b->live) &&
               contains_files(&a->removed, &b->removed);
}

static enum status create_snapshot(const struct delta_state *s, const struct delta_file_set *set,
                                   const char *schema_json, struct delta_snapshot **ret, struct error *err)
{
        struct counted_snapshot *c = calloc(1, sizeof *c + set->count * sizeof *c->files);

        if (c && schema_json)
                c->schema_json = strdup(schema_json);
        if (!c || (schema_json && !c->schema_json)) {
                free(c);
                return error_no_memory(err);
        }
        for (size_t i = 0; i < set->count; i++) {
                delta_counted_file_ref(set->items[i]);
                c->files[i] = &set->items[i]->file;
        }
        if (set->count)
                qsort(c->files, set->count, sizeof *c->files, compare_file_paths);
        c->refs = 1;
        c->snapshot = (struct delta_snapshot){ (uint64_t)s->version, c->files, set->count, c->schema_json };
        *ret = &c->snapshot;
        return ST_OK;
}

enum status delta_state_get_snapshot(struct delta_state *s, struct delta_snapshot **ret, struct error *err)
{
        enum status st = ST_OK;

        if (!s->snapshot)
                st = create_snapshot(s, &s->live, delta_json_get_string(s->metadata, "schemaString"), &s->snapshot,
                                     err);
        if (st)
                return st;
        atomic_fetch_add_explicit(&((struct counted_snapshot *)s->snapshot)->refs, 1, memory_order_relaxed);
        *ret = s->snapshot;
        return ST_OK;
}

enum status delta_state_get_removed(const struct delta_state *s, struct delta_snapshot **ret, struct error *err)
{
        return create_snapshot(s, &s->removed, NULL, ret, err);
}

void delta_snapshot_release(struct delta_snapshot *s)
{
        struct counted_snapshot *c = (struct counted_snapshot *)s;

        if (!s || atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) != 1)
                return;
        for (size_t i = 0; i < s->file_count; i++)
                delta_counted_file_unref((struct delta_counted_file *)c->files[i]);
        free(c->schema_json);
        free(c);
}
