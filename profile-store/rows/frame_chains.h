/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_ROWS_FRAME_CHAINS_H
#define CAIRN_PROFILE_STORE_ROWS_FRAME_CHAINS_H

/**
 * @file
 * Interning of inline chains: locations with equal frames share one array.
 *
 * Inlining puts thousands of addresses into ranges with the same chain of calls, so a copy of the frames per location
 * costs the product of both: 350,000 addresses with 250 frames each take 3.5 GB, shared 10 KB. Frames are compared by
 * the pointers of their texts, so intern the texts first.
 *
 *     struct scan_frame *frames = frame_chain_begin(&c, count);
 *     ... set every field of frames[0 .. count) ...
 *     st = frame_chain_end(&c, count, &shared, err);
 *
 * Threads: belongs to one thread.
 */
#include "common/memory/arena.h"
#include "common/hash/hash_table.h"
#include "profile-store/scan.h"

struct frame_chain {
        const struct scan_frame *frames;
        uint32_t count;
};

struct frame_chains {
        struct arena *arena;     /* borrowed: holds the shared arrays; set it before first use */
        struct hash_table table; /* by content */
        struct frame_chain *items;
        size_t count, capacity;
        struct scan_frame *scratch; /* the chain between begin and end */
        size_t scratch_capacity;
};

/**
 * Report why the arena could not allocate n bytes.
 * @return ST_TOO_BIG: past its maximum; ST_BUSY: refused by the memory budget; else ST_NO_MEMORY.
 */
enum status report_full_arena(const struct arena *a, size_t n, const char *what, struct error *err);

void frame_chains_deinit(struct frame_chains *c);

/** Zeroed frames to fill, valid until the next call. NULL when memory runs out. */
struct scan_frame *frame_chain_begin(struct frame_chains *c, uint32_t count);

/**
 * Find or add the shared array equal to the frames just filled.
 * @param ret valid as long as the arena.
 * @return ST_OK; ST_TOO_BIG when the arena is full; ST_NO_MEMORY.
 */
enum status frame_chain_end(struct frame_chains *c, uint32_t count, const struct scan_frame **ret,
                            struct error *err) MUST_CHECK;

#endif
