/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_AGENT_SAMPLE_COUNTS_H
#define CAIRN_AGENT_SAMPLE_COUNTS_H

/**
 * @file
 * The counts and stacks of one interval. A stack's number in sample_key is its
 * place here plus one.
 *
 * Threads: one thread at a time.
 */
#include "agent/id_table.h"
#include "agent/sampler.h"

struct sample_counts {
        struct sample_batch batch; /* owned */
        size_t count_capacity, stack_capacity, frame_capacity;
        struct id_table keys, stacks;
};

void sample_counts_deinit(struct sample_counts *c);

/**
 * Count one sample.
 * @param key  without its stacks; they are filled in. Padding and what lies behind a name is 0.
 * @return STAT_SAMPLES, or STAT_LOST_COUNTS_FULL or STAT_LOST_STACKS_FULL without room.
 */
enum sample_stat sample_counts_add(struct sample_counts *c, struct sample_key *key, const struct sample_walk *kernel,
                                   const struct sample_walk *user);

/** Keep a stack alone, for a sample that is counted elsewhere. False without room. @param ret  its number, 0 when empty. */
bool sample_counts_stack(struct sample_counts *c, const struct sample_walk *s, __u64 *ret);

/** Take all of it and begin anew. @param ret  owned. */
void sample_counts_take(struct sample_counts *c, struct sample_batch *ret);

#endif
