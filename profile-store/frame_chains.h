/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_FRAME_CHAINS_H
#define CAIRN_PROFILE_STORE_FRAME_CHAINS_H

/**
 * @file
 * Interning of inline chains: locations with equal frames share one array.
 *
 * Thousands of addresses lie in one range of a function with the same calls
 * inlined, so that a copy of the frames per location costs the product of
 * both: 350,000 addresses with 250 frames each are 3.5 GB, shared 10 KB.
 * Frames are equal when their texts are the same pointers, so intern the texts
 * first.
 *
 *     struct scan_frame *frames = frame_chain_begin(&c, count);
 *     ... set every field of frames[0 .. count) ...
 *     st = frame_chain_end(&c, count, &shared, err);
 *
 * Threads: belongs to one thread.
 */
#include "common/arena.h"
#include "common/hash_table.h"
#include "profile-store/scan.h"

struct frame_chain {
        const struct scan_frame *frames;
        uint32_t count;
};

struct frame_chains {
        struct arena *arena;     /* borrowed: where the shared arrays are; set it before the first use */
        struct hash_table table; /* by content */
        struct frame_chain *items;
        size_t count, capacity;
        struct scan_frame *scratch; /* of the chain between begin and end */
        size_t scratch_capacity;
};

/**
 * Why the arena had no n bytes.
 * @return ST_TOO_BIG: past its maximum; ST_BUSY: the memory budget refused them; else ST_NO_MEMORY.
 */
enum status report_full_arena(const struct arena *a, size_t n, const char *what, struct error *err);

void frame_chains_deinit(struct frame_chains *c);

/** Zeroed frames to fill, valid until the next call. NULL without memory. */
struct scan_frame *frame_chain_begin(struct frame_chains *c, uint32_t count);

/**
 * The shared array equal to the frames that were filled.
 * @param ret valid as long as the arena.
 * @return ST_OK; ST_TOO_BIG when the arena has no room; ST_NO_MEMORY.
 */
enum status frame_chain_end(struct frame_chains *c, uint32_t count, const struct scan_frame **ret,
                            struct error *err) MUST_CHECK;

#endif
