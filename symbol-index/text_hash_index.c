/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-index/text_hash_index.h"

#include <assert.h>
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/hash.h"
#include "common/memory/buf.h"
#include "symbol-index/block_bits.h"
#include "symbol-index/symbol_index_internal.h"

#define CHUNK_VERSION 1
#define HEADER_BYTES 10 /* version, two widths, 0, count, first hash */
#define CHECKSUM_BYTES 8
#define HASH_MAX ((1u << TEXT_HASH_BITS) - 1)
#define FILL_BYTES 1760 /* of split chunks; leaves room for later entries */

uint32_t hash_dict_text(const char *text, uint32_t size)
{
        return (uint32_t)hash_bytes64(text, size) & HASH_MAX;
}

/* ---- a chunk as bytes */

static enum status set_chunk_error(struct error *err, uint32_t last, const char *how)
{
        return error_set(err, ST_BAD_DATA, "index chunk of text ids up to 0x%x %s; index the files again", last, how);
}

enum status text_hash_chunk_open(struct text_hash_chunk *c, uint32_t last, const void *value, size_t size,
                                 struct error *err)
{
        const uint8_t *v = value;
        unsigned hash_width, width;
        uint32_t hash;

        if (size < HEADER_BYTES + CHECKSUM_BYTES)
                return set_chunk_error(err, last, "is cut off");
        if ((load_le64(v + size - CHECKSUM_BYTES) ^ last) != hash_bytes64(v, size - CHECKSUM_BYTES))
                return set_chunk_error(err, last, "does not match its checksum");
        if (v[0] != CHUNK_VERSION)
                return set_chunk_error(err, last, "has an unknown version");
        hash_width = v[1];
        width = hash_width + v[2];
        c->count = load_le16(v + 4);
        c->first = load_le32(v + 6);
        if (hash_width > TEXT_HASH_BITS || v[2] > 32 || c->count > TEXT_CHUNK_ENTRIES || last > HASH_MAX ||
            c->first > last || size != HEADER_BYTES + bits_to_bytes((uint64_t)c->count * width) + CHECKSUM_BYTES)
                return set_chunk_error(err, last, "has impossible sizes");
        c->last = last;
        hash = c->first;
        for (uint32_t i = 0; i < c->count; i++) {
                uint64_t entry = load_bits(v + HEADER_BYTES, (uint64_t)i * width);

                hash += (uint32_t)(entry & low_mask(hash_width));
                if (hash > last)
                        return set_chunk_error(err, last, "has hashes after its end");
                c->ids[i] = (struct text_hash_entry){ hash, (uint32_t)(entry >> hash_width & low_mask(v[2])) };
        }
        return ST_OK;
}

/* Bit widths for the entries of [first, ...]. */
static void find_widths(uint32_t first, const struct text_hash_entry *ids, size_t count, unsigned *hash_ret,
                        unsigned *group_ret)
{
        uint32_t delta_max = 0, group_max = 0, before = first;

        for (size_t i = 0; i < count; i++) {
                delta_max = ids[i].hash - before > delta_max ? ids[i].hash - before : delta_max;
                group_max = ids[i].group > group_max ? ids[i].group : group_max;
                before = ids[i].hash;
        }
        *hash_ret = bit_width(delta_max);
        *group_ret = bit_width(group_max);
}

static size_t count_chunk_bytes(uint32_t first, const struct text_hash_entry *ids, size_t count)
{
        unsigned hash_width, group_width;

        find_widths(first, ids, count, &hash_width, &group_width);
        return HEADER_BYTES + bits_to_bytes((uint64_t)count * (hash_width + group_width)) + CHECKSUM_BYTES;
}

/* Sorted entries that cover the hashes [first, last]. */
struct hash_span {
        uint32_t first, last;
        const struct text_hash_entry *ids;
        size_t count;
};

static enum status put_chunk(struct index_write *w, MDB_dbi dbi, unsigned flags, const struct hash_span *span,
                             struct error *err)
{
        const struct text_hash_entry *ids = span->ids;
        size_t size = count_chunk_bytes(span->first, ids, span->count);
        _cleanup_free_ uint8_t *p = calloc(1, size);
        unsigned hash_width, group_width;
        uint32_t key = htobe32(span->last), before = span->first, first_le = htole32(span->first);
        uint16_t count_le = htole16((uint16_t)span->count);
        uint64_t sum;

        assert(span->first <= span->last && span->count <= TEXT_CHUNK_ENTRIES);
        if (!p)
                return error_no_memory(err);
        find_widths(span->first, ids, span->count, &hash_width, &group_width);
        p[0] = CHUNK_VERSION;
        p[1] = (uint8_t)hash_width;
        p[2] = (uint8_t)group_width;
        memcpy(p + 4, &count_le, sizeof count_le);
        memcpy(p + 6, &first_le, sizeof first_le);
        for (size_t i = 0; i < span->count; i++) {
                uint64_t bit = (uint64_t)i * (hash_width + group_width);
                uint64_t entry = (ids[i].hash - before) | (uint64_t)ids[i].group << hash_width;
                uint64_t word = load_le64(p + HEADER_BYTES + bit / 8) | entry << bit % 8;

                before = ids[i].hash;
                word = htole64(word);
                memcpy(p + HEADER_BYTES + bit / 8, &word, sizeof word);
        }
        sum = htole64(hash_bytes64(p, size - CHECKSUM_BYTES) ^ span->last);
        memcpy(p + size - CHECKSUM_BYTES, &sum, sizeof sum);
        return index_write_put(w, dbi, &(struct index_record){ &key, sizeof key, p, size }, flags, err);
}

/* ---- the database */

enum status text_hash_index_find_chunk(MDB_txn *txn, MDB_dbi dbi, uint32_t hash, struct text_hash_chunk *ret,
                                       struct error *err)
{
        uint32_t wanted = htobe32(hash), last;
        MDB_val key = { sizeof wanted, &wanted }, value;
        MDB_cursor *cursor;
        int rc = mdb_cursor_open(txn, dbi, &cursor);

        if (rc)
                return index_set_error(err, NULL, rc, "cannot read the index's text ids");
        rc = mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE);
        mdb_cursor_close(cursor);
        if (rc == MDB_NOTFOUND) {
                ret->first = 0;
                ret->last = HASH_MAX;
                ret->count = 0;
                return ST_OK;
        }
        if (rc)
                return index_set_error(err, NULL, rc, "cannot read the index's text ids");
        if (key.mv_size != sizeof last)
                return set_chunk_error(err, hash, "has a wrong key");
        memcpy(&last, key.mv_data, sizeof last);
        return text_hash_chunk_open(ret, be32toh(last), value.mv_data, value.mv_size, err);
}

/* Merge a chunk with the new entries in its range; returns the number of new entries. */
static size_t merge_chunk(const struct text_hash_chunk *c, const struct text_hash_entry *ids, size_t count,
                          struct text_hash_entry *merged, size_t *merged_count_ret)
{
        size_t old = 0, new = 0, n = 0, same = 0;

        while (old < c->count || (new < count &&ids[new].hash <= c->last)) {
                bool is_old = old < c->count &&
                              (new == count || ids[new].hash > c->last || c->ids[old].hash <= ids[new].hash);
                const struct text_hash_entry *id = is_old ? &c->ids[old] : &ids[new];

                old += is_old;
                new += !is_old;
                same = n && merged[n - 1].hash == id->hash ? same + 1 : 1;
                if (is_old || same <= TEXT_SAME_HASH_MAX)
                        merged[n++] = *id;
        }
        *merged_count_ret = n;
        return new;
}

/* Write entries as chunks of equal size; equal hashes stay together. */
static enum status put_chunks(struct index_write *w, MDB_dbi dbi, const struct hash_span *span, struct error *err)
{
        const struct text_hash_entry *ids = span->ids;
        size_t count = span->count, size = count_chunk_bytes(span->first, ids, count),
               parts = size > TEXT_CHUNK_BYTES ? (size + FILL_BYTES - 1) / FILL_BYTES : 1;
        uint32_t first = span->first;
        MDB_stat before;
        enum status st = index_set_error(err, w->index, mdb_stat(w->txn, dbi, &before), "cannot write the index");
        /* Appending to a tree fills its pages completely. */
        unsigned flags = st == ST_OK && before.ms_entries == 0 ? MDB_APPEND : 0;

        for (size_t part = 0, at = 0; part < parts && !st; part++) {
                size_t end = count * (part + 1) / parts;
                struct hash_span chunk;
                bool is_last;

                while (end > at && end < count && ids[end].hash == ids[end - 1].hash)
                        end++;
                if (end == at && part + 1 < parts)
                        continue;
                is_last = part + 1 == parts || end == count;
                chunk = (struct hash_span){ first, is_last ? span->last : ids[end - 1].hash, ids + at, end - at };
                st = put_chunk(w, dbi, flags, &chunk, err);
                if (is_last)
                        break;
                first = ids[end - 1].hash + 1;
                at = end;
        }
        return st;
}

enum status text_hash_index_add(struct index_write *w, MDB_dbi dbi, const struct text_hash_entry *ids, size_t count,
                                struct error *err)
{
        _cleanup_free_ struct text_hash_entry *merged = calloc(count + TEXT_CHUNK_ENTRIES, sizeof *merged);
        _cleanup_free_ struct text_hash_chunk *chunk = calloc(1, sizeof *chunk);
        enum status st = ST_OK;

        if (!merged || !chunk)
                return error_no_memory(err);
        while (count && !st) {
                size_t taken, n;

                st = text_hash_index_find_chunk(w->txn, dbi, ids[0].hash, chunk, err);
                if (st)
                        break;
                taken = merge_chunk(chunk, ids, count, merged, &n);
                st = put_chunks(w, dbi, &(struct hash_span){ chunk->first, chunk->last, merged, n }, err);
                ids += taken;
                count -= taken;
                if (!st && index_write_is_full(w))
                        st = index_write_renew(w, err);
        }
        return st;
}
