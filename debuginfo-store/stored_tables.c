/* SPDX-License-Identifier: Apache-2.0 */
#include "debuginfo-store/stored_tables.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/files/file.h"
#include "common/hash/sha256.h"
#include "common/memory/array.h"
#include "common/metrics.h"
#include "common/text.h"
#include "debuginfo-store/debuginfo_store_internal.h"
#include "debuginfo-store/seekable.h"

static struct metric fetched =
        METRIC_COUNTER("cairn_symbol_tables_fetched_total", "Symbol tables that were loaded from an object store.", "");
static struct metric stored =
        METRIC_COUNTER("cairn_symbol_tables_stored_total", "Symbol tables that were put into an object store.", "");

bool debuginfo_store_keeps_tables(const struct debuginfo_store *store)
{
        return store->commits;
}

void stored_tables_register_metrics(void)
{
        metric_register(&fetched);
        metric_register(&stored);
}

/* ---- generations ---- */

static const enum object_kind inputs[] = { OBJECT_DEBUGINFO, OBJECT_SUPPLEMENTARY, OBJECT_EXECUTABLE, OBJECT_SYMBOLS,
                                           OBJECT_DWP };

/* Each companion with its content, or zeros while it is not stored. */
static enum status hash_companions(struct debuginfo_store *store, const struct object_name *owner, struct sha256 *sha,
                                   struct error *err)
{
        _cleanup_free_ struct object_name *companions = NULL;
        size_t count = 0;
        enum status st = debuginfo_store_get_companions(store, owner, &companions, &count, err);

        if (st == ST_NOT_FOUND)
                return ST_OK;
        for (size_t i = 0; !st && i < count; i++) {
                struct stored_object o = { 0 };

                st = debuginfo_store_find(store, &companions[i].build_id, companions[i].kind, &o, err);
                st = st == ST_NOT_FOUND ? ST_OK : st;
                sha256_update(sha, companions[i].build_id.bytes, companions[i].build_id.size);
                sha256_update(sha, o.sha256, sizeof o.sha256);
        }
        return st;
}

enum status stored_table_compute_generation(struct debuginfo_store *store, const struct build_id *id,
                                            uint8_t ret[static OBJECT_GENERATION_BYTES], bool *any_ret,
                                            struct error *err)
{
        _cleanup_sha256_ struct sha256 sha = { 0 };
        uint8_t digest[SHA256_BYTES];
        enum status st = sha256_init(&sha, err);

        *any_ret = false;
        for (size_t i = 0; !st && i < sizeof inputs / sizeof *inputs; i++) {
                const uint8_t kind = (uint8_t)inputs[i];
                struct stored_object o;

                st = meta_get(store->meta, id, inputs[i], &o, err);
                if (st == ST_NOT_FOUND) {
                        st = ST_OK;
                        continue;
                }
                if (st)
                        break;
                *any_ret = true;
                sha256_update(&sha, &kind, 1);
                sha256_update(&sha, o.sha256, sizeof o.sha256);
                st = hash_companions(store, &(struct object_name){ *id, inputs[i] }, &sha, err);
        }
        if (st)
                return st;
        sha256_final(&sha, digest);
        memcpy(ret, digest, OBJECT_GENERATION_BYTES);
        return ST_OK;
}

/* ---- reading ---- */

static enum status unpack_stored_table(struct debuginfo_store *store, struct seekable_reader *r, int *fd_ret,
                                       struct error *err)
{
        _cleanup_free_ void *bytes = malloc(SEEKABLE_FRAME_BYTES);
        _cleanup_close_ int fd = object_create_temporary(store, err);
        enum status st = fd < 0 ? ST_OS : bytes ? ST_OK : error_no_memory(err);

        if (seekable_get_size(r) > LIMIT_SYMBOL_TABLE_BYTES)
                return error_set(err, ST_BAD_DATA, "a symbol table is greater than its limit");
        for (uint64_t at = 0; !st && at < seekable_get_size(r);) {
                ssize_t n = seekable_pread(r, bytes, SEEKABLE_FRAME_BYTES, at, err);

                if (n < 0)
                        return err->code;
                st = file_write_all(fd, bytes, (size_t)n, store->dir, err);
                at += (uint64_t)n;
        }
        if (!st)
                *fd_ret = steal_fd(&fd);
        return st;
}

enum status stored_table_open(struct debuginfo_store *store, const struct build_id *id, const uint8_t *generation,
                              int *fd_ret, struct error *err)
{
        const struct object_name name = { *id, OBJECT_ROW_SYMBOL_TABLE };
        struct stored_object there;
        _cleanup_free_ char *key = NULL;
        struct seekable_reader *r;
        struct storage_map map;
        enum status st;

        if (!store->table || !object_table_find_put(store->table, &name, &there) ||
            (generation && memcmp(there.sha256, generation, OBJECT_GENERATION_BYTES) != 0))
                return ST_NOT_FOUND;
        key = object_format_key(&there);
        st = key ? storage_map(store->storage, key, LIMIT_SYMBOL_TABLE_BYTES, &map, err) : error_no_memory(err);
        if (!st)
                st = seekable_open_map(&map, key, &r, err);
        if (st)
                return st;
        st = unpack_stored_table(store, r, fd_ret, err);
        seekable_close(r);
        metric_add(&fetched, !st);
        return st;
}

/* ---- writing ---- */

static void free_table_commit(struct object_commit *c)
{
        free(c);
}

/*
 * The row joins the next commit. After a failure the table has no row, so it is extracted again where it is needed. The
 * table that it replaces, and one whose commit fails, are left to the collection of garbage.
 */
static enum status commit_table_later(struct debuginfo_store *store, const struct stored_object *row, struct error *err)
{
        struct object_commit *c = calloc(1, sizeof *c);

        if (!c)
                return error_no_memory(err);
        *c = (struct object_commit){ .name = { row->build_id, row->kind },
                                     .change = { .row.object = *row },
                                     .free = free_table_commit };
        object_commits_add_later(store->commits, c);
        return ST_OK;
}

enum status stored_table_put(struct debuginfo_store *store, const struct build_id *id,
                             const uint8_t generation[static OBJECT_GENERATION_BYTES], enum symbol_quality quality,
                             int fd, uint64_t size, struct error *err)
{
        struct stored_object row = { .build_id = *id,
                                     .kind = OBJECT_ROW_SYMBOL_TABLE,
                                     .quality = quality,
                                     .size_bytes = size,
                                     .stored_unix_s = wall_clock_ns() / 1000000000 };
        _cleanup_free_ char *key = NULL;
        struct storage_upload u;
        enum status st = object_draw_put_id(&row.put_id, err);

        if (st)
                return st;
        row.used_unix_s = row.stored_unix_s;
        memcpy(row.sha256, generation, OBJECT_GENERATION_BYTES);
        key = object_format_key(&row);
        st = key ? storage_begin(store->storage, key, &u, err) : error_no_memory(err);
        if (st)
                return st;
        st = seekable_compress(fd, size, u.fd, key, &row.stored_bytes, err);
        if (st) {
                storage_discard(&u);
                return st;
        }
        st = storage_publish(&u, STORAGE_REPLACE, err);
        if (!st)
                st = commit_table_later(store, &row, err);
        metric_add(&stored, !st);
        return st;
}

/* ---- all tables ---- */

struct table_list {
        struct object_row *items; /* without texts */
        size_t count, capacity;
};

static enum status append_listed_table(void *context, const struct object_row *row, struct error *err)
{
        struct table_list *l = context;

        if (row->object.kind != OBJECT_ROW_SYMBOL_TABLE)
                return ST_OK;
        if (!array_reserve(&l->items, &l->capacity, l->count))
                return error_no_memory(err);
        l->items[l->count++] = (struct object_row){ .object = row->object };
        return ST_OK;
}

enum status stored_table_list(struct debuginfo_store *store, void (*each)(void *context, const struct build_id *id),
                              void *context, struct error *err)
{
        struct table_list l = { 0 };
        enum status st = store->table ? object_table_visit(store->table, append_listed_table, &l, err) : ST_OK;

        for (size_t i = 0; !st && i < l.count; i++)
                each(context, &l.items[i].object.build_id);
        free(l.items);
        return st;
}

/* A table that is to be removed. */
struct table_removal {
        struct object_commit commit; /* first */
        const struct stored_object *table;
        struct debuginfo_store *store;
};

/* It may have been replaced since it was listed. */
static enum status prepare_table_removal(struct object_commit *c, struct error *err)
{
        const struct table_removal *r = (const struct table_removal *)c;
        struct stored_object now;

        if (!object_table_find_put(r->store->table, &c->name, &now) || now.put_id != r->table->put_id)
                return error_set(err, ST_NOT_FOUND, "the symbol table was replaced");
        c->change = (struct object_change){ .row.object = *r->table, .removes = true };
        return ST_OK;
}

static enum status remove_tables(struct debuginfo_store *store, const struct stored_object *tables, size_t count,
                                 uint64_t *removed_ret, struct error *err)
{
        _cleanup_free_ struct table_removal *removals = calloc(count + 1, sizeof *removals);
        _cleanup_free_ struct object_commit **commits = calloc(count + 1, sizeof *commits);
        enum status st = ST_OK;

        if (!removals || !commits)
                return error_no_memory(err);
        for (size_t i = 0; i < count; i++) {
                removals[i] = (struct table_removal){ .commit = { .name = { tables[i].build_id, tables[i].kind },
                                                                  .prepare = prepare_table_removal },
                                                      .table = &tables[i],
                                                      .store = store };
                commits[i] = &removals[i].commit;
        }
        object_commits_run_all(store->commits, commits, count);
        for (size_t i = 0; i < count; i++) {
                _cleanup_free_ char *key = commits[i]->result ? NULL : object_format_key(&tables[i]);

                *removed_ret += !commits[i]->result;
                if (key)
                        (void)!storage_remove(store->storage, key, NULL);
                if (commits[i]->result && commits[i]->result != ST_NOT_FOUND && !st) {
                        st = commits[i]->result;
                        if (err)
                                *err = commits[i]->error;
                }
        }
        return st;
}

enum status stored_table_expire(struct debuginfo_store *store, int64_t before_unix_s,
                                bool (*is_used)(void *context, const struct build_id *id), void *context,
                                uint64_t *removed_ret, struct error *err)
{
        _cleanup_free_ struct stored_object *expired = calloc(OBJECT_COMMIT_CHANGES, sizeof *expired);
        struct table_list l = { 0 };
        size_t count = 0;
        enum status st = expired ? ST_OK : error_no_memory(err);

        if (!st && store->table)
                st = object_table_visit(store->table, append_listed_table, &l, err);
        for (size_t i = 0; !st && i < l.count; i++) {
                const struct stored_object *o = &l.items[i].object;

                if (o->stored_unix_s < before_unix_s && !is_used(context, &o->build_id))
                        expired[count++] = *o;
                if (count == OBJECT_COMMIT_CHANGES || i + 1 == l.count) {
                        st = count ? remove_tables(store, expired, count, removed_ret, err) : ST_OK;
                        count = 0;
                }
        }
        free(l.items);
        return st;
}
