/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-index/index_expiry.h"

#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/memory/array.h"
#include "symbol-index/index_object.h"
#include "symbol-index/symbol_index_internal.h"

#define OBJECTS_PER_TRANSACTION 64

struct expiry_list {
        struct build_id *ids; /* sorted */
        size_t count, capacity;
};

static bool is_old_object(const struct index_object *o, const struct index_expiry_options *options)
{
        int64_t read_unix_s = o->indexed_unix_s ? o->indexed_unix_s : o->changed_unix_s;

        return o->state != OBJECT_PENDING && read_unix_s < options->indexed_before_unix_s;
}

static int compare_expired_ids(const void *a, const void *b)
{
        return build_id_compare(a, b);
}

static struct build_id *find_expired_id(const struct expiry_list *l, const MDB_val *id)
{
        struct build_id wanted = { .size = (uint8_t)id->mv_size };

        if (id->mv_size > sizeof wanted.bytes)
                return NULL;
        memcpy(wanted.bytes, id->mv_data, id->mv_size);
        return l->count ? bsearch(&wanted, l->ids, l->count, sizeof *l->ids, compare_expired_ids) : NULL;
}

/* A damaged record is left to the next load of its object. */
static enum status list_old_objects(struct symbol_index *index, MDB_txn *txn,
                                    const struct index_expiry_options *options, struct expiry_list *l,
                                    struct error *err)
{
        MDB_cursor *cursor;
        MDB_val key, value;
        enum status st = ST_OK;
        int rc = mdb_cursor_open(txn, index->objects, &cursor);

        if (rc)
                return index_set_error(err, index, rc, "cannot list the objects of the index");
        while (!st && (rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) == 0) {
                struct build_id id = { .size = (uint8_t)key.mv_size };
                struct index_object o;

                if (!key.mv_size || key.mv_size > sizeof id.bytes)
                        continue;
                memcpy(id.bytes, key.mv_data, key.mv_size);
                if (index_object_get(index, txn, &id, &o, NULL) || !is_old_object(&o, options))
                        continue;
                if (!array_reserve(&l->ids, &l->capacity, l->count))
                        st = error_no_memory(err);
                else
                        l->ids[l->count++] = id;
        }
        mdb_cursor_close(cursor);
        if (!st && rc != MDB_NOTFOUND)
                st = index_set_error(err, index, rc, "cannot list the objects of the index");
        if (l->count)
                qsort(l->ids, l->count, sizeof *l->ids, compare_expired_ids);
        return st;
}

struct alias_list {
        struct build_id *aliases, *targets;
        size_t count, capacity, target_capacity;
};

static void alias_list_deinit(struct alias_list *a)
{
        free(a->aliases);
        free(a->targets);
}

static enum status add_alias_pair(struct alias_list *a, const MDB_val *key, const MDB_val *value, struct error *err)
{
        struct build_id *alias, *target;

        if (!array_reserve(&a->aliases, &a->capacity, a->count) ||
            !array_reserve(&a->targets, &a->target_capacity, a->count))
                return error_no_memory(err);
        alias = &a->aliases[a->count];
        target = &a->targets[a->count++];
        alias->size = (uint8_t)key->mv_size;
        memcpy(alias->bytes, key->mv_data, key->mv_size);
        target->size = (uint8_t)value->mv_size;
        memcpy(target->bytes, value->mv_data, value->mv_size);
        return ST_OK;
}

/* The aliases of listed objects. */
static enum status list_aliases(struct symbol_index *index, MDB_txn *txn, const struct expiry_list *l,
                                struct alias_list *ret, struct error *err)
{
        MDB_cursor *cursor;
        MDB_val key, value;
        enum status st = ST_OK;
        int rc;

        if (!l->count)
                return ST_OK;
        rc = mdb_cursor_open(txn, index->aliases, &cursor);
        if (rc)
                return index_set_error(err, index, rc, "cannot list the aliases of the index");
        while (!st && (rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) == 0)
                if (key.mv_size <= BUILD_ID_MAX && find_expired_id(l, &value))
                        st = add_alias_pair(ret, &key, &value, err);
        mdb_cursor_close(cursor);
        return st || rc == MDB_NOTFOUND ? st : index_set_error(err, index, rc, "cannot list the aliases of the index");
}

/* Drop the objects that are in use under their build-id or under an alias. */
static enum status drop_used_objects(struct expiry_list *l, const struct alias_list *aliases,
                                     const struct index_expiry_options *options, struct error *err)
{
        _cleanup_free_ bool *is_alias_used = calloc(l->count + 1, sizeof *is_alias_used);
        size_t n = 0;

        if (!is_alias_used)
                return error_no_memory(err);
        for (size_t i = 0; i < aliases->count; i++) {
                const MDB_val target = { aliases->targets[i].size, aliases->targets[i].bytes };

                if (options->is_used(options->context, &aliases->aliases[i]))
                        is_alias_used[find_expired_id(l, &target) - l->ids] = true;
        }
        for (size_t i = 0; i < l->count; i++)
                if (!is_alias_used[i] && !options->is_used(options->context, &l->ids[i]))
                        l->ids[n++] = l->ids[i];
        l->count = n;
        return ST_OK;
}

static enum status list_unused_objects(struct symbol_index *index, const struct index_expiry_options *options,
                                       struct expiry_list *l, struct error *err)
{
        _cleanup_(alias_list_deinit) struct alias_list aliases = { 0 };
        MDB_txn *txn;
        int rc = mdb_txn_begin(index->env, NULL, MDB_RDONLY, &txn);
        enum status st;

        if (rc)
                return index_set_error(err, index, rc, "cannot read the index");
        st = list_old_objects(index, txn, options, l, err);
        if (!st)
                st = list_aliases(index, txn, l, &aliases, err);
        mdb_txn_abort(txn);
        return st ? st : drop_used_objects(l, &aliases, options, err);
}

/* ---- removal ---- */

static enum status delete_key(struct index_write *w, MDB_dbi dbi, const struct build_id *id, struct error *err)
{
        MDB_val key = { id->size, (void *)id->bytes };
        int rc = mdb_del(w->txn, dbi, &key, NULL);

        return rc == MDB_NOTFOUND ? ST_OK
                                  : index_set_error(err, w->index, rc, "cannot remove an object from the index");
}

static enum status remove_object(struct index_write *w, const struct build_id *id,
                                 const struct index_expiry_options *options, uint64_t *removed, struct error *err)
{
        struct index_object o;
        enum status st = index_object_get(w->index, w->txn, id, &o, NULL);

        if (st || !is_old_object(&o, options))
                return ST_OK;
        st = o.number ? index_garbage_add(w, o.number, err) : ST_OK;
        if (!st)
                st = delete_key(w, w->index->objects, id, err);
        *removed += !st;
        return st;
}

/* Caller holds write_lock. */
static enum status remove_objects(struct symbol_index *index, const struct expiry_list *l,
                                  const struct index_expiry_options *options, uint64_t *removed, struct error *err)
{
        _cleanup_(alias_list_deinit) struct alias_list aliases = { 0 };
        struct index_write w;
        uint64_t count = 0;
        enum status st = index_write_begin(&w, index, err);

        if (!st)
                st = list_aliases(index, w.txn, l, &aliases, err);
        for (size_t i = 0; !st && i < l->count; i++)
                st = remove_object(&w, &l->ids[i], options, &count, err);
        for (size_t i = 0; !st && i < aliases.count; i++) {
                struct index_object o;

                if (!index_object_get(index, w.txn, &aliases.targets[i], &o, NULL) && o.state == OBJECT_ABSENT)
                        st = delete_key(&w, index->aliases, &aliases.aliases[i], err);
        }
        if (!st)
                st = index_write_commit(&w, err);
        index_write_abort(&w);
        if (st)
                return st;
        *removed += count;
        return index_garbage_sweep(index, err);
}

enum status symbol_index_remove_unused(struct symbol_index *index, const struct index_expiry_options *options,
                                       uint64_t *removed_ret, struct error *err)
{
        struct expiry_list unused = { 0 }, some;
        enum status st;

        *removed_ret = 0;
        if (index->read_only)
                return error_set(err, ST_USAGE, "index '%s' is open for reading only", index->dir);
        st = list_unused_objects(index, options, &unused, err);
        for (size_t at = 0; !st && at < unused.count; at += OBJECTS_PER_TRANSACTION) {
                if (options->proceed && !options->proceed(options->context))
                        break;
                some = (struct expiry_list){ .ids = unused.ids + at,
                                             .count = unused.count - at < OBJECTS_PER_TRANSACTION
                                                              ? unused.count - at
                                                              : OBJECTS_PER_TRANSACTION };
                pthread_mutex_lock(&index->write_lock);
                st = remove_objects(index, &some, options, removed_ret, err);
                pthread_mutex_unlock(&index->write_lock);
        }
        free(unused.ids);
        return st;
}
