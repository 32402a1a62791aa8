/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks the sorted keys of one group over the map of their object. A block with many keys is unpacked into arrays, and
 * the keys are merged with its rows; with few keys, each seeks its row. Unpacking costs about as much as seeking one in
 * UNPACK_ROWS rows.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "symbol-index/block.h"
#include "symbol-index/block_map.h"
#include "symbol-index/lookup_internal.h"

/* Why an address without a range has none. */
static enum symbol_state get_gap_state(const struct index_object *o, uint64_t address)
{
        if (!index_object_has_bytes(o))
                return SYMBOL_OUTSIDE;
        return index_object_holds(o, address) ? SYMBOL_UNCOVERED : SYMBOL_NOT_IN_OBJECT;
}

/* ---- storing results ---- */

/*
 * Storing answers. A walk answers keys in address order; writing the answers of
 * a large unordered batch directly costs a cache miss each. They are therefore
 * appended to tiles, runs of neighbouring keys whose results fit into the cache;
 * at the end of a group, each tile is put in key order in the cache and written
 * sequentially.
 */
#define LOOKUP_TILE_SHIFT 13 /* keys per tile: 256 KiB of results */
#define LOOKUP_TILES_MAX 512 /* larger batches have larger tiles */

struct lookup_tiles {
        unsigned shift;
        uint32_t counts[LOOKUP_TILES_MAX]; /* number of answers in each tile */
        struct symbol_result one[1u << LOOKUP_TILE_SHIFT] __attribute__((aligned(64)));
};

static inline struct symbol_result lookup_result(const struct lookup *l, uint64_t element, uint32_t state,
                                                 uint32_t first_frame, uint32_t frame_count)
{
        return (struct symbol_result){ (enum symbol_state)state,          l->common.quality, l->common.generation,
                                       l->common.address | element >> 32, first_frame,       frame_count };
}

#define LOOKUP_STEP 256 /* keys whose frames are found before their results are stored */

/* Frame positions for some neighbouring keys. */
struct lookup_spans {
        uint32_t first[LOOKUP_STEP];
        uint16_t count[LOOKUP_STEP];
        uint16_t state[LOOKUP_STEP];
};

#define PREFETCH_AHEAD 24
#define TILES_FROM (1u << 15) /* answers; fewer fit into the cache */

bool lookup_answers_begin(struct lookup *l, const struct lookup_group *g)
{
        const struct lookup_object *object = &l->known.objects[g->object];

        l->common = (struct symbol_result){ .quality = object->object.quality,
                                            .generation = object->object.number,
                                            .address = (uint64_t)g->high << 32 };
        l->tiles = NULL;
        if (g->sorted || g->count < TILES_FROM)
                return true;
        if (!l->view->tiles)
                l->view->tiles = aligned_alloc(64, sizeof *l->view->tiles);
        if (!l->view->tiles)
                return false;
        l->tiles = l->view->tiles;
        l->tiles->shift = LOOKUP_TILE_SHIFT;
        while ((l->count - 1) >> l->tiles->shift >= LOOKUP_TILES_MAX)
                l->tiles->shift++;
        memset(l->tiles->counts, 0, sizeof l->tiles->counts);
        return true;
}

/* Non-temporal stores: results of a large batch are not read soon. */
static void stream_results(struct symbol_result *to, const struct symbol_result *from, size_t count)
{
#ifdef __SSE2__
        for (size_t i = 0; i < count; i++) {
                _mm_stream_si128((__m128i *)&to[i], _mm_load_si128((const __m128i *)&from[i]));
                _mm_stream_si128((__m128i *)&to[i] + 1, _mm_load_si128((const __m128i *)&from[i] + 1));
        }
        _mm_sfence();
#else
        memcpy(to, from, count * sizeof *to);
#endif
}

/* Write the answers of keys from `first` on to their positions. */
static void place_answers(const struct lookup *l, const struct lookup_answer *answers, uint32_t count, uint32_t first,
                          struct symbol_result *results)
{
        for (uint32_t i = 0; i < count; i++) {
                const struct lookup_answer *a = &answers[i];

                results[(uint32_t)a->element - first] =
                        lookup_result(l, a->element, a->state, a->first_frame, a->frame_count);
        }
}

static void put_in_tiles(const struct lookup *l, const uint64_t *elements, uint32_t count,
                         const struct lookup_spans *spans)
{
        struct lookup_answer *answers = l->answers;
        uint32_t *counts = l->tiles->counts;
        unsigned shift = l->tiles->shift;

        for (uint32_t i = 0; i < count; i++) {
                uint64_t element = elements[i];
                uint32_t tile = (uint32_t)element >> shift, place = (tile << shift) + counts[tile]++;

                answers[place] = (struct lookup_answer){ element, spans->first[i], spans->count[i], spans->state[i] };
        }
}

/* Store the answers of the keys of elements. */
static void store_answers(struct lookup *l, const uint64_t *elements, uint32_t count, const struct lookup_spans *spans)
{
        struct symbol_result *results = l->results;
        const struct symbol_result common = l->common;

        if (l->tiles) {
                put_in_tiles(l, elements, count, spans);
                return;
        }
        for (uint32_t i = 0; i < count; i++) {
                uint64_t element = elements[i];
                struct symbol_result *r = &results[(uint32_t)element];

                if (i + PREFETCH_AHEAD < count)
                        __builtin_prefetch(&results[(uint32_t)elements[i + PREFETCH_AHEAD]], 1);
                *r = (struct symbol_result){ (enum symbol_state)spans->state[i], common.quality,  common.generation,
                                             common.address | element >> 32,     spans->first[i], spans->count[i] };
        }
}

void lookup_answers_end(struct lookup *l)
{
        const struct lookup_tiles *tiles = l->tiles;
        size_t tile_keys;

        if (!tiles)
                return;
        tile_keys = (size_t)1 << tiles->shift;
        for (size_t first = 0, tile = 0; first < l->count; first += tile_keys, tile++) {
                size_t keys = l->count - first < tile_keys ? l->count - first : tile_keys;

                /* Results of other keys in the tile are already written. */
                if (tiles->counts[tile] < keys || tiles->shift > LOOKUP_TILE_SHIFT) {
                        place_answers(l, l->answers + first, tiles->counts[tile], 0, l->results);
                        continue;
                }
                place_answers(l, l->answers + first, tiles->counts[tile], (uint32_t)first, l->view->tiles->one);
                stream_results(l->results + first, tiles->one, keys);
        }
        l->tiles = NULL;
}

/* ---- answering the keys of one block ---- */

/* Keys of one block, ascending. */
struct lookup_keys {
        const struct index_object *object;
        const uint64_t *elements;
        uint32_t count;
        uint64_t shift; /* lower half of an address + shift = offset into the block */
};

/*
 * Answers the sorted keys of one block in one of three ways, from few keys to many: by seeking the row of each; with
 * unpacked chains of frames; with unpacked rows, too.
 *
 * With unpacked rows the work per key has no data-dependent branch and no
 * dependency on the previous key, since mispredictions and stalls cost more than
 * the work: a bucket of starts gives the row, frames are written for every key
 * and kept if its row is new, and chains are copied with fixed size.
 */

static inline bool reserve_batch_frames(struct lookup *l, size_t count)
{
        return l->frame_capacity - l->frame_count >= count ||
               (l->frame_count + count < UINT32_MAX &&
                lookup_grow((void **)&l->frames, &l->frame_capacity, l->frame_count + count, sizeof *l->frames));
}

/* Upper bound of frames written by block_scope_frames(). */
static inline uint32_t get_frames_bound(const struct block_rows *rows)
{
        return 1 + (rows->depth_max > BLOCK_CHAIN ? rows->depth_max : BLOCK_CHAIN);
}

static inline uint64_t get_block_offset(const struct lookup_keys *k, uint64_t element)
{
        return (element >> 32) + k->shift;
}

static inline uint16_t get_key_state(const struct lookup *l, const struct lookup_keys *k, uint64_t element,
                                     uint32_t frame_count)
{
        return (uint16_t)(frame_count ? SYMBOL_RESOLVED : get_gap_state(k->object, l->common.address | element >> 32));
}

static uint32_t get_step_size(const struct lookup_keys *k, uint32_t first)
{
        return k->count - first < LOOKUP_STEP ? k->count - first : LOOKUP_STEP;
}

/* Find the rows of some keys; `row` starts at or before the first key. Returns the last row. */
static uint32_t find_key_rows(const struct block_rows *rows, const struct lookup_keys *k, uint32_t first,
                              uint32_t count, uint32_t row, uint16_t *ret)
{
        for (uint32_t i = 0; i < count; i++) {
                uint64_t offset = get_block_offset(k, k->elements[first + i]);

                row = block_row_find(rows, offset < UINT32_MAX ? (uint32_t)offset : UINT32_MAX - 1, row);
                ret[i] = (uint16_t)row;
        }
        return row;
}

/* Answer keys from unpacked rows; false when out of memory. */
static bool answer_from_rows(struct lookup *l, const struct block_rows *rows, const struct lookup_keys *k)
{
        uint32_t row = 0, last = UINT32_MAX, first_frame = 0, room = get_frames_bound(rows);
        uint16_t found[LOOKUP_STEP];
        struct lookup_spans spans;

        for (uint32_t first = 0; first < k->count; first += LOOKUP_STEP) {
                uint32_t count = get_step_size(k, first);
                size_t frame_count;

                row = find_key_rows(rows, k, first, count, row, found);
                if (!reserve_batch_frames(l, (size_t)count * room))
                        return false;
                frame_count = l->frame_count;
                for (uint32_t i = 0; i < count; i++) {
                        bool is_new = found[i] != last;
                        uint32_t n = block_row_frames(rows, found[i], l->frames + frame_count);

                        first_frame = is_new ? (uint32_t)frame_count : first_frame;
                        frame_count += is_new ? n : 0;
                        last = found[i];
                        spans.first[i] = first_frame;
                        spans.count[i] = (uint16_t)n;
                        spans.state[i] = get_key_state(l, k, k->elements[first + i], n);
                }
                l->frame_count = frame_count;
                store_answers(l, k->elements + first, count, &spans);
        }
        return true;
}

/* Append the frames of one row. */
static enum status seek_frames(struct lookup *l, const struct block *block, const struct block_cursor *cursor,
                               const struct block_rows *rows, uint32_t row, uint32_t *count_ret)
{
        uint32_t scope, line;

        if (!rows)
                return block_get_frames(block, cursor, row, l->frames + l->frame_count, count_ret);
        if (block_get_row_scope(block, cursor, row, &scope, &line))
                return ST_BAD_DATA;
        *count_ret = block_scope_frames(rows, scope, line, l->frames + l->frame_count);
        return ST_OK;
}

/* rows may be NULL: without unpacked chains. */
static inline bool seek_keys(struct lookup *l, const struct block *block, const struct block_rows *rows,
                             struct block_cursor *cursor, const struct lookup_keys *k, uint32_t *done)
{
        uint32_t room = rows ? get_frames_bound(rows) : block->node_count + 1, frame_count = 0, first_frame = 0;
        struct lookup_spans spans;
        enum status st = ST_OK;
        uint64_t end = 0;

        for (*done = 0; *done < k->count && !st;) {
                uint32_t count = get_step_size(k, *done), i, row;

                for (i = 0; i < count; i++) {
                        uint64_t element = k->elements[*done + i], offset = get_block_offset(k, element);

                        if (offset >= end) {
                                if (!reserve_batch_frames(l, room))
                                        return false;
                                st = block_seek(block, cursor, offset, &row, &end);
                                if (!st)
                                        st = seek_frames(l, block, cursor, rows, row, &frame_count);
                                if (st)
                                        break;
                                first_frame = (uint32_t)l->frame_count;
                                l->frame_count += frame_count;
                        }
                        spans.first[i] = first_frame;
                        spans.count[i] = (uint16_t)frame_count;
                        spans.state[i] = get_key_state(l, k, element, frame_count);
                }
                store_answers(l, k->elements + *done, i, &spans);
                *done += i;
        }
        return true;
}

/*
 * Answer keys by seeking the row of each. *done is the number of answered keys: fewer than all if the block is damaged.
 * False when out of memory.
 */
static bool answer_by_seeking(struct lookup *l, const struct block *block, const struct lookup_keys *k, uint32_t *done)
{
        struct block_cursor cursor;

        block_cursor_init(&cursor, block);
        return seek_keys(l, block, NULL, &cursor, k, done);
}

/* Like answer_by_seeking(), with unpacked chains of frames. */
static bool answer_with_chains(struct lookup *l, const struct block *block, const struct block_rows *rows,
                               const struct lookup_keys *k, uint32_t *done)
{
        struct block_cursor cursor;

        block_cursor_init_rows(&cursor, block);
        return seek_keys(l, block, rows, &cursor, k, done);
}

/* ---- walking the map ---- */

/* Measured with 25 to 460 keys a block of the Linux kernel's symbols. */
#define UNPACK_ROWS 5
#define CHAINS_KEYS_LEAST 64

struct key_walk {
        struct lookup *l;
        const struct lookup_object *object;
        const uint64_t *elements;
        uint32_t at, count; /* next element, number of elements */
        uint64_t high;
        bool have_page;
        struct map_page page;
        uint32_t entry;
        struct block block;
        uint64_t base, last; /* addresses of the open block */
        uint32_t ahead;      /* number of a prefetched block; 0: none */
        MDB_val ahead_value;
};

static inline uint64_t get_element_address(const struct key_walk *w, uint32_t i)
{
        return w->high | w->elements[i] >> 32;
}

/* Answer all keys up to an address without frames, with a state; SYMBOL_OUTSIDE is refined per key. */
static void answer_keys_until(struct key_walk *w, uint64_t last, enum symbol_state state)
{
        while (w->at < w->count && get_element_address(w, w->at) <= last) {
                struct lookup_spans spans;
                uint32_t count = 0;

                for (uint32_t i = w->at; count < LOOKUP_STEP && i < w->count && get_element_address(w, i) <= last;
                     i++) {
                        spans.first[count] = spans.count[count] = 0;
                        spans.state[count++] =
                                (uint16_t)(state == SYMBOL_OUTSIDE
                                                   ? get_gap_state(&w->object->object, get_element_address(w, i))
                                                   : state);
                }
                store_answers(w->l, w->elements + w->at, count, &spans);
                w->l->damaged_count += state == SYMBOL_FAILED ? count : 0;
                w->at += count;
        }
}

/* True if the value's checksum was verified in this view. */
static bool is_verified(const struct key_walk *w, const MDB_val *value)
{
        return w->l->view->verified[((uintptr_t)value->mv_data >> 5) % VERIFIED_SLOTS] == value->mv_data;
}

static void set_verified(struct key_walk *w, const MDB_val *value)
{
        w->l->view->verified[((uintptr_t)value->mv_data >> 5) % VERIFIED_SLOTS] = value->mv_data;
}

static enum status open_map_page(struct key_walk *w, const MDB_val *key, const MDB_val *value)
{
        enum status st;

        if (is_verified(w, value))
                return map_page_open_verified(&w->page, key->mv_data, key->mv_size, value->mv_data, value->mv_size,
                                              NULL);
        st = map_page_open(&w->page, key->mv_data, key->mv_size, value->mv_data, value->mv_size, NULL);
        if (!st)
                set_verified(w, value);
        return st;
}

static enum status open_indexed_block(struct key_walk *w, uint32_t number, const MDB_val *value)
{
        enum status st;

        if (is_verified(w, value))
                return block_open_verified(&w->block, number, value->mv_data, value->mv_size, NULL);
        st = block_open(&w->block, number, value->mv_data, value->mv_size, NULL);
        if (!st)
                set_verified(w, value);
        return st;
}

/* Open the map page that contains the next key; *rc is MDB_NOTFOUND if there is none. */
static void enter_page(struct key_walk *w, int *rc)
{
        uint32_t object = w->object->object.number;
        uint64_t address = get_element_address(w, w->at);
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
        w->have_page = open_map_page(w, &key, &value) == ST_OK;
        w->entry = 0;
        if (!w->have_page)
                answer_keys_until(w, map_key_last(key.mv_data), SYMBOL_FAILED);
}

/* Open the block of the current entry. If it is damaged, its keys are answered as failed. */
static bool enter_block(struct key_walk *w, uint64_t limit, int *rc)
{
        uint32_t number = map_page_block(&w->page, w->entry), number_be = htobe32(number);
        MDB_val key = { sizeof number_be, &number_be }, value;

        if (number && number == w->ahead) {
                value = w->ahead_value;
                *rc = 0;
        } else {
                *rc = mdb_cursor_get(w->l->view->blocks, &key, &value, MDB_SET_KEY);
        }
        if (*rc == MDB_NOTFOUND || (*rc == 0 && open_indexed_block(w, number, &value))) {
                *rc = 0;
                answer_keys_until(w, limit, SYMBOL_FAILED);
                return false;
        }
        if (*rc)
                return false;
        assert(limit >= get_element_address(w, w->at));
        w->base = map_page_start(&w->page, w->entry);
        w->last = limit - w->base < w->block.span ? limit : w->base + w->block.span;
        return true;
}

/* Number of next keys at or before an address: exponential, then binary search. */
static uint32_t count_keys_until(const struct key_walk *w, uint64_t last)
{
        uint32_t left = w->count - w->at, low = 0, high = 1;

        while (high < left && get_element_address(w, w->at + high) <= last) {
                low = high;
                high *= 2;
        }
        if (high > left)
                high = left;
        while (low < high) {
                uint32_t mid = low + (high - low) / 2;

                if (get_element_address(w, w->at + mid) <= last)
                        low = mid + 1;
                else
                        high = mid;
        }
        return low;
}

/* Take those of an ended view: 340 KiB are mapped and cleared by the kernel each time they are allocated. */
static bool reserve_block_rows(struct key_walk *w)
{
        struct symbol_view *view = w->l->view;

        if (!view->rows)
                view->rows = atomic_exchange(&view->index->spare_rows, NULL);
        if (!view->rows)
                view->rows = malloc(sizeof *view->rows);
        return view->rows;
}

/* Prefetch the block of a later key in the page. Errors are reported when the block is opened. */
static void prefetch_block(struct key_walk *w, uint32_t at)
{
        uint32_t entry, number_be;
        MDB_val key = { sizeof number_be, &number_be };

        w->ahead = 0;
        if (at >= w->count || get_element_address(w, at) > w->page.last)
                return;
        entry = map_page_find(&w->page, w->entry, get_element_address(w, at));
        if (entry == w->page.count)
                return;
        number_be = htobe32(map_page_block(&w->page, entry));
        if (mdb_cursor_get(w->l->view->blocks, &key, &w->ahead_value, MDB_SET_KEY))
                return;
        w->ahead = map_page_block(&w->page, entry);
        for (size_t i = 0; i < w->ahead_value.mv_size && i < BLOCK_BYTES; i += 64)
                __builtin_prefetch((const char *)w->ahead_value.mv_data + i);
}

/* Answer the next `count` keys, which the open block covers: the more keys, the more of it is unpacked. */
static bool walk_block(struct key_walk *w, uint32_t count)
{
        struct lookup_keys keys = { .object = &w->object->object,
                                    .elements = w->elements + w->at,
                                    .count = count,
                                    .shift = w->high - w->base };
        struct block_rows *rows;
        uint32_t done = 0;
        bool ok = true;

        if (count < CHAINS_KEYS_LEAST) {
                ok = answer_by_seeking(w->l, &w->block, &keys, &done);
        } else if (!reserve_block_rows(w)) {
                ok = false;
        } else {
                rows = w->l->view->rows;
                if (count < w->block.row_count / UNPACK_ROWS) {
                        if (block_unpack_chains(&w->block, rows) == ST_OK)
                                ok = answer_with_chains(w->l, &w->block, rows, &keys, &done);
                } else if (block_unpack(&w->block, rows) == ST_OK) {
                        ok = answer_from_rows(w->l, rows, &keys);
                        done = count;
                }
        }
        if (!ok)
                return false;
        assert(done <= count);
        w->at += done;
        if (done < count)
                answer_keys_until(w, w->last, SYMBOL_FAILED);
        return true;
}

/* Answer the keys of the entry that contains the next key, or the keys before the first entry. */
static bool walk_entry(struct key_walk *w, int *rc)
{
        uint64_t address = get_element_address(w, w->at), limit;
        uint32_t entry = map_page_find(&w->page, w->entry, address), count;

        if (entry == w->page.count) {
                /* The key is before the first entry. */
                answer_keys_until(w, w->page.base - 1, SYMBOL_OUTSIDE);
                if (w->at < w->count && get_element_address(w, w->at) == address)
                        answer_keys_until(w, address, SYMBOL_FAILED);
                return true;
        }
        w->entry = entry;
        limit = entry + 1 < w->page.count ? map_page_start(&w->page, entry + 1) - 1 : w->page.last;
        if (!enter_block(w, limit, rc))
                return *rc == 0;
        count = count_keys_until(w, w->last);
        prefetch_block(w, w->at + count);
        if (count && !walk_block(w, count))
                return false;
        answer_keys_until(w, limit, SYMBOL_OUTSIDE);
        return true;
}

enum status lookup_walk(struct lookup *l, const struct lookup_group *g, const uint64_t *elements, struct error *err)
{
        struct key_walk w = { .l = l,
                              .object = &l->known.objects[g->object],
                              .elements = elements,
                              .count = g->count,
                              .high = (uint64_t)g->high << 32 };
        int rc = 0;

        while (w.at < w.count) {
                if (!w.have_page || get_element_address(&w, w.at) > w.page.last)
                        enter_page(&w, &rc);
                if (rc == MDB_NOTFOUND) {
                        answer_keys_until(&w, UINT64_MAX, SYMBOL_OUTSIDE);
                        break;
                }
                if (rc)
                        return index_set_error(err, l->view->index, rc, "cannot read the index");
                if (w.have_page && !walk_entry(&w, &rc))
                        return rc ? index_set_error(err, l->view->index, rc, "cannot read the index")
                                  : error_no_memory(err);
        }
        return ST_OK;
}
