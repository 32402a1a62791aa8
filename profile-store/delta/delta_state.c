/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-store/delta/delta_state.h"

#include <assert.h>
#include <json-c/json.h>
#include <string.h>

#include "common/limits.h"

struct counted_snapshot {
        struct delta_snapshot snapshot; /* first: the two are cast to each other */
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

void delta_state_deinit(struct delta_state *s)
{
        for (size_t i = 0; i < s->file_count; i++)
                delta_live_file_unref(s->files[i]);
        for (size_t i = 0; i < s->txn_count; i++)
                free(s->txns[i].app_id);
        free(s->files);
        hash_table_deinit(&s->by_path);
        free(s->txns);
        json_object_put(s->metadata);
        release_cached_snapshot(s);
        delta_state_init(s);
}

static uint32_t hash_path(const char *path)
{
        return hash_table_hash(path, strlen(path));
}

static bool is_file_at_path(const void *context, uint32_t number, const void *key, size_t size)
{
        (void)size;
        return strcmp(((const struct delta_state *)context)->files[number]->file.path, key) == 0;
}

static bool find_file_number(const struct delta_state *s, const char *path, uint32_t *ret)
{
        return hash_table_find(&s->by_path, hash_path(path), is_file_at_path, s, path, strlen(path), ret);
}

struct delta_live_file *delta_state_find(const struct delta_state *s, const char *path)
{
        uint32_t number;

        return find_file_number(s, path, &number) ? s->files[number] : NULL;
}

void delta_state_check(const struct delta_state *s)
{
        assert(s->by_path.count == s->file_count);
        assert(s->file_count <= s->file_capacity);
#if !defined(__OPTIMIZE__) || defined(__SANITIZE_ADDRESS__)
        for (size_t i = 0; i < s->file_count; i++)
                assert(delta_state_find(s, s->files[i]->file.path) == s->files[i]);
#endif
}

/* Reserve room for more files. hash_table_reserve() doubles a full table, so set its count to half of the slots. */
static enum status reserve_files(struct delta_state *s, size_t more, struct error *err)
{
        uint32_t count = s->by_path.count;
        struct delta_live_file **files;
        enum status st = ST_OK;

        if (more > LIMIT_DELTA_FILES - s->file_count)
                return error_set(err, ST_TOO_BIG, "a table of more than %d files", LIMIT_DELTA_FILES);
        while (!st && s->by_path.slot_count / 2 < count + more) {
                s->by_path.count = s->by_path.slot_count / 2;
                st = hash_table_reserve(&s->by_path, err);
        }
        s->by_path.count = count;
        if (st || s->file_count + more <= s->file_capacity)
                return st;
        more += s->file_count / 2;
        files = reallocarray(s->files, s->file_count + more, sizeof(struct delta_live_file *));
        if (!files)
                return error_no_memory(err);
        s->files = files;
        s->file_capacity = s->file_count + more;
        return ST_OK;
}

enum status delta_state_prepare(struct delta_state *s, struct delta_actions *a, bool strict, struct error *err)
{
        struct delta_txn *txns;
        enum status st = reserve_files(s, a->add_count, err);

        if (st)
                return st;
        txns = realloc(s->txns, (s->txn_count + a->txn_count + 1) * sizeof *txns);
        if (!txns)
                return error_no_memory(err);
        s->txns = txns;
        for (size_t i = 0; strict && i < a->remove_count; i++) {
                if (!delta_state_find(s, a->removes[i]))
                        return error_set(err, ST_NOT_FOUND, "file '%s' to remove is not in the table", a->removes[i]);
        }
        for (size_t i = 0; strict && i < a->add_count; i++) {
                if (delta_state_find(s, a->adds[i]->file.path))
                        return error_set(err, ST_USAGE, "file '%s' is in the table already", a->adds[i]->file.path);
        }
        return ST_OK;
}

/* The last file moves into the gap. */
static void remove_live_file(struct delta_state *s, const char *path)
{
        uint32_t number, last = (uint32_t)s->file_count - 1;
        bool found;

        if (!find_file_number(s, path, &number))
                return;
        found = hash_table_remove(&s->by_path, hash_path(path), number);
        assert(found);
        delta_live_file_unref(s->files[number]);
        s->file_count--;
        if (number == last)
                return;
        found = hash_table_renumber(&s->by_path, hash_path(s->files[last]->file.path), last, number);
        assert(found);
        s->files[number] = s->files[last];
}

/* Replaces a live file of the same path. Room is reserved. */
static void add_live_file(struct delta_state *s, struct delta_live_file *f)
{
        uint32_t number;

        if (find_file_number(s, f->file.path, &number)) {
                delta_live_file_unref(s->files[number]);
                s->files[number] = f;
                return;
        }
        assert(s->file_count < s->file_capacity);
        hash_table_insert(&s->by_path, hash_path(f->file.path), (uint32_t)s->file_count);
        s->files[s->file_count++] = f;
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
                remove_live_file(s, a->removes[i]);
        for (size_t i = 0; i < a->add_count; i++)
                add_live_file(s, a->adds[i]);
        a->add_count = 0;
        for (size_t i = 0; i < a->txn_count; i++)
                set_txn_version(s, &a->txns[i]);
        a->txn_count = 0;
        if (a->metadata) {
                json_object_put(s->metadata);
                s->metadata = a->metadata;
                a->metadata = NULL;
        }
        s->has_protocol |= a->has_protocol;
        s->version = version;
        delta_actions_deinit(a);
        delta_state_check(s);
        release_cached_snapshot(s);
}

static int compare_file_paths(const void *a, const void *b)
{
        const struct delta_file *const *x = a, *const *y = b;

        return strcmp((*x)->path, (*y)->path);
}

enum status delta_state_get_snapshot(struct delta_state *s, struct delta_snapshot **ret, struct error *err)
{
        struct counted_snapshot *c;
        size_t n = 0;

        if (!s->snapshot) {
                c = calloc(1, sizeof *c + s->file_count * sizeof *c->files);
                if (c)
                        c->schema_json = strdup(delta_json_get_string(s->metadata, "schemaString"));
                if (!c || !c->schema_json) {
                        free(c);
                        return error_no_memory(err);
                }
                for (size_t i = 0; i < s->file_count; i++) {
                        delta_live_file_ref(s->files[i]);
                        c->files[n++] = &s->files[i]->file;
                }
                assert(n == s->file_count);
                if (n)
                        qsort(c->files, n, sizeof *c->files, compare_file_paths);
                c->refs = 1;
                c->snapshot = (struct delta_snapshot){ (uint64_t)s->version, c->files, n, c->schema_json };
                s->snapshot = &c->snapshot;
        }
        c = (struct counted_snapshot *)s->snapshot;
        atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
        *ret = s->snapshot;
        return ST_OK;
}

void delta_snapshot_release(struct delta_snapshot *s)
{
        struct counted_snapshot *c = (struct counted_snapshot *)s;

        if (!s || atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) != 1)
                return;
        for (size_t i = 0; i < s->file_count; i++)
                delta_live_file_unref((struct delta_live_file *)c->files[i]);
        free(c->schema_json);
        free(c);
}
