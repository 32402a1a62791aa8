/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_AGENT_PERF_THREADS_H
#define CAIRN_AGENT_PERF_THREADS_H

/**
 * @file
 * The names of threads that have a perf event: told by records, or else read
 * from /proc at the first sample.
 *
 * At most LIMIT_AGENT_THREADS are remembered; others are read each time.
 * Threads: one thread at a time.
 */
#include <stdbool.h>

#include "agent/id_table.h"
#include "agent/perf_record.h"

struct perf_thread {
        uint32_t tid, tgid;
        char comm[SAMPLE_COMM_SIZE];
        bool named, ended;
};

struct perf_threads {
        struct perf_thread *items; /* owned */
        size_t count, capacity;
        struct id_table by_tid;
};

void perf_threads_deinit(struct perf_threads *t);

/** This thread has an event. */
void perf_threads_add(struct perf_threads *t, uint32_t tid, uint32_t tgid);
bool perf_threads_has(const struct perf_threads *t, uint32_t tid);

/** Learn from a record of a fork, an exit or a name. */
void perf_threads_record(struct perf_threads *t, const struct perf_record *r);

/** The name of a sampled thread, "" when it is not known any more. */
void perf_threads_name(struct perf_threads *t, uint32_t tid, uint32_t tgid, char ret[static SAMPLE_COMM_SIZE]);

/** Forget those that ended, and those of a process that keep() does not know. */
void perf_threads_clean(struct perf_threads *t, bool (*keep)(const void *ctx, uint32_t tgid), const void *ctx);

#endif
