/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two databases: `pages` maps the last number of a page to its texts, `ids` is the hash index from texts to groups of
 * numbers. Reading a number is one search in `pages` for the first key at or above it, and an unpacked page, from the
 * cache if possible.
 *
 * Interning is a batch of steps on sorted arrays: distinct texts by hash, lookup of each in `ids` and then in the
 * pages of its group, numbers for the new ones in the order of the texts, pages for these, ids for these. Pages are
 * written before ids, so that no id refers to a text that was not written; an interrupted load may leave texts that
 * have none.
 *
 * Order: reading, verification, interning (lookup, then the steps).
 */
#include "symbol-index/string_dict.h"

#include <assert.h>
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/limits.h"
#include "common/search.h"
#include "symbol-index/symbol_index_internal.h"
#include "symbol-index/text_hash_index.h"
#include "symbol-index/text_page.h"

int string_dict_open(struct string_dict *s, MDB_txn *txn, bool create)
{
        unsigned flags = create ? MDB_CREATE : 0;
        int rc = mdb_dbi_open(txn, "text_ids", flags, &s->ids);

        return rc ? rc : mdb_dbi_open(txn, "text_pages", flags, &s->pages);
}

enum status string_dict_last_number(const struct string_dict *s, MDB_txn *txn, uint32_t *ret, struct error *err)
{
        MDB_cursor *cursor;
        MDB_val key, value;
        int rc = mdb_cursor_open(txn, s->pages, &cursor);

        if (rc)
                return index_set_error(err, NULL, rc, "cannot read the index's strings");
        rc = mdb_cursor_get(cursor, &key, &value, MDB_LAST);
        if (rc == 0)
                *ret = key.mv_size == 4 ? load_be32(key.mv_data) : 0;
        else if (rc == MDB_NOTFOUND)
                *ret = 0;
        mdb_cursor_close(cursor);
        return rc == MDB_NOTFOUND ? ST_OK : index_set_error(err, NULL, rc, "cannot read the index's strings");
}

static size_t count_database_bytes(MDB_txn *txn, MDB_dbi dbi)
{
        MDB_stat stat;

        if (mdb_stat(txn, dbi, &stat))
                return 0;
        return (stat.ms_branch_pages + stat.ms_leaf_pages + stat.ms_overflow_pages) * stat.ms_psize;
}

size_t string_dict_count_bytes(const struct string_dict *s, MDB_txn *txn)
{
        return count_database_bytes(txn, s->ids) + count_database_bytes(txn, s->pages);
}

/* The page that contains a number, and the last number in it. ST_BAD_DATA if there is none. */
static enum status find_dict_page(const struct string_dict *s, MDB_txn *txn, uint32_t number, uint32_t *last_ret,
                                  MDB_val *value_ret, struct error *err)
{
        uint32_t wanted = htobe32(number);
        MDB_val key = { sizeof wanted, &wanted };
        MDB_cursor *cursor;
        int rc = mdb_cursor_open(txn, s->pages, &cursor);

        if (rc)
                return index_set_error(err, NULL, rc, "cannot read the index's strings");
        rc = mdb_cursor_get(cursor, &key, value_ret, MDB_SET_RANGE);
        if (rc == 0 && key.mv_size == sizeof wanted)
                *last_ret = load_be32(key.mv_data);
        mdb_cursor_close(cursor);
        if (rc == MDB_NOTFOUND || (rc == 0 && (number == 0 || key.mv_size != sizeof wanted)))
                return error_set(err, ST_BAD_DATA, "the index has no string %u; index the files again", number);
        return index_set_error(err, NULL, rc, "cannot read the index's strings");
}

/* Decompress the page found for a number. */
static enum status unpack_dict_page(struct text_unpacker *unpacker, uint32_t number, uint32_t last,
                                    const MDB_val *value, struct text_page **ret, struct error *err)
{
        struct text_page *page;
        enum status st = text_page_unpack(unpacker, last, value->mv_data, value->mv_size, &page, err);

        if (st)
                return st;
        if (last - number >= page->count) {
                free(page);
                return error_set(err, ST_BAD_DATA, "the index has no string %u; index the files again", number);
        }
        *ret = page;
        return ST_OK;
}

enum status string_dict_get_page(const struct string_dict *s, MDB_txn *txn, struct text_unpacker *unpacker,
                                 uint32_t number, struct text_page **ret, struct error *err)
{
        uint32_t last = 0;
        MDB_val value = { 0 };
        enum status st = find_dict_page(s, txn, number, &last, &value, err);

        return st ? st : unpack_dict_page(unpacker, number, last, &value, ret, err);
}

enum status string_dict_get(const struct string_dict *s, MDB_txn *txn, struct text_unpacker *unpacker, uint32_t number,
                            struct buf *out, struct error *err)
{
        struct text_page *page;
        enum status st;
        const char *text;
        uint32_t last = 0, size;
        MDB_val value = { 0 };

        st = find_dict_page(s, txn, number, &last, &value, err);
        if (st || text_page_cache_get(s->cache, last, number, out))
                return st;
        st = unpack_dict_page(unpacker, number, last, &value, &page, err);
        if (st)
                return st;
        text = text_page_get(page, page->count - 1 - (last - number), &size);
        buf_clear(out);
        buf_append(out, text, size);
        text_page_cache_put(s->cache, page);
        return buf_status(out, err, "a string of the index");
}

static bool is_used_text(const struct string_dict_check *c, uint32_t number)
{
        return number <= c->last_used && c->uses[number / 8] >> number % 8 & 1;
}

/* Ids are written before the blocks that use their texts, so that a used text has one. */
static enum status verify_text_id(const struct string_dict_check *c, struct text_hash_chunk *chunk, uint32_t number,
                                  const char *text, uint32_t size, struct error *err)
{
        uint32_t hash = hash_dict_text(text, size), same = 0;
        enum status st = text_hash_index_find_chunk(c->txn, c->strings->ids, hash, chunk, err);
        bool found = false;

        for (uint32_t k = 0; !st && k < chunk->count; k++) {
                same += chunk->ids[k].hash == hash;
                found |= chunk->ids[k].hash == hash && chunk->ids[k].group == number >> TEXT_GROUP_BITS;
        }
        if (!st && !found && same < TEXT_SAME_HASH_MAX)
                st = error_set(err, ST_BAD_DATA, "string %u of the index cannot be found by its text", number);
        return st;
}

enum status string_dict_verify_page(const struct string_dict_check *c, const MDB_val *key, const MDB_val *value,
                                    struct error *err)
{
        uint32_t last = key->mv_size == 4 ? load_be32(key->mv_data) : 0;
        _cleanup_free_ struct text_hash_chunk *chunk = malloc(sizeof *chunk);
        _cleanup_free_ struct text_page *page = NULL;
        enum status st = text_page_unpack(c->unpacker, last, value->mv_data, value->mv_size, &page, err);

        if (!chunk)
                return error_no_memory(err);
        for (uint32_t i = 0; !st && i < page->count; i++) {
                uint32_t size, number = last - (page->count - 1 - i);
                const char *text = text_page_get(page, i, &size);

                if (is_used_text(c, number))
                        st = verify_text_id(c, chunk, number, text, size, err);
        }
        return st;
}

/* ---- interning ---- */

/*
 * Interning: texts are looked up in the order of their hashes, so that each chunk of ids is read once; new texts are
 * sorted, numbered and written to pages; then their ids are merged into the chunks. Since uncommitted pages may be
 * read, unpacked pages are not added to the cache of the views.
 */

#define PAGES_KEPT 1024

struct text {
        struct string_dict_item *item; /* the first item with this text */
        uint32_t hash;
};

struct interner {
        const struct string_dict *strings;
        struct index_write *w;
        struct string_dict_item **order; /* items sorted by text */
        struct text *texts;              /* distinct texts, sorted by hash */
        struct text_hash_entry *ids;     /* of new texts */
        struct text_item *fresh;         /* new texts, sorted by text */
        size_t count, text_count, fresh_count;
        uint32_t last; /* number of a text */
        struct text_hash_chunk *chunk;
        bool have_chunk;
        struct text_page **pages; /* indexed by a part of their last numbers */
        struct text_packer *packer;
        struct text_unpacker *unpacker;
        struct buf page;
};

static int compare_items(const void *a, const void *b)
{
        const struct string_dict_item *x = *(const struct string_dict_item *const *)a;
        const struct string_dict_item *y = *(const struct string_dict_item *const *)b;

        return text_compare(x->text, x->size, y->text, y->size);
}

static int compare_texts(const void *a, const void *b)
{
        const struct text *x = a, *y = b;

        return (x->hash > y->hash) - (x->hash < y->hash);
}

static int compare_ids(const void *a, const void *b)
{
        const struct text_hash_entry *x = a, *y = b;

        return (x->hash > y->hash) - (x->hash < y->hash);
}

/* -- lookup -- */

static enum status get_unpacked_page(struct interner *n, uint32_t number, const struct text_page **ret,
                                     struct error *err)
{
        struct text_page **slot, *page;
        uint32_t last;
        MDB_val value;
        enum status st = find_dict_page(n->strings, n->w->txn, number, &last, &value, err);

        if (st)
                return st;
        slot = &n->pages[(last * 2654435761u >> 16) % PAGES_KEPT];
        if (!*slot || (*slot)->last != last) {
                st = text_page_unpack(n->unpacker, last, value.mv_data, value.mv_size, &page, err);
                if (st)
                        return st;
                free(*slot);
                *slot = page;
        }
        *ret = *slot;
        return ST_OK;
}

/* Search a text in the pages of a group of numbers. */
static enum status search_text_group(struct interner *n, uint32_t group, struct string_dict_item *item,
                                     struct error *err)
{
        uint64_t number = (uint64_t)group << TEXT_GROUP_BITS, end = number + (1u << TEXT_GROUP_BITS);
        enum status st = ST_OK;

        number += number == 0;
        while (!st && number < end && number <= n->last) {
                const struct text_page *page;
                uint32_t index;

                st = get_unpacked_page(n, (uint32_t)number, &page, err);
                if (st)
                        break;
                index = text_page_find(page, item->text, item->size);
                if (index != UINT32_MAX) {
                        item->number = page->last - (page->count - 1 - index);
                        break;
                }
                number = (uint64_t)page->last + 1;
        }
        return st;
}

static enum status find_text(struct interner *n, const struct text *t, struct error *err)
{
        enum status st = ST_OK;
        size_t at = 0;

        if (!n->have_chunk || t->hash > n->chunk->last) {
                st = text_hash_index_find_chunk(n->w->txn, n->strings->ids, t->hash, n->chunk, err);
                n->have_chunk = true;
        }
        if (!st)
                at = find_lower_bound(i, 0, n->chunk->count, n->chunk->ids[i].hash < t->hash);
        for (; !st && at < n->chunk->count && n->chunk->ids[at].hash == t->hash && !t->item->number; at++)
                st = search_text_group(n, n->chunk->ids[at].group, t->item, err);
        return st;
}

/* -- steps -- */

/* Collect the distinct texts, sorted by hash. */
static void collect_distinct_texts(struct interner *n, struct string_dict_item *items)
{
        for (size_t i = 0; i < n->count; i++) {
                n->order[i] = &items[i];
                items[i].number = 0;
        }
        qsort(n->order, n->count, sizeof *n->order, compare_items);
        for (size_t i = 0; i < n->count; i++) {
                struct string_dict_item *item = n->order[i];

                assert(item->size <= LIMIT_NAME_BYTES);
                if (item->size && (i == 0 || compare_items(&n->order[i - 1], &n->order[i])))
                        n->texts[n->text_count++] = (struct text){ item, hash_dict_text(item->text, item->size) };
        }
        qsort(n->texts, n->text_count, sizeof *n->texts, compare_texts);
}

/* Number the new texts in sorted order; equal texts share a number. */
static enum status number_fresh(struct interner *n, uint32_t last, struct error *err)
{
        for (size_t i = 0; i < n->count; i++) {
                struct string_dict_item *item = n->order[i];

                if (item->size == 0 || item->number)
                        continue;
                if (i > 0 && compare_items(&n->order[i - 1], &n->order[i]) == 0) {
                        item->number = n->order[i - 1]->number;
                        continue;
                }
                if (last == UINT32_MAX)
                        return error_set(err, ST_TOO_BIG, "the index has no number left for another string");
                item->number = ++last;
                n->ids[n->fresh_count] = (struct text_hash_entry){ hash_dict_text(item->text, item->size),
                                                                   item->number >> TEXT_GROUP_BITS };
                n->fresh[n->fresh_count++] = (struct text_item){ item->text, item->size };
        }
        assert(n->fresh_count <= n->text_count);
        return ST_OK;
}

static enum status write_text_pages(struct interner *n, uint32_t last, struct error *err)
{
        enum status st = ST_OK;

        for (size_t at = 0, used; at < n->fresh_count && !st; at += used) {
                uint32_t key;

                used = 0;
                st = text_page_pack(n->packer, last, n->fresh + at, n->fresh_count - at, &n->page, &used, err);
                if (st)
                        break;
                last += (uint32_t)used;
                key = htobe32(last);
                st = index_write_put(n->w, n->strings->pages,
                                     &(struct index_record){ &key, sizeof key, n->page.data, n->page.size }, MDB_APPEND,
                                     err);
                if (!st && index_write_is_full(n->w))
                        st = index_write_renew(n->w, err);
        }
        return st;
}

static enum status intern_items(struct interner *n, struct string_dict_item *items, struct error *err)
{
        enum status st = string_dict_last_number(n->strings, n->w->txn, &n->last, err);

        collect_distinct_texts(n, items);
        for (size_t i = 0; i < n->text_count && !st; i++)
                st = find_text(n, &n->texts[i], err);
        if (!st)
                st = number_fresh(n, n->last, err);
        if (!st)
                st = write_text_pages(n, n->last, err);
        if (st)
                return st;
        qsort(n->ids, n->fresh_count, sizeof *n->ids, compare_ids);
        return text_hash_index_add(n->w, n->strings->ids, n->ids, n->fresh_count, err);
}

static enum status allocate_interner(struct interner *n, struct error *err)
{
        enum status st;

        n->order = calloc(n->count + 1, sizeof *n->order);
        n->texts = calloc(n->count + 1, sizeof *n->texts);
        n->ids = calloc(n->count + 1, sizeof *n->ids);
        n->fresh = calloc(n->count + 1, sizeof *n->fresh);
        n->chunk = malloc(sizeof *n->chunk);
        n->pages = calloc(PAGES_KEPT, sizeof(void *));
        if (!n->order || !n->texts || !n->ids || !n->fresh || !n->chunk || !n->pages)
                return error_no_memory(err);
        st = text_packer_create(&n->packer, err);
        return st ? st : text_unpacker_create(&n->unpacker, err);
}

enum status string_dict_intern(const struct string_dict *s, struct index_write *w, struct string_dict_item *items,
                               size_t count, struct error *err)
{
        struct interner n = { .strings = s, .w = w, .count = count };
        enum status st = allocate_interner(&n, err);

        buf_init(&n.page, MiB(1));
        if (!st)
                st = intern_items(&n, items, err);
        for (size_t i = 0; n.pages && i < PAGES_KEPT; i++)
                free(n.pages[i]);
        text_packer_destroy(n.packer);
        text_unpacker_destroy(n.unpacker);
        buf_deinit(&n.page);
        free(n.pages);
        free(n.chunk);
        free(n.fresh);
        free(n.ids);
        free(n.texts);
        free(n.order);
        return st;
}
