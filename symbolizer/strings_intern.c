/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers texts. In the order of their hashes each is looked for among those
 * of the index, so that each chunk of ids is read once; in their own order the
 * others get numbers and go into pages; then their ids are merged into the
 * chunks. Pages that are not committed yet may be read here, so what is
 * unpacked is kept apart from the cache that views share.
 */
#include <assert.h>
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "symbolizer/index_internal.h"
#include "symbolizer/strings_internal.h"

#define PAGES_KEPT 1024

struct text {
        struct strings_item *item; /* the first one with this text */
        uint32_t hash;
};

struct intern {
        const struct strings *strings;
        struct index_write *w;
        struct strings_item **order; /* by text */
        struct text *texts;          /* distinct ones by hash */
        struct text_id *ids;         /* of new ones */
        struct text_item *fresh;     /* new ones by text */
        size_t count, text_count, fresh_count;
        uint32_t last;               /* number of a text */
        struct text_chunk *chunk;
        bool have_chunk;
        struct text_page **pages;    /* by a part of their last numbers */
        struct text_packer *packer;
        struct text_unpacker *unpacker;
        struct buf page;
};

static int compare_items(const void *a, const void *b)
{
        const struct strings_item *x = *(const struct strings_item *const *)a;
        const struct strings_item *y = *(const struct strings_item *const *)b;

        return text_compare(x->text, x->size, y->text, y->size);
}

static int compare_texts(const void *a, const void *b)
{
        const struct text *x = a, *y = b;

        return (x->hash > y->hash) - (x->hash < y->hash);
}

static int compare_ids(const void *a, const void *b)
{
        const struct text_id *x = a, *y = b;

        return (x->hash > y->hash) - (x->hash < y->hash);
}

/* ---- looking for a text */

static enum status get_page(struct intern *n, uint32_t number, const struct text_page **ret, struct error *err)
{
        struct text_page **slot, *page;
        uint32_t last;
        MDB_val value;
        enum status st = strings_page_of(n->strings, n->w->txn, number, &last, &value, err);

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

/* Look for a text in the pages of a group of numbers. */
static enum status search_group(struct intern *n, uint32_t group, struct strings_item *item, struct error *err)
{
        uint64_t number = (uint64_t)group << TEXT_GROUP_BITS, end = number + (1u << TEXT_GROUP_BITS);
        enum status st = ST_OK;

        number += number == 0;
        while (!st && number < end && number <= n->last) {
                const struct text_page *page;
                uint32_t index;

                st = get_page(n, (uint32_t)number, &page, err);
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

static enum status find(struct intern *n, const struct text *t, struct error *err)
{
        enum status st = ST_OK;
        uint32_t low = 0, high;

        if (!n->have_chunk || t->hash > n->chunk->last) {
                st = text_ids_chunk(n->w->txn, n->strings->ids, t->hash, n->chunk, err);
                n->have_chunk = true;
        }
        high = n->chunk->count;
        while (!st && low < high) {
                uint32_t mid = low + (high - low) / 2;

                if (n->chunk->ids[mid].hash < t->hash)
                        low = mid + 1;
                else
                        high = mid;
        }
        for (; !st && low < n->chunk->count && n->chunk->ids[low].hash == t->hash && !t->item->number; low++)
                st = search_group(n, n->chunk->ids[low].group, t->item, err);
        return st;
}

/* ---- the steps */

/* The distinct texts, by hash. */
static void collect(struct intern *n, struct strings_item *items)
{
        for (size_t i = 0; i < n->count; i++) {
                n->order[i] = &items[i];
                items[i].number = 0;
        }
        qsort(n->order, n->count, sizeof *n->order, compare_items);
        for (size_t i = 0; i < n->count; i++) {
                struct strings_item *item = n->order[i];

                assert(item->size <= LIMIT_NAME_BYTES);
                if (item->size && (i == 0 || compare_items(&n->order[i - 1], &n->order[i])))
                        n->texts[n->text_count++] = (struct text){ item, text_hash(item->text, item->size) };
        }
        qsort(n->texts, n->text_count, sizeof *n->texts, compare_texts);
}

/* Number the texts that were not found, in their order; equal ones share a number. */
static enum status number_fresh(struct intern *n, uint32_t last, struct error *err)
{
        for (size_t i = 0; i < n->count; i++) {
                struct strings_item *item = n->order[i];

                if (item->size == 0 || item->number)
                        continue;
                if (i > 0 && compare_items(&n->order[i - 1], &n->order[i]) == 0) {
                        item->number = n->order[i - 1]->number;
                        continue;
                }
                if (last == UINT32_MAX)
                        return error_set(err, ST_TOO_BIG, "the index has no number left for another string");
                item->number = ++last;
                n->ids[n->fresh_count] = (struct text_id){ text_hash(item->text, item->size),
                                                           item->number >> TEXT_GROUP_BITS };
                n->fresh[n->fresh_count++] = (struct text_item){ item->text, item->size };
        }
        return ST_OK;
}

static enum status write_pages(struct intern *n, uint32_t last, struct error *err)
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
                st = index_write_put(n->w, n->strings->pages, &key, sizeof key, n->page.data, n->page.size, MDB_APPEND, err);
                if (!st && index_write_full(n->w))
                        st = index_write_renew(n->w, err);
        }
        return st;
}

static enum status intern(struct intern *n, struct strings_item *items, struct error *err)
{
        enum status st = strings_last(n->strings, n->w->txn, &n->last, err);

        collect(n, items);
        for (size_t i = 0; i < n->text_count && !st; i++)
                st = find(n, &n->texts[i], err);
        if (!st)
                st = number_fresh(n, n->last, err);
        if (!st)
                st = write_pages(n, n->last, err);
        if (st)
                return st;
        qsort(n->ids, n->fresh_count, sizeof *n->ids, compare_ids);
        return text_ids_add(n->w, n->strings->ids, n->ids, n->fresh_count, err);
}

static enum status prepare(struct intern *n, struct error *err)
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

enum status strings_intern(const struct strings *s, struct index_write *w, struct strings_item *items, size_t count,
                           struct error *err)
{
        struct intern n = { .strings = s, .w = w, .count = count };
        enum status st = prepare(&n, err);

        buf_init(&n.page, MiB(1));
        if (!st)
                st = intern(&n, items, err);
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
