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
#include "symbolizer/lookup_internal.h"

#define PREFETCH_AHEAD 24
#define UNPACK_ROWS 20
#define UNPACK_KEYS_LEAST 4

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
};

bool lookup_grow(void **array, size_t *capacity, size_t count, size_t size)
{
        size_t wanted = *capacity ? *capacity : 64, bytes;
        void *bigger;

        if (count <= *capacity)
                return true;
        while (wanted < count)
                if (__builtin_mul_overflow(wanted, 2, &wanted))
                        return false;
        if (__builtin_mul_overflow(wanted, size, &bytes))
                return false;
        bigger = realloc(*array, bytes);
        if (!bigger)
                return false;
        *array = bigger;
        *capacity = wanted;
        return true;
}

static inline uint64_t address_at(const struct walk *w, uint32_t i)
{
        return w->high | w->elements[i] >> 32;
}

static inline void put_result(const struct walk *w, uint64_t element, enum symbol_state state, size_t first_frame,
                              uint32_t frame_count)
{
        w->l->results[(uint32_t)element] = (struct symbol_result){ state,
                                                                   w->object->object.quality,
                                                                   w->object->object.number,
                                                                   w->high | element >> 32,
                                                                   (uint32_t)first_frame,
                                                                   frame_count };
}

/* Answers go to places in no order: have the line there when it is written. */
static inline void prefetch_result(const struct walk *w, uint32_t i)
{
        if (i + PREFETCH_AHEAD < w->count)
                __builtin_prefetch(&w->l->results[(uint32_t)w->elements[i + PREFETCH_AHEAD]], 1);
}

/* The same answer, without frames, for all keys up to an address. */
static void answer_until(struct walk *w, uint64_t last, enum symbol_state state)
{
        for (; w->at < w->count && address_at(w, w->at) <= last; w->at++) {
                put_result(w, w->elements[w->at], state, 0, 0);
                w->l->damaged_count += state == SYMBOL_FAILED;
        }
}

/* Room for the frames of one more row. */
static inline bool frames_room(struct lookup *l, uint32_t node_count)
{
        return l->frame_capacity - l->frame_count > node_count ||
               (l->frame_count + node_count < UINT32_MAX &&
                lookup_grow((void **)&l->frames, &l->frame_capacity, l->frame_count + node_count + 1,
                            sizeof *l->frames));
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

        *rc = mdb_cursor_get(w->l->view->blocks, &key, &value, MDB_SET_KEY);
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

/* The row of an offset, from one at or before it on. Most steps are short, and no branch knows how short. */
static inline uint32_t advance_row(const struct block_rows *rows, uint32_t row, uint64_t offset)
{
        uint32_t at = offset < UINT32_MAX ? (uint32_t)offset : UINT32_MAX - 1;

        /* The start behind the last row is UINT32_MAX. */
        row += rows->starts[row + 1] <= at;
        row += rows->starts[row + 1] <= at;
        while (rows->starts[row + 1] <= at)
                row++;
        return row;
}

/* Merge the keys of the block with its rows, which are unpacked. */
static bool walk_rows(struct walk *w)
{
        const struct block_rows *rows = w->l->view->rows;
        struct lookup *l = w->l;
        uint32_t row = 0, frame_count = 0;
        size_t first_frame = 0;
        enum symbol_state state = SYMBOL_OUTSIDE;
        uint64_t end = 0;

        for (; w->at < w->count; w->at++) {
                uint64_t element = w->elements[w->at], address = w->high | element >> 32, offset = address - w->base;

                prefetch_result(w, w->at);
                if (address > w->last)
                        break;
                if (offset >= end) {
                        if (!frames_room(l, rows->node_count))
                                return false;
                        row = advance_row(rows, row, offset);
                        end = row + 1 < rows->row_count ? rows->starts[row + 1] : UINT64_MAX;
                        first_frame = l->frame_count;
                        frame_count = block_row_frames(rows, row, l->frames + l->frame_count);
                        l->frame_count += frame_count;
                        state = frame_count ? SYMBOL_RESOLVED : SYMBOL_OUTSIDE;
                }
                put_result(w, element, state, first_frame, frame_count);
        }
        return true;
}

/* Go to the row of each key of the block. */
static bool walk_keys(struct walk *w)
{
        struct lookup *l = w->l;
        struct block_cursor cursor = { 0 };
        enum symbol_state state = SYMBOL_OUTSIDE;
        uint32_t frame_count = 0, row;
        size_t first_frame = 0;
        uint64_t end = 0;

        for (; w->at < w->count; w->at++) {
                uint64_t element = w->elements[w->at], address = w->high | element >> 32, offset = address - w->base;

                prefetch_result(w, w->at);
                if (address > w->last)
                        break;
                if (offset >= end) {
                        if (!frames_room(l, w->block.node_count))
                                return false;
                        if (block_seek(&w->block, &cursor, offset, &row, &end) ||
                            block_frames(&w->block, row, l->frames + l->frame_count, &frame_count)) {
                                answer_until(w, w->last, SYMBOL_FAILED);
                                return true;
                        }
                        first_frame = l->frame_count;
                        l->frame_count += frame_count;
                        state = frame_count ? SYMBOL_RESOLVED : SYMBOL_OUTSIDE;
                }
                put_result(w, element, state, first_frame, frame_count);
        }
        return true;
}

static bool walk_block(struct walk *w)
{
        uint32_t many = w->block.row_count / UNPACK_ROWS;
        struct symbol_view *view = w->l->view;

        if (many < UNPACK_KEYS_LEAST)
                many = UNPACK_KEYS_LEAST;
        if (w->at + many >= w->count || address_at(w, w->at + many) > w->last)
                return walk_keys(w);
        if (!view->rows)
                view->rows = malloc(sizeof *view->rows);
        if (!view->rows)
                return false;
        if (block_unpack(&w->block, view->rows)) {
                answer_until(w, w->last, SYMBOL_FAILED);
                return true;
        }
        return walk_rows(w);
}

/* Answer the keys of the page's entry that holds the next one, or those before it. */
static bool walk_entry(struct walk *w, int *rc)
{
        uint64_t address = address_at(w, w->at), limit;
        uint32_t entry = map_page_find(&w->page, w->entry, address);

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
        if (!walk_block(w))
                return false;
        answer_until(w, limit, SYMBOL_OUTSIDE);
        return true;
}

enum status lookup_walk(struct lookup *l, const struct lookup_group *g, const uint64_t *elements, struct error *err)
{
        struct walk w = { .l = l, .object = &l->objects[g->object], .elements = elements, .count = g->count,
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
