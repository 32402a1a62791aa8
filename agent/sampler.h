/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_AGENT_SAMPLER_H
#define CAIRN_AGENT_SAMPLER_H

/**
 * @file
 * The BPF program on every CPU's clock, and the emptying of its double buffer.
 *
 * Threads: one sampler belongs to one thread.
 */
#include <stddef.h>
#include <stdint.h>

#include "bpf/sample.h"
#include "common/cleanup.h"
#include "common/error.h"

struct sampler;

struct sampler_options {
        uint64_t frequency_hz;       /* ticks a second on each CPU */
        uint64_t interval_s;         /* longest time between two drains; sizes the maps */
        const uint32_t *tgids;       /* only these processes; borrowed during the call */
        size_t tgid_count;           /* 0: the whole system */
        /** Called from sampler_poll() once for each new life of a process. */
        void (*on_process)(void *ctx, const struct sample_notice *notice);
        void *ctx;
};

/** All that one interval counted. Stacks are sorted by hash. */
struct sample_count {
        struct sample_key key;
        uint64_t count;
};

struct sample_stack_entry {
        uint64_t hash;
        struct sample_stack stack;
};

struct sample_batch {
        struct sample_count *counts; /* owned */
        size_t count_count;
        struct sample_stack_entry *stacks; /* owned */
        size_t stack_count;
};

void sample_batch_deinit(struct sample_batch *b);
#define _cleanup_sample_batch_ _cleanup_(sample_batch_deinit)

/** The stack with that hash, borrowed from the batch; NULL when there is none (hash 0 too). */
const struct sample_stack *sample_batch_stack(const struct sample_batch *b, uint64_t hash);

/**
 * Load the program and attach it to all CPUs that are online.
 * @param ret  owned, free with sampler_destroy(); untouched on failure.
 * @return ST_OK; ST_OS with the step that the kernel refused.
 */
enum status sampler_create(const struct sampler_options *o, struct sampler **ret, struct error *err) MUST_CHECK;
void sampler_destroy(struct sampler *s);

/** A descriptor that becomes readable when sampler_poll() has something to do. */
int sampler_fd(const struct sampler *s);

/** Hand over the processes that were noticed; does not wait. */
void sampler_poll(struct sampler *s);

/** Stop taking samples: what was counted can still be drained. */
void sampler_stop(struct sampler *s);

/**
 * Turn the double buffer over and take all of the half that was filled.
 * @param ret  owned, free with sample_batch_deinit(); untouched on failure.
 */
enum status sampler_drain(struct sampler *s, struct sample_batch *ret, struct error *err) MUST_CHECK;

/** Totals over all CPUs since the start. */
enum status sampler_stats(struct sampler *s, uint64_t ret[static STAT_COUNT], struct error *err) MUST_CHECK;

unsigned sampler_cpu_count(const struct sampler *s);

#endif
