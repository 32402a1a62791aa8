/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks the sorted keys of one group over the map of their object. A block of
 * which many rows are asked for is unpacked into arrays, and the keys are
 * merged with its rows; else each key goes to its row alone. Unpacking costs
 * about as much as going to one row in UNPACK_ROWS.
 */
#include <stdlib.h>

#include "symbolizer/block.h"
#include "symbolizer/index_map.h"
#include "symbolizer/lookup_tiles.h"

#define UNPACK_ROWS 8
#define CHAINS_KEYS_LEAST 24

struct walk {
        struct lookup *l;
        const struct lookup_object *object;
        const uint64_t *elements;
        uint32_t at, count;      /* next element, all elements */
        uint64_t high;
        bool have_page;
        struct map_page page;
        uint32_t entry;
        struct block block;
        uint64_t base, last;     /* addresses of the open block */
        uint32_t ahead;          /* number of a block that was fetched before its turn, 0 none */
        MDB_val ahead_value;
};

static inline uint64_t address_at(const struct walk *w, uint32_t i)
{
        return w->high | w->elements[i] >> 32;
}

/* All keys up to an address have no frames: for a state of their own, or since no range covers them. */
static void answer_until(struct walk *w, uint64_t last, enum symbol_state state)
{
        while (w->at < w->count && address_at(w, w->at) <= last) {
                struct lookup_spans spans;
                uint32_t count = 0;

                for (uint32_t i = w->at; count < LOOKUP_STEP && i < w->count && address_at(w, i) <= last; i++) {
                        spans.first[count] = spans.count[count] = 0;
                        spans.state[count++] = (uint16_t)(state == SYMBOL_OUTSIDE
                                                                  ? lookup_gap_state(&w->object->object, address_at(w, i))
                                                                  : state);
                }
                lookup_answer(w->l, w->elements + w->at, count, &spans);
                w->l->damaged_count += state == SYMBOL_FAILED ? count : 0;
                w->at += count;
        }
}

/* Whether a value's checksum was verified in this view. */
static bool is_verified(const struct walk *w, const MDB_val *value)
{
        return w->l->view->verified[((uintptr_t)value->mv_data >> 5) % VERIFIED_SLOTS] == value->mv_data;
}

static void set_verified(struct walk *w, const MDB_val *value)
{
        w->l->view->verified[((uintptr_t)value->mv_data >> 5) % VERIFIED_SLOTS] = value->mv_data;
}

static enum status open_page(struct walk *w, const MDB_val *key, const MDB_val *value)
{
        enum status st;

        if (is_verified(w, value))
                return map_page_open_again(&w->page, key->mv_data, key->mv_size, value->mv_data, value->mv_size, NULL);
        st = map_page_open(&w->page, key->mv_data, key->mv_size, value->mv_data, value->mv_size, NULL);
        if (!st)
                set_verified(w, value);
        return st;
}

static enum status open_block(struct walk *w, uint32_t number, const MDB_val *value)
{
        enum status st;

        if (is_verified(w, value))
                return block_open_again(&w->block, number, value->mv_data, value->mv_size, NULL);
        st = block_open(&w->block, number, value->mv_data, value->mv_size, NULL);
        if (!st)
                set_verified(w, value);
        return st;
}

/* The map page that holds the next key; *rc MDB_NOTFOUND when no page does. */
static void enter_page(struct walk *w, int *rc)
{
        uint32_t object = w->object->object.number;
        uint64_t address = address_at(w, w->at);
        struct map_key wanted = map_key_make(object, address);
        MDB_val key = { sizeof wanted.bytes, wanted.bytes }, value;

        w->have_page = false;
        *rc = mdb_cursor_get(w->l->view->maps, &key, &value, MDB_SET_RANGE);
        if (*rc)
                return;
        if (key.mv_size != MAP_KEY_BYTES || map_key_object(key.mv_data) != object) {
                *rc = MDB_NOTFOUND;
                return;
        }
        w->have_page = open_page(w, &key, &value) == ST_OK;
        w->entry = 0;
        if (!w->have_page)
                answer_until(w, map_key_last(key.mv_data), SYMBOL_FAILED);
}

/* Open the block of the page's entry; its keys are answered when it is damaged. */
static bool enter_block(struct walk *w, uint64_t limit, int *rc)
{
        uint32_t number = map_page_block(&w->page, w->entry), number_be = htobe32(number);
        MDB_val key = { sizeof number_be, &number_be }, value;

        if (number && number == w->ahead) {
                value = w->ahead_value;
                *rc = 0;
        } else {
                *rc = mdb_cursor_get(w->l->view->blocks, &key, &value, MDB_SET_KEY);
        }
        if (*rc == MDB_NOTFOUND ||
            (*rc == 0 && open_block(w, number, &value))) {
                *rc = 0;
                answer_until(w, limit, SYMBOL_FAILED);
                return false;
        }
        if (*rc)
                return false;
        w->base = map_page_start(&w->page, w->entry);
        w->last = limit - w->base < w->block.span ? limit : w->base + w->block.span;
        return true;
}

/* How many of the next keys are at or before an address. */
static uint32_t count_until(const struct walk *w, uint64_t last)
{
        uint32_t left = w->count - w->at, low = 0, high = 1;

        while (high < left && address_at(w, w->at + high) <= last) {
                low = high;
                high *= 2;
        }
        if (high > left)
                high = left;
        while (low < high) {
                uint32_t mid = low + (high - low) / 2;

                if (address_at(w, w->at + mid) <= last)
                        low = mid + 1;
                else
                        high = mid;
        }
        return low;
}

static bool rows_room(struct walk *w)
{
        if (!w->l->view->rows)
                w->l->view->rows = malloc(sizeof *w->l->view->rows);
        return w->l->view->rows;
}

/* Have the block of a key that comes later in the page on its way to the cache. What goes wrong shows in its turn. */
static void fetch_ahead(struct walk *w, uint32_t at)
{
        uint32_t entry, number_be;
        MDB_val key = { sizeof number_be, &number_be };

        w->ahead = 0;
        if (at >= w->count || address_at(w, at) > w->page.last)
                return;
        entry = map_page_find(&w->page, w->entry, address_at(w, at));
        if (entry == w->page.count)
                return;
        number_be = htobe32(map_page_block(&w->page, entry));
        if (mdb_cursor_get(w->l->view->blocks, &key, &w->ahead_value, MDB_SET_KEY))
                return;
        w->ahead = map_page_block(&w->page, entry);
        for (size_t i = 0; i < w->ahead_value.mv_size && i < BLOCK_BYTES; i += 64)
                __builtin_prefetch((const char *)w->ahead_value.mv_data + i);
}

/* Answer the keys that the open block covers. */
static bool walk_block(struct walk *w, uint32_t count)
{
        struct lookup_keys keys = { .object = &w->object->object,
                                    .elements = w->elements + w->at,
                                    .count = count,
                                    .shift = w->high - w->base };
        uint32_t done = 0;

        struct block_rows *rows;

        if (count < CHAINS_KEYS_LEAST) {
                if (!lookup_seeks(w->l, &w->block, &keys, &done))
                        return false;
        } else if (!rows_room(w)) {
                return false;
        } else if (rows = w->l->view->rows, count < w->block.row_count / UNPACK_ROWS) {
                if (block_unpack_chains(&w->block, rows) == ST_OK && !lookup_chains(w->l, &w->block, rows, &keys, &done))
                        return false;
        } else if (block_unpack(&w->block, rows) == ST_OK) {
                if (!lookup_rows(w->l, rows, &keys))
                        return false;
                done = count;
        }
        w->at += done;
        if (done < count)
                answer_until(w, w->last, SYMBOL_FAILED);
        return true;
}

/* Answer the keys of the page's entry that holds the next one, or those before it. */
static bool walk_entry(struct walk *w, int *rc)
{
        uint64_t address = address_at(w, w->at), limit;
        uint32_t entry = map_page_find(&w->page, w->entry, address), count;

        if (entry == w->page.count) {
                /* Only before the first one, since a walk goes up. */
                answer_until(w, w->page.base - 1, SYMBOL_OUTSIDE);
                if (w->at < w->count && address_at(w, w->at) == address)
                        answer_until(w, address, SYMBOL_FAILED);
                return true;
        }
        w->entry = entry;
        limit = entry + 1 < w->page.count ? map_page_start(&w->page, entry + 1) - 1 : w->page.last;
        if (!enter_block(w, limit, rc))
                return *rc == 0;
        count = count_until(w, w->last);
        fetch_ahead(w, w->at + count);
        if (count && !walk_block(w, count))
                return false;
        answer_until(w, limit, SYMBOL_OUTSIDE);
        return true;
}

enum status lookup_walk(struct lookup *l, const struct lookup_group *g, const uint64_t *elements, struct error *err)
{
        struct walk w = { .l = l, .object = &l->known.objects[g->object], .elements = elements, .count = g->count,
                          .high = (uint64_t)g->high << 32 };
        int rc = 0;

        while (w.at < w.count) {
                if (!w.have_page || address_at(&w, w.at) > w.page.last)
                        enter_page(&w, &rc);
                if (rc == MDB_NOTFOUND) {
                        answer_until(&w, UINT64_MAX, SYMBOL_OUTSIDE);
                        break;
                }
                if (rc)
                        return index_error(err, l->view->index, rc, "cannot read the index");
                if (w.have_page && !walk_entry(&w, &rc))
                        return rc ? index_error(err, l->view->index, rc, "cannot read the index")
                                  : error_no_memory(err);
        }
        return ST_OK;
}
