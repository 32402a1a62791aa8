/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/strings.h"

#include <assert.h>
#include <endian.h>
#include <stdio.h>
#include <string.h>

#include "common/hash.h"
#include "common/limits.h"
#include "common/reader.h"
#include "symbolizer/index_internal.h"

#define PAGE_VERSION 1
#define PAGE_HEADER_BYTES 3
#define PAGE_CHECKSUM_BYTES 8
#define PAGE_TEXTS_MAX 4096
#define ID_BYTES 8         /* big-endian hash and number */
#define ID_BYTES_FILLED 12 /* with what a B-tree's pages leave free */

static const uint8_t zero_key = 0;

int strings_open(struct strings *s, MDB_txn *txn, const char *prefix, bool create)
{
        unsigned flags = create ? MDB_CREATE : 0;
        char name[32];
        int rc;

        snprintf(name, sizeof name, "%s_ids", prefix);
        rc = mdb_dbi_open(txn, name, flags | MDB_DUPSORT | MDB_DUPFIXED, &s->ids);
        if (rc)
                return rc;
        snprintf(name, sizeof name, "%s_pages", prefix);
        return mdb_dbi_open(txn, name, flags, &s->pages);
}

static void put_be32(uint8_t *p, uint32_t v)
{
        v = htobe32(v);
        memcpy(p, &v, sizeof v);
}

static uint32_t get_be32(const void *p)
{
        uint32_t v;

        memcpy(&v, p, sizeof v);
        return be32toh(v);
}

static void make_id(uint8_t id[static ID_BYTES], uint32_t hash, uint32_t number)
{
        put_be32(id, hash);
        put_be32(id + 4, number);
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

size_t strings_bytes(const struct strings *s, MDB_txn *txn)
{
        MDB_stat ids, pages;

        if (mdb_stat(txn, s->ids, &ids) || mdb_stat(txn, s->pages, &pages))
                return 0;
        return (pages.ms_branch_pages + pages.ms_leaf_pages + pages.ms_overflow_pages) * pages.ms_psize +
               ids.ms_entries * ID_BYTES_FILLED;
}

/* ---- pages */

static enum status page_broken(struct error *err, uint32_t number)
{
        return error_set(err, ST_BAD_DATA, "index page of string %u is damaged; index the files again", number);
}

/* Text `index` of a page into out. */
static enum status page_text(const MDB_val *page, uint32_t number, uint32_t index, struct buf *out, struct error *err)
{
        struct reader r;

        reader_init(&r, page->mv_data, page->mv_size - PAGE_CHECKSUM_BYTES);
        if (!reader_skip(&r, PAGE_HEADER_BYTES))
                return page_broken(err, number);
        buf_clear(out);
        for (;; index--) {
                uint64_t shared, size;
                const uint8_t *text;

                if (!reader_uleb128(&r, &shared) || !reader_uleb128(&r, &size) || !reader_bytes(&r, size, &text) ||
                    shared > out->size)
                        return page_broken(err, number);
                out->size = shared;
                buf_append(out, text, size);
                if (index == 0)
                        return buf_status(out, err, "a string of the index");
        }
}

enum status strings_get(const struct strings *s, MDB_txn *txn, uint32_t number, struct buf *out, struct error *err)
{
        MDB_cursor *cursor;
        MDB_val key, page;
        uint8_t wanted[4];
        uint32_t last, count;
        uint64_t checksum;
        int rc = mdb_cursor_open(txn, s->pages, &cursor);

        if (rc)
                return index_error(err, NULL, rc, "cannot read the index's strings");
        put_be32(wanted, number);
        key = (MDB_val){ sizeof wanted, wanted };
        rc = mdb_cursor_get(cursor, &key, &page, MDB_SET_RANGE);
        mdb_cursor_close(cursor);
        if (rc == MDB_NOTFOUND || (rc == 0 && number == 0))
                return page_broken(err, number);
        if (rc)
                return index_error(err, NULL, rc, "cannot read the index's strings");
        if (key.mv_size != 4 || page.mv_size < PAGE_HEADER_BYTES + PAGE_CHECKSUM_BYTES)
                return page_broken(err, number);
        memcpy(&checksum, (const uint8_t *)page.mv_data + page.mv_size - PAGE_CHECKSUM_BYTES, sizeof checksum);
        if (le64toh(checksum) != hash64(page.mv_data, page.mv_size - PAGE_CHECKSUM_BYTES) ||
            *(const uint8_t *)page.mv_data != PAGE_VERSION)
                return page_broken(err, number);
        last = get_be32(key.mv_data);
        count = (uint32_t)((const uint8_t *)page.mv_data)[1] | (uint32_t)((const uint8_t *)page.mv_data)[2] << 8;
        if (count == 0 || last - number >= count)
                return page_broken(err, number);
        return page_text(&page, number, count - 1 - (last - number), out, err);
}

/* ---- interning */

struct page_writer {
        struct buf page;
        const struct strings_item *previous;
        uint32_t count, last;     /* last: number of the newest text, in this page or an earlier one */
        uint8_t (*ids)[ID_BYTES]; /* of new texts, put in order when their transaction ends */
        size_t id_count;
};

static int compare_ids(const void *a, const void *b)
{
        return memcmp(a, b, ID_BYTES);
}

/* In order, since a tree that is filled from one end has full pages, and others are touched once. */
static enum status ids_flush(const struct strings *s, struct index_write *w, struct page_writer *p, struct error *err)
{
        MDB_stat before;
        enum status st = index_error(err, w->index, mdb_stat(w->txn, s->ids, &before), "cannot write the index");
        unsigned flags = st == ST_OK && before.ms_entries == 0 ? MDB_APPENDDUP : 0;

        qsort(p->ids, p->id_count, ID_BYTES, compare_ids);
        for (size_t i = 0; i < p->id_count && !st; i++)
                st = index_write_put(w, s->ids, &zero_key, sizeof zero_key, p->ids[i], ID_BYTES, flags, err);
        p->id_count = 0;
        return st;
}

static enum status page_flush(const struct strings *s, struct index_write *w, struct page_writer *p, struct error *err)
{
        uint8_t key[4];
        enum status st;

        if (p->count == 0)
                return ST_OK;
        st = buf_status(&p->page, err, "a page of strings");
        if (st)
                return st;
        p->page.data[1] = (uint8_t)p->count;
        p->page.data[2] = (uint8_t)(p->count >> 8);
        buf_append_u64(&p->page, hash64(p->page.data, p->page.size));
        st = buf_status(&p->page, err, "a page of strings");
        if (st)
                return st;
        put_be32(key, p->last);
        p->count = 0;
        p->previous = NULL;
        st = index_write_put(w, s->pages, key, sizeof key, p->page.data, p->page.size, MDB_APPEND, err);
        buf_clear(&p->page);
        return st;
}

/* Bytes that a text shares with the one before it in the page. */
static uint32_t shared_prefix(const struct page_writer *p, const struct strings_item *item)
{
        uint32_t shared = 0;

        if (p->count == 0)
                return 0;
        while (shared < item->size && shared < p->previous->size && item->text[shared] == p->previous->text[shared])
                shared++;
        return shared;
}

static bool page_has_room(const struct page_writer *p, const struct strings_item *item)
{
        const size_t lengths = 6; /* two LEB128 of numbers up to LIMIT_NAME_BYTES */

        return p->count == 0 || (p->count < PAGE_TEXTS_MAX &&
                                 p->page.size + lengths + item->size - shared_prefix(p, item) +
                                                 PAGE_CHECKSUM_BYTES <= STRINGS_PAGE_BYTES);
}

static void page_add(struct page_writer *p, const struct strings_item *item)
{
        uint32_t shared = shared_prefix(p, item);

        if (p->count == 0) {
                buf_append_u8(&p->page, PAGE_VERSION);
                buf_append_u16(&p->page, 0);
        }
        buf_append_uleb128(&p->page, shared);
        buf_append_uleb128(&p->page, item->size - shared);
        buf_append(&p->page, item->text + shared, item->size - shared);
        p->previous = item;
        p->count++;
        p->last++;
}

/* Number of a text among those with its hash, 0 when it is new; at most flushed are in pages. */
static enum status find(const struct strings *s, MDB_txn *txn, const struct strings_item *item, uint32_t hash,
                        uint32_t flushed, struct buf *scratch, uint32_t *ret, struct error *err)
{
        MDB_val key = { sizeof zero_key, (void *)&zero_key }, value;
        uint8_t id[ID_BYTES];
        MDB_cursor *cursor;
        enum status st = ST_OK;
        int rc = mdb_cursor_open(txn, s->ids, &cursor);

        if (rc)
                return index_error(err, NULL, rc, "cannot read the index's strings");
        make_id(id, hash, 0);
        value = (MDB_val){ sizeof id, id };
        *ret = 0;
        rc = mdb_cursor_get(cursor, &key, &value, MDB_GET_BOTH_RANGE);
        while (rc == 0 && value.mv_size == ID_BYTES && memcmp(value.mv_data, id, 4) == 0) {
                uint32_t number = get_be32((const uint8_t *)value.mv_data + 4);

                if (number <= flushed) {
                        st = strings_get(s, txn, number, scratch, err);
                        if (st)
                                break;
                        if (scratch->size == item->size && memcmp(scratch->data, item->text, item->size) == 0) {
                                *ret = number;
                                break;
                        }
                }
                rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT_DUP);
        }
        mdb_cursor_close(cursor);
        if (st)
                return st;
        return rc == MDB_NOTFOUND ? ST_OK : index_error(err, NULL, rc, "cannot read the index's strings");
}

static int compare_items(const void *a, const void *b)
{
        const struct strings_item *x = *(const struct strings_item *const *)a;
        const struct strings_item *y = *(const struct strings_item *const *)b;
        int c = memcmp(x->text, y->text, x->size < y->size ? x->size : y->size);

        return c ? c : (x->size > y->size) - (x->size < y->size);
}

/* Number one text that differs from all before it. */
static enum status intern_one(const struct strings *s, struct index_write *w, struct page_writer *p,
                              struct strings_item *item, struct buf *scratch, struct error *err)
{
        uint32_t hash = (uint32_t)hash64(item->text, item->size);
        enum status st;

        assert(item->size <= LIMIT_NAME_BYTES);
        st = find(s, w->txn, item, hash, p->last - p->count, scratch, &item->number, err);
        if (st || item->number)
                return st;
        if (p->last == UINT32_MAX)
                return error_set(err, ST_TOO_BIG, "the index has no number left for another string");
        if (!page_has_room(p, item)) {
                st = page_flush(s, w, p, err);
                if (st)
                        return st;
                if (index_write_full(w)) {
                        st = ids_flush(s, w, p, err);
                        if (!st)
                                st = index_write_renew(w, err);
                        if (st)
                                return st;
                }
        }
        page_add(p, item);
        item->number = p->last;
        make_id(p->ids[p->id_count++], hash, item->number);
        return ST_OK;
}

enum status strings_intern(const struct strings *s, struct index_write *w, struct strings_item *items, size_t count,
                           struct error *err)
{
        _cleanup_free_ struct strings_item **order = calloc(count + 1, sizeof *order);
        _cleanup_buf_ struct buf scratch = { 0 };
        struct page_writer p = { 0 };
        enum status st;

        p.ids = calloc(count + 1, sizeof *p.ids);
        if (!order || !p.ids) {
                free(p.ids);
                return error_no_memory(err);
        }
        buf_init(&scratch, LIMIT_NAME_BYTES);
        buf_init(&p.page, LIMIT_NAME_BYTES + STRINGS_PAGE_BYTES);
        for (size_t i = 0; i < count; i++)
                order[i] = &items[i];
        qsort(order, count, sizeof *order, compare_items);
        st = strings_last(s, w->txn, &p.last, err);
        for (size_t i = 0; i < count && !st; i++) {
                if (order[i]->size == 0)
                        order[i]->number = 0;
                else if (i > 0 && compare_items(&order[i - 1], &order[i]) == 0)
                        order[i]->number = order[i - 1]->number;
                else
                        st = intern_one(s, w, &p, order[i], &scratch, err);
        }
        if (!st)
                st = page_flush(s, w, &p, err);
        if (!st)
                st = ids_flush(s, w, &p, err);
        buf_deinit(&p.page);
        free(p.ids);
        return st;
}
