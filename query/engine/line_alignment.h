/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_QUERY_ENGINE_LINE_ALIGNMENT_H
#define CAIRN_QUERY_ENGINE_LINE_ALIGNMENT_H

/**
 * @file
 * The lines of two versions of a file that correspond to each other, by a diff of the texts: equal lines in the same
 * order, and changed lines where as many were removed as were added in their place.
 *
 * Threads: no shared state.
 * Source: B. Cohen, "Patience Diff Advantages" (2010): lines that occur once on both sides are found first; between
 * them the longest common subsequence.
 */
#include "common/threads/work_meter.h"
#include "query/engine/source_lines.h"

#define LIMIT_ALIGNED_LINES (1u << 20) /* of one side */

struct line_alignment {
        uint32_t *after_of;    /* of each line before, from 1: the line after; 0: it was removed. Owned */
        uint32_t *before_of;   /* of each line after, from 1: the line before; 0: it is new. Owned */
        uint32_t *after_until; /* of each line before, from 0: the line after of the last line up to it that has one; 0:
                                  none. Owned */
        uint32_t before_count, after_count;
        struct memory_reservation memory; /* of the arrays */
};
void line_alignment_deinit(struct line_alignment *a); /* also fine on a zeroed one */

/**
 * Work and memory grow with the number of lines, whatever the texts are.
 * @return ST_OK; ST_TOO_BIG for more than LIMIT_ALIGNED_LINES; ST_BUSY or ST_TOO_BIG of the memory of the query;
 *         ST_NO_MEMORY; the status of the meter.
 */
enum status line_alignment_make(const struct source_lines *before, const struct source_lines *after,
                                struct work_meter *meter, struct line_alignment *ret, struct error *err) MUST_CHECK;

#endif
