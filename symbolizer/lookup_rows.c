/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers the sorted keys of one block in three ways, for few keys to many: by
 * going to the row of each and up its frames; with the chains of frames
 * unpacked; with the rows unpacked too.
 *
 * With unpacked rows the work of a key takes no branch that depends on the
 * key, and none waits for that of the key before, since a wrong guess and a
 * wait cost more than the work: a bucket of starts tells a row, frames are
 * written for every key and kept when its row is a new one, and chains are
 * copied whole.
 */
#include "symbolizer/block.h"
#include "symbolizer/lookup_tiles.h"

static inline bool frames_room(struct lookup *l, size_t count)
{
        return l->frame_capacity - l->frame_count >= count ||
               (l->frame_count + count < UINT32_MAX &&
                lookup_grow((void **)&l->frames, &l->frame_capacity, l->frame_count + count, sizeof *l->frames));
}

/* Frames that block_scope_frames() may write. */
static inline uint32_t frames_most(const struct block_rows *rows)
{
        return 1 + (rows->depth_max > BLOCK_CHAIN ? rows->depth_max : BLOCK_CHAIN);
}

static inline uint64_t offset_of(const struct lookup_keys *k, uint64_t element)
{
        return (element >> 32) + k->shift;
}

static inline uint16_t state_of(const struct lookup *l, const struct lookup_keys *k, uint64_t element,
                                uint32_t frame_count)
{
        return (uint16_t)(frame_count ? SYMBOL_RESOLVED
                                      : lookup_gap_state(k->object, l->common.address | element >> 32));
}

static uint32_t step_of(const struct lookup_keys *k, uint32_t first)
{
        return k->count - first < LOOKUP_STEP ? k->count - first : LOOKUP_STEP;
}

/* The rows of some keys; `row` starts at or before the first of them. Returns the last one. */
static uint32_t find_rows(const struct block_rows *rows, const struct lookup_keys *k, uint32_t first, uint32_t count,
                          uint32_t row, uint16_t *ret)
{
        for (uint32_t i = 0; i < count; i++) {
                uint64_t offset = offset_of(k, k->elements[first + i]);

                row = block_row_find(rows, offset < UINT32_MAX ? (uint32_t)offset : UINT32_MAX - 1, row);
                ret[i] = (uint16_t)row;
        }
        return row;
}

bool lookup_rows(struct lookup *l, const struct block_rows *rows, const struct lookup_keys *k)
{
        uint32_t row = 0, last = UINT32_MAX, first_frame = 0, room = frames_most(rows);
        uint16_t found[LOOKUP_STEP];
        struct lookup_spans spans;

        for (uint32_t first = 0; first < k->count; first += LOOKUP_STEP) {
                uint32_t count = step_of(k, first);
                size_t frame_count;

                row = find_rows(rows, k, first, count, row, found);
                if (!frames_room(l, (size_t)count * room))
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
                        spans.state[i] = state_of(l, k, k->elements[first + i], n);
                }
                l->frame_count = frame_count;
                lookup_answer(l, k->elements + first, count, &spans);
        }
        return true;
}

/* The frames of one row behind the others. */
static enum status seek_frames(struct lookup *l, const struct block *block, const struct block_cursor *cursor,
                               const struct block_rows *rows, uint32_t row, uint32_t *count_ret)
{
        uint32_t scope, line;

        if (!rows)
                return block_frames(block, cursor, row, l->frames + l->frame_count, count_ret);
        if (block_row_scope(block, cursor, row, &scope, &line))
                return ST_BAD_DATA;
        *count_ret = block_scope_frames(rows, scope, line, l->frames + l->frame_count);
        return ST_OK;
}

/* With or without chains. */
static inline bool seek_keys(struct lookup *l, const struct block *block, const struct block_rows *rows,
                             struct block_cursor *cursor, const struct lookup_keys *k, uint32_t *done)
{
        uint32_t room = rows ? frames_most(rows) : block->node_count + 1, frame_count = 0, first_frame = 0;
        struct lookup_spans spans;
        enum status st = ST_OK;
        uint64_t end = 0;

        for (*done = 0; *done < k->count && !st;) {
                uint32_t count = step_of(k, *done), i, row;

                for (i = 0; i < count; i++) {
                        uint64_t element = k->elements[*done + i], offset = offset_of(k, element);

                        if (offset >= end) {
                                if (!frames_room(l, room))
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
                        spans.state[i] = state_of(l, k, element, frame_count);
                }
                lookup_answer(l, k->elements + *done, i, &spans);
                *done += i;
        }
        return true;
}

bool lookup_seeks(struct lookup *l, const struct block *block, const struct lookup_keys *k, uint32_t *done)
{
        struct block_cursor cursor;

        block_cursor_init(&cursor, block);
        return seek_keys(l, block, NULL, &cursor, k, done);
}

bool lookup_chains(struct lookup *l, const struct block *block, const struct block_rows *rows,
                   const struct lookup_keys *k, uint32_t *done)
{
        struct block_cursor cursor;

        block_cursor_init_rows(&cursor, block);
        return seek_keys(l, block, rows, &cursor, k, done);
}
