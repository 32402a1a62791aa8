/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_DEFERRED_SAMPLES_H
#define CAIRN_SAMPLING_DEFERRED_SAMPLES_H

/**
 * @file
 * Samples whose user stack the agent walks instead of the BPF program,
 * because the program did not have the mappings of the process yet. They carry
 * a copy of the registers and of the top of the stack, which is walked with the
 * same tables and the same code (unwind-tables/unwind_step.h).
 *
 * Threads: one thread at a time.
 */
#include "sampling/processes/process.h"
#include "sampling/samplers/sampler.h"

/** A sample: walked, or with the copy to walk later. */
struct deferred_sample {
        struct sample_key key;
        struct sample_weight weight;
        uint32_t frame_count, end;
        uint64_t *frames;        /* owned; NULL: not walked yet */
        struct stack_copy *copy; /* owned; NULL: walked */
};

struct deferred_samples {
        struct deferred_sample *items; /* owned */
        size_t count, capacity;
        size_t copied_bytes;             /* stack bytes in copies */
        struct sample_frames walk;       /* scratch */
        uint64_t ends[SAMPLE_END_COUNT]; /* of the samples taken */
        uint64_t lost;                   /* no memory, or past LIMIT_AGENT_DEFERRED */
};

void deferred_samples_deinit(struct deferred_samples *l);

/**
 * Walk the sample if its process and the mappings and tables of its frames are known, else store
 * a copy. Past LIMIT_AGENT_DEFERRED_BYTES, walk it with the tables available.
 */
void deferred_samples_add(struct deferred_samples *l, struct process_table *processes, const struct sample_key *key,
                          const struct sample_weight *weight, const struct stack_copy *from);

/** Walk the samples whose tables have become available. */
void deferred_samples_retry(struct deferred_samples *l, struct process_table *processes);

/**
 * Move the first samples to the counts and stacks of a batch, walking them with the tables
 * available.
 * @param samples  number that belongs to the batch; the rest arrived after its drain.
 * @return ST_NO_MEMORY: they are lost.
 */
enum status deferred_samples_take(struct deferred_samples *l, size_t samples, struct process_table *processes,
                                  struct sample_batch *b, struct error *err) MUST_CHECK;

#endif
