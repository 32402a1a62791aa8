/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_QUERY_LOCATION_FRAMES_H
#define CAIRN_QUERY_LOCATION_FRAMES_H

/**
 * @file
 * The frames of a scan's locations, as numbers in a frame table. An unresolved location becomes one frame, named by its
 * address and object.
 *
 * Threads: those of the calling one belong to the query; several work on what is large.
 */
#include "query/frames.h"

/** The frames of each location of a scan, outermost first. */
struct location_frames {
        uint32_t *first;      /* of each location; locations that share frames in the scan share them here */
        uint32_t *end;        /* one past the last */
        uint32_t *frames;     /* numbers in the table */
        int64_t *lines;       /* line of each, 0 unknown */
        int64_t *start_lines; /* of the function of each, 0 unknown */
        struct memory_reservation memory;
};

/** Bytes that location_frames has for each frame. */
#define LOCATION_FRAME_BYTES (sizeof(uint32_t) + 2 * sizeof(int64_t))

enum status location_frames_build(struct frame_table *t, const struct scan_stacks *stacks, struct location_frames *ret,
                                  struct error *err) MUST_CHECK;
void location_frames_deinit(struct location_frames *l);

#endif
