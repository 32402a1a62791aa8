/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/index_alias.h"

#include <string.h>

#include "symbolizer/index_object.h"

static bool leads_to(const MDB_val *value, const struct build_id *id)
{
        return value->mv_size == id->size && memcmp(value->mv_data, id->bytes, id->size) == 0;
}

enum status index_object_find(struct symbol_index *index, MDB_txn *txn, const struct build_id *id, struct index_object *ret,
                              struct error *err)
{
        MDB_val key = { id->size, (void *)id->bytes }, value;
        enum status st = index_object_get(index, txn, id, ret, err);
        struct build_id owner;

        if (st || ret->number || !index->has_aliases || !id->size || mdb_get(txn, index->aliases, &key, &value) ||
            !build_id_from_bytes(&owner, value.mv_data, value.mv_size))
                return st;
        return index_object_get(index, txn, &owner, ret, err);
}

static enum status put(struct index_write *w, const struct build_id *id, const struct build_id *alias, bool *changed_ret,
                       struct error *err)
{
        MDB_val key = { alias->size, (void *)alias->bytes }, value;
        int rc = mdb_get(w->txn, w->index->aliases, &key, &value);

        *changed_ret = rc || !leads_to(&value, id);
        if (rc && rc != MDB_NOTFOUND)
                return index_error(err, w->index, rc, "cannot read an alias");
        return *changed_ret ? index_write_put(w, w->index->aliases, alias->bytes, alias->size, id->bytes, id->size, 0, err) : ST_OK;
}

enum status symbol_index_alias(struct symbol_index *index, const struct build_id *id, const struct build_id *aliases,
                               size_t count, bool *changed_ret, struct error *err)
{
        struct index_write w;
        bool any = false;
        enum status st;

        if (index->read_only)
                return error_set(err, ST_USAGE, "index '%s' is open for reading only", index->dir);
        if (!count)
                return ST_OK;
        pthread_mutex_lock(&index->write_lock);
        st = index_write_begin(&w, index, err);
        for (size_t i = 0; !st && i < count; i++) {
                bool changed;

                st = put(&w, id, &aliases[i], &changed, err);
                if (!st && changed_ret)
                        changed_ret[i] = changed;
                any = any || (!st && changed);
        }
        if (!st && any)
                st = index_write_commit(&w, err);
        index_write_abort(&w);
        pthread_mutex_unlock(&index->write_lock);
        return st;
}
