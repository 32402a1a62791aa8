/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers the sorted keys of one block, in two ways: with all of its rows
 * unpacked, or by going to the row of each key.
 *
 * With unpacked rows the work of a key takes no branch that depends on the
 * key, since a wrong guess costs more than the work: a step of the merge moves
 * to the next row or to the next key, frames are written for every key and
 * kept when its row is a new one, and chains are copied whole.
 */
#include "symbolizer/block.h"
#include "symbolizer/lookup_internal.h"

#define PREFETCH_AHEAD 24
#define MERGE_KEYS 256 /* rows of so many keys are found before their answers are written */

static inline void put_result(struct lookup *l, const struct symbol_result *answer, uint64_t element)
{
        l->results[(uint32_t)element] = *answer;
}

/* Answers go to places in no order: have the line there when it is written. */
static inline void prefetch_result(const struct lookup *l, const struct lookup_keys *k, uint32_t i)
{
        if (i + PREFETCH_AHEAD < k->count)
                __builtin_prefetch(&l->results[(uint32_t)k->elements[i + PREFETCH_AHEAD]], 1);
}

static inline bool frames_room(struct lookup *l, uint32_t count)
{
        return l->frame_capacity - l->frame_count >= count ||
               (l->frame_count + count < UINT32_MAX &&
                lookup_grow((void **)&l->frames, &l->frame_capacity, l->frame_count + count, sizeof *l->frames));
}

static inline uint64_t offset_of(const struct lookup_keys *k, uint64_t element)
{
        return (element >> 32) + k->shift;
}

/* The rows of some keys, from one at or before the first key's on; returns the last one. */
static uint32_t find_rows(const struct block_rows *rows, const struct lookup_keys *k, uint32_t first, uint32_t count,
                          uint32_t row, uint16_t *ret)
{
        for (uint32_t i = 0; i < count;) {
                uint64_t offset = offset_of(k, k->elements[first + i]);
                uint32_t at = offset < UINT32_MAX ? (uint32_t)offset : UINT32_MAX - 1;
                /* The start behind the last row is UINT32_MAX. */
                bool next = rows->starts[row + 1] <= at;

                ret[i] = (uint16_t)row;
                row += next;
                i += !next;
        }
        return row;
}

bool lookup_rows(struct lookup *l, const struct block_rows *rows, const struct lookup_keys *k)
{
        uint32_t row = 0, last = UINT32_MAX, frame_count = 0;
        uint32_t room = 1 + (rows->depth_max > BLOCK_CHAIN ? rows->depth_max : BLOCK_CHAIN);
        struct symbol_result answer = k->answer;
        uint16_t found[MERGE_KEYS];
        bool gaps = false;

        for (uint32_t first = 0; first < k->count; first += MERGE_KEYS) {
                uint32_t count = k->count - first < MERGE_KEYS ? k->count - first : MERGE_KEYS;

                row = find_rows(rows, k, first, count, row, found);
                for (uint32_t i = 0; i < count; i++) {
                        uint64_t element = k->elements[first + i];
                        bool is_new = found[i] != last;

                        prefetch_result(l, k, first + i);
                        if (!frames_room(l, room))
                                return false;
                        answer.first_frame = is_new ? (uint32_t)l->frame_count : answer.first_frame;
                        frame_count = block_row_frames(rows, found[i], l->frames + l->frame_count);
                        l->frame_count += is_new ? frame_count : 0;
                        last = found[i];
                        answer.frame_count = frame_count;
                        answer.state = frame_count ? SYMBOL_RESOLVED : SYMBOL_OUTSIDE;
                        gaps |= !frame_count;
                        answer.address = k->high | element >> 32;
                        put_result(l, &answer, element);
                }
        }
        l->has_gaps |= gaps;
        return true;
}

bool lookup_seeks(struct lookup *l, const struct block *block, const struct lookup_keys *k, uint32_t *done)
{
        struct symbol_result answer = k->answer;
        struct block_cursor cursor;
        uint32_t i, row, count = 0;
        uint64_t end = 0;

        block_cursor_init(&cursor, block);
        for (i = 0; i < k->count; i++) {
                uint64_t element = k->elements[i], offset = offset_of(k, element);

                prefetch_result(l, k, i);
                if (offset >= end) {
                        if (!frames_room(l, block->node_count + 1))
                                return false;
                        if (block_seek(block, &cursor, offset, &row, &end) ||
                            block_frames(block, &cursor, row, l->frames + l->frame_count, &count))
                                break;
                        answer.first_frame = (uint32_t)l->frame_count;
                        answer.frame_count = count;
                        answer.state = count ? SYMBOL_RESOLVED : SYMBOL_OUTSIDE;
                        l->has_gaps |= !count;
                        l->frame_count += count;
                }
                answer.address = k->high | element >> 32;
                put_result(l, &answer, element);
        }
        *done = i;
        return true;
}
