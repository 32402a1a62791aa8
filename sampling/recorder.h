/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_RECORDER_H
#define CAIRN_SAMPLING_RECORDER_H

/**
 * @file
 * From running processes to profiles: owns the sampler, the process
 * table, the unwinder and the deferred samples. Shared by the agent and `cairn
 * record`, which differ only in what they do with a profile.
 *
 * The owner polls recorder_get_fds(), calls recorder_poll(), takes a profile
 * once per interval, and one more after recorder_stop().
 *
 * Threads: one thread at a time.
 */
#include <poll.h>

#include "sampling/deferred_samples.h"
#include "sampling/profile_build.h"

struct recorder_options {
        enum sampler_kind sampler;
        uint64_t frequency_hz;
        uint64_t interval_s;         /* longest time between two profiles */
        const uint32_t *pids;        /* borrowed during the start */
        size_t pid_count;            /* 0: all processes */
        bool children;               /* sample the processes that they start too */
        bool reads_python;           /* name the frames of Python programs; with BPF only */
        bool reads_v8;               /* likewise of Node.js */
        bool reads_hotspot;          /* likewise of Java */
        bool reads_context;          /* label samples by the contexts of processes and, with BPF, of threads */
        bool omits_files;            /* leave out paths of the source files of runtimes */
        bool omits_container_names;  /* do not read the state of container engines */
        uint64_t off_cpu_ns;         /* also sample waits: one sample for about this time; 0: do not */
        bool latency;                /* also measure latency: CPU time over running threads; with BPF only */
        bool copy_stacks;            /* without BPF: copy user stacks, to walk them with unwind tables */
        struct label_options labels; /* lists are borrowed until the end */
        struct process_filter filter;
        struct fork_server *fork_server;   /* for workers; borrowed until the end; NULL: each worker is a new program */
        const struct relabel_rules *rules; /* for labels of samples; borrowed until the end; NULL: none */
        object_observer *on_object;        /* NULL: none */
        void *on_object_ctx;
};

struct recorder {
        struct recorder_options options;
        struct labels labels;
        struct pod_cache *pods; /* borrowed; NULL: none */
        struct process_table processes;
        struct container_cache containers;
        struct sample_process *lives; /* owned; the processes that had the pids at the start */
        struct kernel kernel;
        char kernel_gap[240]; /* why kernel frames have no addresses; "" */
        struct sampler *sampler;
        struct unwinder unwinder;
        struct deferred_samples deferred;
        struct profile_build_stats build_stats;
        size_t named_count;            /* of the keys of the interval: their code was named */
        int64_t from_ns, from_unix_ns; /* start of the interval: monotonic, wall clock */
};

/** Start sampling. @param r  must not be moved afterwards; recorder_deinit() in any case. */
enum status recorder_start(struct recorder *r, const struct recorder_options *o, struct error *err) MUST_CHECK;
void recorder_deinit(struct recorder *r);

/**
 * Request the unwind tables of a running process, so that its first samples have whole stacks. Samples taken meanwhile
 * are better discarded, since tables of busy processes are built while the sampler runs.
 */
void recorder_prepare_process(struct recorder *r, uint32_t pid);

/** Whether unwind tables are being built: poll the descriptors until they are ready. */
bool recorder_is_building(const struct recorder *r);

/** Label samples by pods from now on. @param pods  borrowed until recorder_deinit(). */
void recorder_use_pods(struct recorder *r, struct pod_cache *pods);

/** Descriptors to poll; may be -1. */
#define RECORDER_FDS 2
void recorder_get_fds(const struct recorder *r, struct pollfd ret[static RECORDER_FDS]);

/** Handle the descriptors that are ready. Does not wait. */
void recorder_poll(struct recorder *r, const struct pollfd fds[static RECORDER_FDS]);

#define RECORDER_NAMES_MS 1000

/**
 * Name the code of Python and Java in the samples since the last call, before the process ends or frees it. Call it
 * every RECORDER_NAMES_MS. @return whether there is such a process: else it need not be called again before a profile
 * is taken.
 */
bool recorder_name_code(struct recorder *r);

/** Stop sampling; samples counted so far can still be taken. */
void recorder_stop(struct recorder *r);

/**
 * All samples since the last call. Waits at most two seconds for unwind tables that are being
 * built.
 * @param ret  initialized here; profile_deinit() it on success only.
 */
enum status recorder_take_profile(struct recorder *r, struct profile *ret, struct error *err) MUST_CHECK;

/** Totals since the start: sampler_get_stats(), plus the deferred samples. */
enum status recorder_get_stats(struct recorder *r, uint64_t ret[static SAMPLER_STAT_COUNT],
                               struct error *err) MUST_CHECK;

#endif
