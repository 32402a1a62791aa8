/* SPDX-License-Identifier: Apache-2.0 */
#include "debuginfo-store/remote_objects.h"

#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/files/file.h"
#include "common/memory/arena.h"
#include "common/memory/array.h"
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

enum status remote_objects_open(struct debuginfo_store *store, const char *url, struct error *err)
{
        enum status st = open_storage_at(store->dir, url, &store->storage, err);

        store->is_remote = true;
        if (st || store->is_read_only)
                return st;
        st = object_table_open(store->storage, false, &store->table, err);
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

        arena_init(&l.sections, ROWS_BYTES);
        st = object_table_visit(store->table, load_row, &l, err);
        if (!st && l.count)
                qsort(l.items, l.count, sizeof *l.items, compare_meta_entries);
        if (!st)
                st = meta_replace_all(store->meta, l.items, l.count, err);
        for (size_t i = 0; i < l.count; i++)
                free(l.companions[i]);
        arena_deinit(&l.sections);
        free(l.companions);
        free(l.items);
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
        if (r->exactly && (memcmp(now.sha256, r->object->sha256, sizeof now.sha256) != 0 || now.is_pinned ||
                           now.used_unix_s != r->object->used_unix_s))
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

enum status remote_objects_remove(struct debuginfo_store *store, const struct stored_object *object, bool exactly,
                                  struct error *err)
{
        struct object_removal r = { .commit = { .name = { object->build_id, object->kind },
                                                .prepare = prepare_removal,
                                                .apply = apply_removal },
                                    .store = store,
                                    .object = object,
                                    .exactly = exactly };

        return object_commits_run(store->commits, &r.commit, err);
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
