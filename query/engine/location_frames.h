/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_QUERY_ENGINE_LOCATION_FRAMES_H
#define CAIRN_QUERY_ENGINE_LOCATION_FRAMES_H

/**
 * @file
 * The frames of a scan's locations, as indices in a frame table. An unresolved location becomes one frame, named by its
 * address and object.
 *
 * Threads: called by one thread at a time; large scans are shared with helper threads.
 */
#include "query/engine/frames.h"

/** The frames of each location of a scan, outermost first. */
struct location_frames {
        uint32_t *first;      /* by location; locations that share frames in the scan share the range */
        uint32_t *end;        /* by location, exclusive */
        uint32_t *frames;     /* indices in the table */
        int64_t *lines;       /* by frame, 0 unknown */
        int64_t *start_lines; /* first line of the function, by frame, 0 unknown */
        struct memory_reservation memory;
};

/** Bytes of location_frames per frame. */
#define LOCATION_FRAME_BYTES (sizeof(uint32_t) + 2 * sizeof(int64_t))

enum status location_frames_build(struct frame_table *t, const struct scan_stacks *stacks, struct location_frames *ret,
                                  struct error *err) MUST_CHECK;
void location_frames_deinit(struct location_frames *l);

#endif
