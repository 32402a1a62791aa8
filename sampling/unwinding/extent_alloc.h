/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_UNWINDING_EXTENT_ALLOC_H
#define CAIRN_SAMPLING_UNWINDING_EXTENT_ALLOC_H

/**
 * @file
 * Extent allocator with deferred reuse, for arrays in BPF maps.
 *
 * BPF programs may still read a released extent, so it becomes free only with
 * extent_alloc_reclaim(), which is called after every program that ran before
 * has ended (a grace period). An extent never crosses a multiple of the
 * boundary.
 *
 * Threads: one thread at a time.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct extent {
        uint32_t first, count;
};

struct extent_alloc {
        struct extent *free; /* owned; ascending, not adjacent */
        size_t free_count, free_capacity;
        struct extent *released; /* owned */
        size_t released_count, released_capacity;
        uint32_t boundary;
        uint64_t in_use; /* elements, released ones included */
};

/** All elements below count are free. @param boundary  0: none. False without memory. */
bool extent_alloc_init(struct extent_alloc *r, uint32_t count, uint32_t boundary);
void extent_alloc_deinit(struct extent_alloc *r);

/** The lowest extent of count elements; false when there is none. */
bool extent_alloc_reserve(struct extent_alloc *r, uint32_t count, struct extent *ret);

/** Release an extent. Without memory it is leaked. */
void extent_alloc_release(struct extent_alloc *r, struct extent run);

/** Free all released extents. */
void extent_alloc_reclaim(struct extent_alloc *r);

#endif
