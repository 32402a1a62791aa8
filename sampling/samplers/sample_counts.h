/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_SAMPLERS_SAMPLE_COUNTS_H
#define CAIRN_SAMPLING_SAMPLERS_SAMPLE_COUNTS_H

/**
 * @file
 * Hash-consed counts and stacks of one interval. The number of a stack,
 * or of a context, in a sample_key is its index plus one.
 *
 * Threads: one thread at a time.
 */
#include "common/hash/id_table.h"
#include "sampling/samplers/sampler.h"

struct sample_counts {
        struct sample_batch batch; /* owned */
        size_t count_capacity, stack_capacity, frame_capacity;
        struct id_table keys, stacks;
};

void sample_counts_deinit(struct sample_counts *c);

/**
 * Add to the counts of a key.
 * @param add  its key is without stacks, which are set here, but with its context. Padding and the bytes after a name
 *         must be 0.
 * @return STAT_SAMPLES; at a limit STAT_LOST_COUNTS_FULL or STAT_LOST_STACKS_FULL.
 */
enum sample_stat sample_counts_add(struct sample_counts *c, struct sample_count *add,
                                   const struct sample_frames *kernel, const struct sample_frames *user);

/** Store a stack or a context only. False at a limit. @param ret  its number, 0 when empty. */
bool sample_counts_add_stack(struct sample_counts *c, const struct sample_frames *s, __u64 *ret);

/** Move everything to ret, owned, and start over. */
void sample_counts_take(struct sample_counts *c, struct sample_batch *ret);

#endif
