/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <string.h>

#include "symbol-index/index_blocks.h"
#include "symbol-index/block_map.h"

#define SLICE_PAGES 16 /* map pages deleted in one transaction, with up to 249 blocks each */

enum status index_write_begin(struct index_write *w, struct symbol_index *index, struct error *err)
{
        *w = (struct index_write){ .index = index };
        return index_set_error(err, index, mdb_txn_begin(index->env, NULL, 0, &w->txn), "cannot write the index");
}

enum status index_write_commit(struct index_write *w, struct error *err)
{
        MDB_txn *txn = w->txn;

        assert(txn);
        w->txn = NULL;
        return index_set_error(err, w->index, mdb_txn_commit(txn), "cannot write the index");
}

void index_write_abort(struct index_write *w)
{
        if (w->txn)
                mdb_txn_abort(w->txn);
        w->txn = NULL;
}

bool index_write_is_full(const struct index_write *w)
{
        return w->bytes >= w->index->write_bytes;
}

enum status index_write_renew(struct index_write *w, struct error *err)
{
        enum status st = index_write_commit(w, err);

        return st ? st : index_write_begin(w, w->index, err);
}

enum status index_write_put(struct index_write *w, MDB_dbi dbi, const struct index_record *record, unsigned flags,
                            struct error *err)
{
        MDB_val k = { record->key_size, (void *)record->key }, v = { record->value_size, (void *)record->value };

        assert(w->txn && record->key_size > 0);
        w->bytes += record->key_size + record->value_size;
        return index_set_error(err, w->index, mdb_put(w->txn, dbi, &k, &v, flags), "cannot write the index");
}

enum status index_garbage_add(struct index_write *w, uint32_t object, struct error *err)
{
        struct map_key key = map_key_make(object, 0);

        assert(object != 0);
        return index_write_put(w, w->index->garbage, &(struct index_record){ key.bytes, 4, "", 0 }, 0, err);
}

enum status index_garbage_remove(struct index_write *w, uint32_t object, struct error *err)
{
        struct map_key key = map_key_make(object, 0);
        MDB_val k = { 4, key.bytes };
        int rc = mdb_del(w->txn, w->index->garbage, &k, NULL);

        return rc == MDB_NOTFOUND ? ST_OK : index_set_error(err, w->index, rc, "cannot write the index");
}

/* Delete a map page and its block references. References of a damaged page leak. */
static enum status delete_map_page(struct index_write *w, MDB_cursor *cursor, const MDB_val *key, const MDB_val *value,
                                   struct error *err)
{
        uint32_t blocks[MAP_ENTRIES_MAX], count = 0;
        struct map_page page;
        enum status st;

        /* Copied, since a write may move the page. */
        if (map_page_open(&page, key->mv_data, key->mv_size, value->mv_data, value->mv_size, NULL) == ST_OK)
                for (; count < page.count && count < MAP_ENTRIES_MAX; count++)
                        blocks[count] = map_page_block(&page, count);
        st = index_set_error(err, w->index, mdb_cursor_del(cursor, 0), "cannot delete replaced symbols from the index");
        for (uint32_t i = 0; i < count && !st; i++)
                st = index_blocks_unref(w, blocks[i], err);
        return st;
}

/* Delete up to SLICE_PAGES map pages of an object; *done is set when none is left. */
static enum status delete_map_slice(struct index_write *w, uint32_t object, bool *done, struct error *err)
{
        struct map_key first = map_key_make(object, 0);
        MDB_cursor *cursor;
        enum status st = ST_OK;
        int rc = mdb_cursor_open(w->txn, w->index->maps, &cursor);

        if (rc)
                return index_set_error(err, w->index, rc, "cannot delete replaced symbols from the index");
        for (unsigned n = 0; rc == 0 && n < SLICE_PAGES && !st; n++) {
                MDB_val key = { sizeof first.bytes, first.bytes }, value;

                rc = mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE);
                if (rc == 0 && (key.mv_size != MAP_KEY_BYTES || map_key_object(key.mv_data) != object))
                        rc = MDB_NOTFOUND;
                if (rc == 0)
                        st = delete_map_page(w, cursor, &key, &value, err);
        }
        *done = rc == MDB_NOTFOUND;
        mdb_cursor_close(cursor);
        if (st || *done)
                return st;
        return index_set_error(err, w->index, rc, "cannot delete replaced symbols from the index");
}

/* The first object number in the garbage; 0: none. */
static int find_first_garbage(struct index_write *w, uint32_t *ret)
{
        MDB_cursor *cursor;
        MDB_val key, value;
        int rc = mdb_cursor_open(w->txn, w->index->garbage, &cursor);

        if (rc)
                return rc;
        *ret = 0;
        rc = mdb_cursor_get(cursor, &key, &value, MDB_FIRST);
        if (rc == 0 && key.mv_size == 4)
                *ret = map_key_object(key.mv_data);
        mdb_cursor_close(cursor);
        return rc == MDB_NOTFOUND ? 0 : rc;
}

enum status index_garbage_sweep(struct symbol_index *index, struct error *err)
{
        for (;;) {
                struct index_write w;
                uint32_t object = 0;
                bool done = false;
                enum status st = index_write_begin(&w, index, err);
                int rc;

                if (st)
                        return st;
                rc = find_first_garbage(&w, &object);
                st = index_set_error(err, index, rc, "cannot delete replaced symbols from the index");
                if (!st && object)
                        st = delete_map_slice(&w, object, &done, err);
                if (!st && done)
                        st = index_garbage_remove(&w, object, err);
                if (st || !object) {
                        index_write_abort(&w);
                        return st;
                }
                st = index_write_commit(&w, err);
                if (st)
                        return st;
        }
}
