/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_AGENT_SAMPLER_H
#define CAIRN_AGENT_SAMPLER_H

/**
 * @file
 * Counting the stacks that run, and taking the counts out once an interval.
 *
 * There are two ways. With BPF the kernel takes stacks: on every CPU, of all
 * processes, both halves. Without the rights for that, perf events of the
 * processes of this user write each stack into buffers (agent/perf_tasks.h tells
 * how processes are found). Both are counted here, and what comes out is the same.
 *
 * Threads: one sampler belongs to one thread.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/sample.h"
#include "common/cleanup.h"
#include "common/error.h"

struct sampler;
struct unwind_map_fds;

enum sampler_kind { SAMPLER_AUTO, SAMPLER_BPF, SAMPLER_PERF };

/** Totals since the start: those of the BPF program, and what only perf events have. */
enum sampler_stat {
        SAMPLER_STAT_REFUSED = STAT_COUNT, /* processes that could not be opened */
        SAMPLER_STAT_COUNT,
};

struct sampler_options {
        enum sampler_kind kind;
        uint64_t frequency_hz;       /* ticks a second on each CPU */
        uint64_t interval_s;         /* longest time between two drains; sizes the buffers */
        const uint32_t *tgids;       /* only these processes; borrowed during the call */
        size_t tgid_count;           /* 0: the whole system */
        bool copy_stacks;            /* where the kernel cannot walk by tables: hand user stacks over as late samples */
        bool children;               /* with tgids: also the processes that they start from now on, and so on */
        bool excludes;               /* sampler_exclude() will be called */
        /** Called from sampler_poll() and sampler_drain() once for each new life of a process. */
        void (*on_process)(void *ctx, const struct sample_notice *notice);
        /** Called from sampler_poll() and sampler_drain() for each sample whose user stack was not walked; borrowed. */
        void (*on_late)(void *ctx, const struct sample_key *key, const struct sample_late *late);
        void *ctx;
};

struct sample_count {
        struct sample_key key;
        uint64_t count;
};

/** One half of a stack on its way into a batch. */
struct sample_walk {
        uint32_t frame_count;
        uint32_t end; /* enum sample_end */
        uint64_t frames[SAMPLE_STACK_MAX]; /* leaf first; SAMPLE_FRAME_EXACT may be set in a user frame */
};

struct sample_stack {
        uint64_t hash;
        size_t first_frame; /* of the batch's frames */
        uint32_t frame_count;
        uint32_t end;
};

/** All that one interval counted. Stacks are sorted by hash. */
struct sample_batch {
        struct sample_count *counts; /* owned */
        size_t count_count;
        struct sample_stack *stacks; /* owned */
        size_t stack_count;
        uint64_t *frames;            /* owned */
        size_t frame_count;
};

void sample_batch_deinit(struct sample_batch *b);
#define _cleanup_sample_batch_ _cleanup_(sample_batch_deinit)

/** Bring the stacks into the order that sample_batch_stack() wants. */
void sample_batch_sort(struct sample_batch *b);

/** The stack with that hash, borrowed from the batch; NULL when there is none (hash 0 too). */
const struct sample_stack *sample_batch_stack(const struct sample_batch *b, uint64_t hash);

/**
 * Start sampling. SAMPLER_AUTO takes BPF, or else perf events.
 * @param ret  owned, free with sampler_destroy(); untouched on failure.
 * @return ST_OK; ST_OS with the step that the kernel refused: of perf events when both were tried.
 */
enum status sampler_create(const struct sampler_options *o, struct sampler **ret, struct error *err) MUST_CHECK;
void sampler_destroy(struct sampler *s);

/** "bpf" or "perf". */
const char *sampler_name(const struct sampler *s);
enum sampler_kind sampler_kind(const struct sampler *s);

/** "auto", "bpf" or "perf". */
enum status sampler_kind_parse(const char *name, enum sampler_kind *ret) MUST_CHECK;

/** Why SAMPLER_AUTO did not take BPF; "" when it did or was not asked to. */
const char *sampler_why(const struct sampler *s);

/** What is not covered, "" when nothing is left out: "other users' processes, time in the kernel". */
const char *sampler_gaps(const struct sampler *s);

/** Are there kernel stacks? */
bool sampler_has_kernel(const struct sampler *s);

/** A descriptor that becomes readable when sampler_poll() has something to do. */
int sampler_fd(const struct sampler *s);

/** Do what is due: hand over the processes that were noticed, for one. Does not wait. */
void sampler_poll(struct sampler *s);

/**
 * Take no more samples of this life of a process, as far as that can be had: perf events go on. It may be forgotten
 * again when there are very many.
 */
void sampler_exclude(struct sampler *s, const struct sample_process *id);

/** Stop taking samples: what was counted can still be drained. */
void sampler_stop(struct sampler *s);

/**
 * Take all that was counted since the last time.
 * @param ret  owned, free with sample_batch_deinit(); untouched on failure.
 */
enum status sampler_drain(struct sampler *s, struct sample_batch *ret, struct error *err) MUST_CHECK;

enum status sampler_stats(struct sampler *s, uint64_t ret[static SAMPLER_STAT_COUNT], struct error *err) MUST_CHECK;

/** The maps of the unwinding program; NULL when there is none. Borrowed until sampler_destroy(). */
const struct unwind_map_fds *sampler_unwind_maps(const struct sampler *s);

/** Are user stacks handed over as copies, all of them? They take an unwinder without maps. */
bool sampler_copies_stacks(const struct sampler *s);

unsigned sampler_cpu_count(const struct sampler *s);

#endif
