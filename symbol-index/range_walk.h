/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOL_INDEX_RANGE_WALK_H
#define CAIRN_SYMBOL_INDEX_RANGE_WALK_H

/**
 * @file
 * Iterates over all ranges of one object in the order of their addresses.
 *
 * A walk may pause after any range and continue in another view, so that the texts of a large object do not accumulate
 * in one view, and a slow reader does not keep a view open.
 *
 * Threads: a walk belongs to one thread.
 */
#include "symbol-index/lookup.h"

struct block_rows;

struct range_walk {
        struct build_id id;
        uint32_t object; /* number of its symbols when the walk began; 0 before */
        uint64_t next;   /* ranges ending at or before it were visited */
        bool is_done;
        struct block_rows *rows; /* owned */
};

struct walked_range {
        uint64_t start, end;
        const struct symbol_frame *frames; /* innermost first, borrowed until the visit ends */
        uint32_t frame_count;
};

enum status range_walk_init(struct range_walk *w, const struct build_id *id, struct error *err) MUST_CHECK;
void range_walk_deinit(struct range_walk *w);

/**
 * Visit the next ranges, until visit sets *pause or none is left: then w->is_done is set.
 * @param visit its failure ends the walk.
 * @return ST_NOT_FOUND if the index has no symbols of the object; ST_BUSY if they were replaced since the walk began;
 *         ST_BAD_DATA at the first damaged page or block; visit's failure.
 */
enum status range_walk_continue(struct range_walk *w, struct symbol_view *view,
                                enum status (*visit)(void *context, const struct walked_range *range, bool *pause,
                                                     struct error *err),
                                void *context, struct error *err) MUST_CHECK;

#endif
