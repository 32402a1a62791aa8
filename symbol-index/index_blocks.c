/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-index/index_blocks.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "symbol-index/block_bits.h"

#define ID_BYTES 8         /* big-endian anchor and number */
#define ID_BYTES_FILLED 12 /* including free space in the B-tree's pages */
#define CANDIDATES_MAX 16  /* blocks compared per range */
#define FILTER_BITS_LEAST (1u << 16)
#define FILTER_BITS_MOST (1u << 30)

/* Bloom filter with one hash function: most anchors of a new table need no database lookup. */
struct anchor_filter {
        uint64_t *words;
        uint32_t mask;
        uint64_t count; /* number of anchors; rebuilt at one per 8 bits */
};

static const uint8_t zero_key = 0;

void anchor_filter_destroy(struct anchor_filter *f)
{
        if (f)
                free(f->words);
        free(f);
}

static void anchor_filter_add(struct anchor_filter *f, uint32_t anchor)
{
        f->words[(anchor & f->mask) / 64] |= (uint64_t)1 << (anchor & 63);
        f->count++;
}

static void encode_block_id(uint8_t id[static ID_BYTES], uint32_t anchor, uint32_t number)
{
        anchor = htobe32(anchor);
        number = htobe32(number);
        memcpy(id, &anchor, 4);
        memcpy(id + 4, &number, 4);
}

static uint32_t decode_id_half(const void *id, size_t at)
{
        uint32_t v;

        memcpy(&v, (const uint8_t *)id + at, sizeof v);
        return be32toh(v);
}

static int anchor_filter_fill(struct index_write *w, struct anchor_filter *f)
{
        MDB_cursor *cursor;
        MDB_val key, value;
        int rc = mdb_cursor_open(w->txn, w->index->block_ids, &cursor);

        if (rc)
                return rc;
        for (rc = mdb_cursor_get(cursor, &key, &value, MDB_FIRST); rc == 0;
             rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT))
                if (value.mv_size == ID_BYTES)
                        anchor_filter_add(f, decode_id_half(value.mv_data, 0));
        mdb_cursor_close(cursor);
        return rc == MDB_NOTFOUND ? 0 : rc;
}

/* A filter with all anchors of the database. */
static enum status get_anchor_filter(struct index_write *w, struct anchor_filter **ret, struct error *err)
{
        struct anchor_filter *f = w->index->anchors;
        uint64_t bits = FILTER_BITS_LEAST;
        MDB_stat s;
        int rc;

        if (f && (f->count < f->mask / 8 || f->mask == FILTER_BITS_MOST - 1)) {
                *ret = f;
                return ST_OK;
        }
        anchor_filter_destroy(f);
        w->index->anchors = NULL;
        rc = mdb_stat(w->txn, w->index->block_ids, &s);
        if (rc)
                return index_set_error(err, w->index, rc, "cannot read the index's blocks");
        while (bits < FILTER_BITS_MOST && bits < 32 * (uint64_t)s.ms_entries)
                bits *= 2;
        f = calloc(1, sizeof *f);
        if (f)
                f->words = calloc(bits / 64, sizeof *f->words);
        if (!f || !f->words) {
                anchor_filter_destroy(f);
                return error_no_memory(err);
        }
        f->mask = (uint32_t)bits - 1;
        rc = anchor_filter_fill(w, f);
        if (rc) {
                anchor_filter_destroy(f);
                return index_set_error(err, w->index, rc, "cannot read the index's blocks");
        }
        *ret = w->index->anchors = f;
        return ST_OK;
}

enum status index_blocks_next_number(struct index_write *w, uint32_t *ret, struct error *err)
{
        MDB_cursor *cursor;
        MDB_val key, value;
        int rc = mdb_cursor_open(w->txn, w->index->blocks, &cursor);
        uint32_t last = 0;

        if (rc)
                return index_set_error(err, w->index, rc, "cannot read the index's blocks");
        rc = mdb_cursor_get(cursor, &key, &value, MDB_LAST);
        if (rc == 0)
                last = key.mv_size == 4 ? decode_id_half(key.mv_data, 0) : UINT32_MAX;
        mdb_cursor_close(cursor);
        if (rc && rc != MDB_NOTFOUND)
                return index_set_error(err, w->index, rc, "cannot read the index's blocks");
        if (last == UINT32_MAX)
                return error_set(err, ST_TOO_BIG, "index '%s' has no block number left", w->index->dir);
        *ret = last + 1;
        return ST_OK;
}

enum status index_blocks_put(struct index_write *w, uint32_t number, uint32_t anchor, const struct buf *block,
                             struct error *err)
{
        struct anchor_filter *filter;
        uint8_t id[ID_BYTES];
        enum status st = get_anchor_filter(w, &filter, err);

        assert(number != 0 && block->size > 0);
        if (st)
                return st;
        encode_block_id(id, anchor, number);
        st = index_write_put(w, w->index->blocks, &(struct index_record){ id + 4, 4, block->data, block->size },
                             MDB_APPEND, err);
        if (!st)
                st = index_write_put(w, w->index->block_ids,
                                     &(struct index_record){ &zero_key, sizeof zero_key, id, ID_BYTES }, 0, err);
        if (!st)
                anchor_filter_add(filter, anchor);
        return st;
}

/* Stored reference count: number of users minus one. */
static int read_extra_users(struct index_write *w, const uint8_t number[static 4], uint32_t *ret)
{
        MDB_val key = { 4, (void *)number }, value;
        int rc = mdb_get(w->txn, w->index->block_users, &key, &value);

        *ret = rc == 0 && value.mv_size == 4 ? load_le32(value.mv_data) : 0;
        return rc == MDB_NOTFOUND ? 0 : rc;
}

static enum status write_extra_users(struct index_write *w, const uint8_t number[static 4], uint32_t users,
                                     struct error *err)
{
        users = htole32(users);
        return index_write_put(w, w->index->block_users, &(struct index_record){ number, 4, &users, sizeof users }, 0,
                               err);
}

enum status index_blocks_ref(struct index_write *w, uint32_t number, struct error *err)
{
        uint8_t id[ID_BYTES];
        uint32_t users;
        int rc;

        encode_block_id(id, 0, number);
        rc = read_extra_users(w, id + 4, &users);
        if (rc)
                return index_set_error(err, w->index, rc, "cannot read the index's blocks");
        if (users == UINT32_MAX)
                return error_set(err, ST_TOO_BIG, "block %u of index '%s' has too many users", number, w->index->dir);
        return write_extra_users(w, id + 4, users + 1, err);
}

static int delete_block(struct index_write *w, uint32_t number)
{
        uint8_t id[ID_BYTES];
        MDB_val key = { 4, id + 4 }, value, zero = { sizeof zero_key, (void *)&zero_key };
        struct block block;
        int rc;

        encode_block_id(id, 0, number);
        rc = mdb_get(w->txn, w->index->blocks, &key, &value);
        if (rc)
                return rc == MDB_NOTFOUND ? 0 : rc;
        if (block_open(&block, number, value.mv_data, value.mv_size, NULL) == ST_OK) {
                MDB_val entry = { ID_BYTES, id };

                encode_block_id(id, block.anchor, number);
                rc = mdb_del(w->txn, w->index->block_ids, &zero, &entry);
                if (rc && rc != MDB_NOTFOUND)
                        return rc;
        }
        return mdb_del(w->txn, w->index->blocks, &key, NULL);
}

enum status index_blocks_unref(struct index_write *w, uint32_t number, struct error *err)
{
        uint8_t id[ID_BYTES];
        MDB_val key = { 4, id + 4 };
        uint32_t users;
        int rc;

        encode_block_id(id, 0, number);
        rc = read_extra_users(w, id + 4, &users);
        if (!rc && users > 1)
                return write_extra_users(w, id + 4, users - 1, err);
        if (!rc && users == 1)
                rc = mdb_del(w->txn, w->index->block_users, &key, NULL);
        else if (!rc)
                rc = delete_block(w, number);
        return index_set_error(err, w->index, rc, "cannot delete replaced symbols from the index");
}

enum status index_blocks_find(struct index_write *w, uint32_t anchor,
                              bool (*matches)(void *arg, const struct block *block), void *arg, uint32_t *number_ret,
                              struct error *err)
{
        MDB_val key = { sizeof zero_key, (void *)&zero_key }, entry;
        struct anchor_filter *filter = NULL;
        uint8_t id[ID_BYTES];
        MDB_cursor *cursor;
        enum status st = get_anchor_filter(w, &filter, err);
        int rc;

        if (st)
                return st;
        assert(filter);
        *number_ret = 0;
        if (!(filter->words[(anchor & filter->mask) / 64] >> (anchor & 63) & 1))
                return ST_OK;
        rc = mdb_cursor_open(w->txn, w->index->block_ids, &cursor);
        if (rc)
                return index_set_error(err, w->index, rc, "cannot read the index's blocks");
        encode_block_id(id, anchor, 0);
        entry = (MDB_val){ ID_BYTES, id };
        rc = mdb_cursor_get(cursor, &key, &entry, MDB_GET_BOTH_RANGE);
        for (unsigned n = 0;
             rc == 0 && n < CANDIDATES_MAX && entry.mv_size == ID_BYTES && decode_id_half(entry.mv_data, 0) == anchor;
             n++) {
                uint32_t number = decode_id_half(entry.mv_data, 4);
                MDB_val block_key = { 4, (uint8_t *)entry.mv_data + 4 }, value;
                struct block block;

                rc = mdb_get(w->txn, w->index->blocks, &block_key, &value);
                if (rc == 0 && block_open(&block, number, value.mv_data, value.mv_size, NULL) == ST_OK &&
                    matches(arg, &block)) {
                        *number_ret = number;
                        break;
                }
                if (rc == 0 || rc == MDB_NOTFOUND)
                        rc = mdb_cursor_get(cursor, &key, &entry, MDB_NEXT_DUP);
        }
        mdb_cursor_close(cursor);
        return rc == MDB_NOTFOUND ? ST_OK : index_set_error(err, w->index, rc, "cannot read the index's blocks");
}

static uint64_t sum_page_bytes(const MDB_stat *s)
{
        return (uint64_t)(s->ms_branch_pages + s->ms_leaf_pages + s->ms_overflow_pages) * s->ms_psize;
}

uint64_t index_blocks_count_bytes(struct symbol_index *index, MDB_txn *txn)
{
        MDB_stat blocks, maps, users, ids;

        if (mdb_stat(txn, index->blocks, &blocks) || mdb_stat(txn, index->maps, &maps) ||
            mdb_stat(txn, index->block_users, &users) || mdb_stat(txn, index->block_ids, &ids))
                return 0;
        return sum_page_bytes(&blocks) + sum_page_bytes(&maps) + sum_page_bytes(&users) +
               ids.ms_entries * ID_BYTES_FILLED;
}
