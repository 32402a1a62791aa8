/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_AGENT_LATE_H
#define CAIRN_AGENT_LATE_H

/**
 * @file
 * Samples whose user stack the BPF program left to the agent, since it did not
 * know the process yet: a copy of the registers and of the stack's end is
 * walked here, by the same tables and the same code (unwind-tables/unwind_step.h).
 *
 * Threads: one thread at a time.
 */
#include "agent/process.h"
#include "agent/sampler.h"

/** One that was walked, or still has its copy. */
struct late_sample {
        struct sample_key key;
        uint32_t frame_count, end;
        uint64_t *frames;         /* owned; NULL not walked yet */
        struct sample_late *copy; /* owned; NULL once it was walked */
};

struct late_samples {
        struct late_sample *items; /* owned */
        size_t count, capacity;
        size_t copied_bytes;       /* of stacks in copies */
        struct sample_walk walk;   /* scratch */
        uint64_t ends[SAMPLE_END_COUNT]; /* of those that were taken */
        uint64_t lost;             /* no memory, or past LIMIT_AGENT_LATE */
};

void late_samples_deinit(struct late_samples *l);

/**
 * Walk it if its process and the mappings and tables of its frames are known, else keep a copy; past LIMIT_AGENT_LATE_BYTES,
 * walk it by what is known.
 */
void late_samples_add(struct late_samples *l, struct process_table *processes, const struct sample_key *key,
                      const struct sample_late *late);

/** Walk those that can be walked now. */
void late_samples_retry(struct late_samples *l, struct process_table *processes);

/**
 * Put the first ones into the batch's counts and stacks, walked by what is known.
 * @param samples  how many belong to the batch; those that came after its drain do not.
 * @return ST_NO_MEMORY: they are lost.
 */
enum status late_samples_take(struct late_samples *l, size_t samples, struct process_table *processes, struct sample_batch *b,
                              struct error *err) MUST_CHECK;

/** Walk one copy. @param p its process. @return false when a frame of it lies in a mapping without a table. */
bool late_walk(const struct unwinder *u, const struct process *p, const struct sample_late *late,
               struct sample_walk *ret);

#endif
