/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/strings.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "symbolizer/index_internal.h"
#include "symbolizer/strings_internal.h"
#include "symbolizer/text_page_cache.h"

int strings_open(struct strings *s, MDB_txn *txn, bool create)
{
        unsigned flags = create ? MDB_CREATE : 0;
        int rc = mdb_dbi_open(txn, "text_ids", flags, &s->ids);

        return rc ? rc : mdb_dbi_open(txn, "text_pages", flags, &s->pages);
}

static uint32_t get_be32(const void *p)
{
        uint32_t v;

        memcpy(&v, p, sizeof v);
        return be32toh(v);
}

enum status strings_last(const struct strings *s, MDB_txn *txn, uint32_t *ret, struct error *err)
{
        MDB_cursor *cursor;
        MDB_val key, value;
        int rc = mdb_cursor_open(txn, s->pages, &cursor);

        if (rc)
                return index_error(err, NULL, rc, "cannot read the index's strings");
        rc = mdb_cursor_get(cursor, &key, &value, MDB_LAST);
        if (rc == 0)
                *ret = key.mv_size == 4 ? get_be32(key.mv_data) : 0;
        else if (rc == MDB_NOTFOUND)
                *ret = 0;
        mdb_cursor_close(cursor);
        return rc == MDB_NOTFOUND ? ST_OK : index_error(err, NULL, rc, "cannot read the index's strings");
}

static size_t pages_bytes(MDB_txn *txn, MDB_dbi dbi)
{
        MDB_stat stat;

        if (mdb_stat(txn, dbi, &stat))
                return 0;
        return (stat.ms_branch_pages + stat.ms_leaf_pages + stat.ms_overflow_pages) * stat.ms_psize;
}

size_t strings_bytes(const struct strings *s, MDB_txn *txn)
{
        return pages_bytes(txn, s->ids) + pages_bytes(txn, s->pages);
}

enum status strings_page_of(const struct strings *s, MDB_txn *txn, uint32_t number, uint32_t *last_ret,
                            MDB_val *value_ret, struct error *err)
{
        uint32_t wanted = htobe32(number);
        MDB_val key = { sizeof wanted, &wanted };
        MDB_cursor *cursor;
        int rc = mdb_cursor_open(txn, s->pages, &cursor);

        if (rc)
                return index_error(err, NULL, rc, "cannot read the index's strings");
        rc = mdb_cursor_get(cursor, &key, value_ret, MDB_SET_RANGE);
        if (rc == 0 && key.mv_size == sizeof wanted)
                *last_ret = get_be32(key.mv_data);
        mdb_cursor_close(cursor);
        if (rc == MDB_NOTFOUND || (rc == 0 && (number == 0 || key.mv_size != sizeof wanted)))
                return error_set(err, ST_BAD_DATA, "the index has no string %u; index the files again", number);
        return index_error(err, NULL, rc, "cannot read the index's strings");
}

enum status strings_get(const struct strings *s, MDB_txn *txn, struct text_unpacker *unpacker, uint32_t number,
                        struct buf *out, struct error *err)
{
        struct text_page *page;
        enum status st;
        const char *text;
        uint32_t last, size;
        MDB_val value;

        st = strings_page_of(s, txn, number, &last, &value, err);
        if (st || text_page_cache_get(s->cache, last, number, out))
                return st;
        st = text_page_unpack(unpacker, last, value.mv_data, value.mv_size, &page, err);
        if (st)
                return st;
        if (last - number >= page->count) {
                free(page);
                return error_set(err, ST_BAD_DATA, "the index has no string %u; index the files again", number);
        }
        text = text_page_get(page, page->count - 1 - (last - number), &size);
        buf_clear(out);
        buf_append(out, text, size);
        text_page_cache_put(s->cache, page);
        return buf_status(out, err, "a string of the index");
}

enum status strings_verify_page(const struct strings *s, MDB_txn *txn, struct text_unpacker *unpacker, const MDB_val *key,
                                const MDB_val *value, struct error *err)
{
        uint32_t last = key->mv_size == 4 ? get_be32(key->mv_data) : 0;
        _cleanup_free_ struct text_chunk *chunk = malloc(sizeof *chunk);
        _cleanup_free_ struct text_page *page = NULL;
        enum status st = text_page_unpack(unpacker, last, value->mv_data, value->mv_size, &page, err);

        if (!chunk)
                return error_no_memory(err);
        for (uint32_t i = 0; !st && i < page->count; i++) {
                uint32_t size, number = last - (page->count - 1 - i), hash, same = 0;
                const char *text = text_page_get(page, i, &size);
                bool found = false;

                hash = text_hash(text, size);
                st = text_ids_chunk(txn, s->ids, hash, chunk, err);
                for (uint32_t k = 0; !st && k < chunk->count; k++) {
                        same += chunk->ids[k].hash == hash;
                        found |= chunk->ids[k].hash == hash && chunk->ids[k].group == number >> TEXT_GROUP_BITS;
                }
                if (!st && !found && same < TEXT_SAME_HASH_MAX)
                        st = error_set(err, ST_BAD_DATA, "string %u of the index cannot be found by its text", number);
        }
        return st;
}
