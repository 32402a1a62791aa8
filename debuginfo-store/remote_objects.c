/* SPDX-License-Identifier: Apache-2.0 */
#include "debuginfo-store/remote_objects.h"

#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/files/file.h"
#include "common/memory/arena.h"
#include "common/memory/array.h"
#include "common/program/log.h"
#include "debuginfo-store/debuginfo_store_internal.h"
#include "storage/s3/s3_storage.h"
#include "storage/s3/store_address.h"

#define ROWS_BYTES GiB(1) /* links and sections of all rows, while the records are made equal */

static uint64_t cache_limit = DEBUGINFO_CACHE_BYTES;

void set_debuginfo_cache_limit(uint64_t bytes)
{
        cache_limit = bytes;
}

static enum status open_storage_at(const char *dir, const char *url, struct storage **ret, struct error *err)
{
        _cleanup_free_ char *cache = path_join(dir, "cache");
        const struct s3_storage_options options = { .cache_dir = cache, .cache_bytes = cache_limit };

        return cache ? s3_storage_open(url, &options, ret, err) : error_no_memory(err);
}

enum status remote_objects_open_storage(const char *dir, struct storage **ret, struct error *err)
{
        _cleanup_free_ char *url = NULL;
        enum status st = store_address_read(dir, &url, err);

        *ret = NULL;
        return st || !url ? st : open_storage_at(dir, url, ret, err);
}

/* The service that writes creates the table. */
static enum status open_replica_table(struct debuginfo_store *store, struct error *err)
{
        enum status st = object_table_open(store->storage, true, &store->table, err);

        return st == ST_NOT_FOUND ? ST_OK : st;
}

enum status remote_objects_open(struct debuginfo_store *store, const char *url, struct error *err)
{
        enum status st = open_storage_at(store->dir, url, &store->storage, err);
        struct error own = { 0 };

        err = err ? err : &own; /* its text is logged */
        store->is_remote = true;
        if (!st && store->is_replica)
                return open_replica_table(store, err);
        if (st || store->is_read_only)
                return st;
        st = object_table_open(store->storage, false, &store->table, err);
        if (!st && !object_table_is_read(store->table))
                log_warn("debuginfo",
                         "cannot read which objects are in %.80s, so it is as it was known here; retrying every few "
                         "seconds: %s",
                         url, err->text);
        return st ? error_prefix(err, st, "the table of objects in %.80s", url)
                  : object_commits_start(store->table, &store->publish, &store->commits, err);
}

void remote_objects_close(struct debuginfo_store *store)
{
        object_commits_stop(store->commits);
        object_table_close(store->table);
}

/* ---- records ---- */

struct loaded_rows {
        struct meta_entry *items;
        size_t count, capacity;
        struct object_name **companions; /* of each entry; owned */
        size_t companions_capacity;
        struct arena sections;
};

static enum status load_row(void *context, const struct object_row *row, struct error *err)
{
        struct loaded_rows *l = context;
        struct meta_entry e = { .object = row->object };
        struct object_name *companions = NULL;
        enum status st = ST_OK;

        if (row->object.kind == OBJECT_ROW_SYMBOL_TABLE)
                return ST_OK;
        if (!array_reserve(&l->items, &l->capacity, l->count) ||
            !array_reserve(&l->companions, &l->companions_capacity, l->count))
                return error_no_memory(err);
        if (row->links)
                st = links_decode(row->links, row->links_size, &e.links, &companions, err);
        if (st)
                return st;
        e.has_links = row->links;
        l->companions[l->count] = companions;
        if (row->sections)
                e.note = (struct section_note){ arena_strndup(&l->sections, row->sections, row->sections_size),
                                                row->sections_size };
        l->items[l->count++] = e;
        return row->sections && !e.note.list ? arena_error(&l->sections, err, "sections of objects") : ST_OK;
}

static int compare_meta_entries(const void *a, const void *b)
{
        const struct stored_object *x = &((const struct meta_entry *)a)->object;
        const struct stored_object *y = &((const struct meta_entry *)b)->object;

        return object_name_compare(&(struct object_name){ x->build_id, x->kind },
                                   &(struct object_name){ y->build_id, y->kind });
}

enum status remote_objects_load(struct debuginfo_store *store, struct error *err)
{
        struct loaded_rows l = { 0 };
        enum status st;

        store->must_load = true;
        arena_init(&l.sections, ROWS_BYTES);
        st = object_table_visit(store->table, load_row, &l, err);
        if (!st && l.count)
                qsort(l.items, l.count, sizeof *l.items, compare_meta_entries);
        if (!st)
                st = meta_replace_all(store->meta, l.items, l.count, err);
        store->must_load = st;
        for (size_t i = 0; i < l.count; i++)
                free(l.companions[i]);
        arena_deinit(&l.sections);
        free(l.companions);
        free(l.items);
        return st;
}

/* Commits of this node change table and records with the lock, so neither is seen without the other. */
enum status debuginfo_store_follow(struct debuginfo_store *store, bool *changed_ret, struct error *err)
{
        bool changed = !store->table, has_loaded = false;
        enum status st;

        pthread_mutex_lock(&store->publish);
        st = store->table ? object_table_follow(store->table, &changed, err) : open_replica_table(store, err);
        if (!st && store->table && (changed || store->must_load)) {
                st = remote_objects_load(store, err);
                has_loaded = !st;
        }
        pthread_mutex_unlock(&store->publish);
        if (!st)
                *changed_ret = changed || has_loaded;
        return st;
}

/* ---- removal ---- */

struct object_removal {
        struct object_commit commit; /* first */
        struct debuginfo_store *store;
        const struct stored_object *object;
        bool exactly;
};

static enum status prepare_removal(struct object_commit *c, struct error *err)
{
        const struct object_removal *r = (const struct object_removal *)c;
        struct stored_object now;
        enum status st = meta_get(r->store->meta, &c->name.build_id, c->name.kind, &now, err);

        if (st)
                return st;
        if (r->exactly &&
            (!object_is_same_put(&now, r->object) || now.is_pinned || now.used_unix_s != r->object->used_unix_s))
                return error_set(err, ST_NOT_FOUND, "the object was changed concurrently");
        c->change = (struct object_change){ .row.object = now, .removes = true };
        return ST_OK;
}

static enum status apply_removal(struct object_commit *c, struct error *err)
{
        const struct object_removal *r = (const struct object_removal *)c;
        enum status st = meta_remove(r->store->meta, &c->name.build_id, c->name.kind, err);

        return st == ST_NOT_FOUND ? ST_OK : st;
}

static void init_removal(struct object_removal *ret, struct debuginfo_store *store, const struct stored_object *object,
                         bool exactly)
{
        *ret = (struct object_removal){
                .commit = { .name = { object->build_id, object->kind },
                            .prepare = prepare_removal,
                            .apply = apply_removal },
                .store = store,
                .object = object,
                .exactly = exactly,
        };
}

/* After the commit: the object that its row named. What cannot be removed is left to the collection of garbage. */
static void remove_unnamed_content(const struct object_removal *r)
{
        _cleanup_free_ char *key = object_format_key(&r->commit.change.row.object);

        if (key)
                (void)!storage_remove(r->store->storage, key, NULL);
}

enum status remote_objects_remove(struct debuginfo_store *store, const struct stored_object *object, struct error *err)
{
        struct object_removal r;
        enum status st;

        init_removal(&r, store, object, false);
        st = object_commits_run(store->commits, &r.commit, err);
        if (!st)
                remove_unnamed_content(&r);
        return st;
}

enum status remote_objects_remove_unchanged(struct debuginfo_store *store, const struct stored_object *objects,
                                            size_t count, bool *removed, struct error *err)
{
        _cleanup_free_ struct object_removal *removals = calloc(count + 1, sizeof *removals);
        _cleanup_free_ struct object_commit **commits = calloc(count + 1, sizeof *commits);
        enum status st = ST_OK;

        if (!removals || !commits)
                return error_no_memory(err);
        for (size_t i = 0; i < count; i++) {
                init_removal(&removals[i], store, &objects[i], true);
                commits[i] = &removals[i].commit;
        }
        object_commits_run_all(store->commits, commits, count);
        for (size_t i = 0; i < count; i++) {
                removed[i] = !commits[i]->result;
                if (removed[i])
                        remove_unnamed_content(&removals[i]);
                else if (commits[i]->result != ST_NOT_FOUND && !st) {
                        st = commits[i]->result;
                        if (err)
                                *err = commits[i]->error;
                }
        }
        return st;
}

/* ---- edits ---- */

struct object_edit {
        struct object_commit commit; /* first */
        struct debuginfo_store *store;
        meta_change *change;
        void *context;
};

static enum status prepare_edit(struct object_commit *c, struct error *err)
{
        const struct object_edit *e = (const struct object_edit *)c;
        struct stored_object now;
        enum status st = meta_get(e->store->meta, &c->name.build_id, c->name.kind, &now, err);

        if (st)
                return st;
        if (!e->change(e->context, &now))
                return ST_NOT_FOUND;
        c->change = (struct object_change){ .row.object = now, .keeps_notes = true };
        return ST_OK;
}

static enum status apply_edit(struct object_commit *c, struct error *err)
{
        const struct object_edit *e = (const struct object_edit *)c;

        return meta_edit(e->store->meta, &c->name, 1, e->change, e->context, err);
}

enum status remote_objects_edit(struct debuginfo_store *store, const struct object_name *name,
                                bool (*change)(void *context, struct stored_object *object), void *context,
                                struct error *err)
{
        struct object_edit e = { .commit = { .name = *name, .prepare = prepare_edit, .apply = apply_edit },
                                 .store = store,
                                 .change = change,
                                 .context = context };
        enum status st = object_commits_run(store->commits, &e.commit, err);

        return st == ST_NOT_FOUND ? ST_OK : st;
}
