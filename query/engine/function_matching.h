/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_QUERY_ENGINE_FUNCTION_MATCHING_H
#define CAIRN_QUERY_ENGINE_FUNCTION_MATCHING_H

/**
 * @file
 * Functions across builds: the frames of two sides that are the same function under different names, in different
 * files, or inlined on one side only, become one frame, so that every view of a comparison has one row, node or line
 * for them. The problem, the rules and what was rejected are in function_matching.c. Private to query/.
 *
 * Threads: belongs to one thread.
 */
#include "query/engine/merged_profile.h"

/* By frame of the table: bits of the sides on which it has samples, 1 before, 2 after. */
struct frame_marks {
        uint8_t *sides; /* owned */
        size_t count;
};
void frame_marks_deinit(struct frame_marks *m);
#define _cleanup_frame_marks_ _cleanup_(frame_marks_deinit)

/** Mark the frames in the stacks of a part of a side. @param side  0 before, 1 after. */
enum status function_matching_mark(const struct frame_table *frames, const struct merged_profile *p, unsigned side,
                                   struct frame_marks *marks, struct error *err) MUST_CHECK;

/**
 * Match the functions of both sides. Frames that are replaced keep their index and name in the table;
 * frame_table.replaced_by has their replacement.
 */
enum status function_matching_match(struct frame_table *frames, const struct frame_marks *marks,
                                    struct error *err) MUST_CHECK;

/** Do both for two profiles, and rewrite the frames of their locations. @param sides  loaded with the same table. */
enum status function_matching_apply(struct frame_table *frames, struct merged_profile sides[2],
                                    struct error *err) MUST_CHECK;

#endif
