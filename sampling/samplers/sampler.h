/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_SAMPLERS_SAMPLER_H
#define CAIRN_SAMPLING_SAMPLERS_SAMPLER_H

/**
 * @file
 * Samples running stacks, and hands over the counts once per interval.
 *
 * There are three implementations. With BPF the kernel captures stacks on every
 * CPU, of all processes, user and kernel. Without the privileges for that,
 * perf events of this user's processes write each stack to ring buffers
 * (sampling/samplers/perf_tasks.h describes how processes are found). A process
 * that samples itself needs only signals. All produce the same output.
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

enum sampler_kind {
        SAMPLER_AUTO,
        SAMPLER_BPF,
        SAMPLER_PERF,
        SAMPLER_SIGNAL, /* samples its own process, by timers of its threads; one sampler at a time */
};

/** Totals since the start: enum sample_stat, and one of perf events and signals only. */
enum sampler_stat {
        SAMPLER_STAT_REFUSED = STAT_COUNT, /* processes that could not be opened; of signals, threads without a timer */
        SAMPLER_STAT_COUNT,
};

struct sampler_options {
        enum sampler_kind kind;
        uint64_t frequency_hz; /* ticks per second on each CPU */
        uint64_t interval_s;   /* longest time between two drains; sizes the buffers */
        const uint32_t *tgids; /* only these processes; borrowed during the call */
        size_t tgid_count;     /* 0: the whole system */
        bool copy_stacks;      /* where the kernel cannot walk by tables: deliver user stacks as deferred samples */
        bool children;         /* with tgids: also the processes that they start from now on, recursively */
        bool excludes;         /* sampler_exclude() will be called */
        uint64_t off_cpu_ns;   /* also sample waits: one sample for about this time; 0: do not. With BPF only */
        bool latency;          /* count the running threads of each sample's process. With BPF only */
        /** Called from sampler_poll() and sampler_drain() for each new life of a process. */
        void (*on_process)(void *ctx, const struct sample_notice *notice);
        /**
         * Called from sampler_poll() and sampler_drain() for each sample whose user
         * stack was not walked; borrowed.
         */
        void (*on_deferred)(void *ctx, const struct sample_key *key, const struct sample_weight *weight,
                            const struct stack_copy *copy);
        void *ctx;
};

struct sample_count {
        struct sample_key key;
        uint64_t count;   /* ticks; with SAMPLE_OFF_CPU nanoseconds */
        uint64_t latency; /* sum of the ticks' shares, each SAMPLE_LATENCY_WHOLE / running threads; 0: not measured */
};

#define SAMPLE_LATENCY_WHOLE 720720000 /* a multiple of 1 to 16 */

/** Split a sample into its counts: one of CPU time, up to two of a wait. Returns their number. */
#define SAMPLE_COUNTS_MAX 2
unsigned sample_split(const struct sample_key *key, const struct sample_weight *weight,
                      struct sample_count ret[static SAMPLE_COUNTS_MAX]);

/** Frames of one half of a stack, as words of enum sample_frame_kind; the counts below are of words too. */
struct sample_frames {
        uint32_t frame_count;
        uint32_t end;                      /* enum sample_end */
        uint64_t frames[SAMPLE_STACK_MAX]; /* leaf first */
};

struct sample_stack {
        uint64_t number;
        size_t first_frame; /* index into the batch's frames */
        uint32_t frame_count;
        uint32_t end;
};

/** The counts of one interval. Stacks, and contexts as if they were stacks, are sorted by number. */
struct sample_batch {
        struct sample_count *counts; /* owned */
        size_t count_count;
        struct sample_stack *stacks; /* owned */
        size_t stack_count;
        uint64_t *frames; /* owned */
        size_t frame_count;
};

void sample_batch_deinit(struct sample_batch *b);
#define _cleanup_sample_batch_ _cleanup_(sample_batch_deinit)

/** Sort the stacks for sample_batch_find_stack(). */
void sample_batch_sort(struct sample_batch *b);

/** The stack with that number, borrowed from the batch; NULL when there is none (number 0 too). */
const struct sample_stack *sample_batch_find_stack(const struct sample_batch *b, uint64_t number);

/**
 * Start sampling. SAMPLER_AUTO tries BPF, then perf events; with off_cpu_ns or latency only BPF.
 * @param ret  owned, free with sampler_destroy(); untouched on failure.
 * @return ST_OK; ST_OS with the step that the kernel refused; that of perf events when both were
 *         tried.
 */
enum status sampler_create(const struct sampler_options *o, struct sampler **ret, struct error *err) MUST_CHECK;
void sampler_destroy(struct sampler *s);

/** "bpf", "perf" or "signal". */
const char *sampler_name(const struct sampler *s);
enum sampler_kind sampler_get_kind(const struct sampler *s);

/** "auto", "bpf" or "perf". */
enum status sampler_kind_parse(const char *name, enum sampler_kind *ret) MUST_CHECK;

/** Why SAMPLER_AUTO did not use BPF; "" when it did or was not requested. */
const char *sampler_fallback_reason(const struct sampler *s);

/** What is not sampled, such as "other users' processes, time in the kernel"; "" when everything is. */
const char *sampler_coverage_gaps(const struct sampler *s);

/** Whether there are kernel stacks. */
bool sampler_has_kernel(const struct sampler *s);

/** A descriptor that is readable when sampler_poll() has work. */
int sampler_fd(const struct sampler *s);

/** Process pending work, such as new processes. Does not wait. */
void sampler_poll(struct sampler *s);

/**
 * Stop sampling this life of a process, where supported: perf events continue. The exclusion may
 * be forgotten when there are very many.
 */
void sampler_exclude(struct sampler *s, const struct sample_process *id);

/** Stop sampling: counts so far can still be drained. */
void sampler_stop(struct sampler *s);

/**
 * The counts since the last drain, which grow at the end; the number of a stack is its index plus one. NULL:
 * unsupported. Borrowed until the next call.
 */
const struct sample_batch *sampler_peek(const struct sampler *s);

/**
 * Take all counts since the last call.
 * @param ret  owned, free with sample_batch_deinit(); untouched on failure.
 */
enum status sampler_drain(struct sampler *s, struct sample_batch *ret, struct error *err) MUST_CHECK;

enum status sampler_get_stats(struct sampler *s, uint64_t ret[static SAMPLER_STAT_COUNT], struct error *err) MUST_CHECK;

/** The maps of the unwinding program; NULL when there is none. Borrowed until sampler_destroy(). */
const struct unwind_map_fds *sampler_unwind_maps(const struct sampler *s);

/** Whether all user stacks are delivered as copies, for an unwinder without BPF maps. */
bool sampler_copies_stacks(const struct sampler *s);

unsigned sampler_cpu_count(const struct sampler *s);

#endif
