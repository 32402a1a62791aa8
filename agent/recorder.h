/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_AGENT_RECORDER_H
#define CAIRN_AGENT_RECORDER_H

/**
 * @file
 * From running processes to profiles: the sampler, what is known of the
 * processes, their unwind tables, and what came late, tied together. The agent
 * and `cairn record` differ only in what they do with a profile.
 *
 * The owner waits for recorder_fds() and calls recorder_poll(), takes a profile
 * once an interval, and after recorder_stop() one more.
 *
 * Threads: one thread at a time.
 */
#include <poll.h>

#include "agent/late.h"
#include "agent/profile_build.h"

struct recorder_options {
        enum sampler_kind sampler;
        uint64_t frequency_hz;
        uint64_t interval_s;        /* longest time between two profiles */
        const uint32_t *pids;       /* borrowed during the start; none: the whole system */
        size_t pid_count;
        bool children;              /* also those that they start */
        bool copy_stacks;           /* without BPF: walk user stacks by tables all the same, at the cost of copying them */
        struct label_choice labels; /* these borrow until the end */
        struct selection selection;
        struct nursery *nursery;    /* of workers; borrowed until the end; NULL: each is a program that is started */
        object_observer *on_object; /* NULL none */
        void *on_object_ctx;
};

struct recorder {
        struct recorder_options options;
        struct labels labels;
        struct process_table processes;
        struct sample_process *lives; /* owned; of the pids, at the start */
        struct kernel kernel;
        char kernel_gap[240]; /* why kernel frames have no addresses; "" */
        struct sampler *sampler;
        struct unwinder unwinder;
        struct late_samples late;
        struct profile_build_stats build_stats;
        int64_t from_ns, from_unix_ns; /* start of the interval: monotonic, wall clock */
};

/**
 * Start sampling.
 * @param r  to be left where it is; recorder_deinit() in any case.
 */
enum status recorder_start(struct recorder *r, const struct recorder_options *o, struct error *err) MUST_CHECK;
void recorder_deinit(struct recorder *r);

/** What to wait for; descriptors may be -1. */
#define RECORDER_FDS 2
void recorder_fds(const struct recorder *r, struct pollfd ret[static RECORDER_FDS]);

/** Do what they are ready for. Does not wait. */
void recorder_poll(struct recorder *r, const struct pollfd fds[static RECORDER_FDS]);

/** Take no more samples: what was counted can still be taken. */
void recorder_stop(struct recorder *r);

/**
 * All that was counted since the last time. Waits two seconds at most, for unwind tables that are being made.
 * @param ret  initialised here; profile_deinit() it on success only.
 */
enum status recorder_take(struct recorder *r, struct profile *ret, struct error *err) MUST_CHECK;

/** Totals since the start: as sampler_stats(), with what was walked late. */
enum status recorder_stats(struct recorder *r, uint64_t ret[static SAMPLER_STAT_COUNT], struct error *err) MUST_CHECK;

#endif
