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

/** Walk one. @param p its process. */
void late_walk(const struct unwinder *u, const struct process *p, const struct sample_late *late,
               struct sample_walk *ret);

/**
 * Walk all late samples of a batch and put them into its counts and stacks.
 * @param ends_ret counted up, by their end.
 * @return ST_NO_MEMORY: the batch is as it was, or has some of them.
 */
enum status late_add(struct process_table *processes, struct sample_batch *b, uint64_t ends_ret[static SAMPLE_END_COUNT],
                     struct error *err) MUST_CHECK;

#endif
