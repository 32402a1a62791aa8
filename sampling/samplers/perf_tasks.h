/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_SAMPLERS_PERF_TASKS_H
#define CAIRN_SAMPLING_SAMPLERS_PERF_TASKS_H

/**
 * @file
 * Tracks the processes and threads that have perf events, and opens
 * events for the others.
 *
 * A process is tracked because this module opened its threads, or because it
 * inherited its parent's events. The latter must not be opened: each sample
 * would arrive twice. Every record of a process shows that it has events at
 * that time; the record of its leader's exit shows that it has none from then
 * on. (The kernel also removes the events of a process that runs a set-user-ID
 * program, and emits the same record.) New processes are found by scanning
 * /proc once a second, in three steps:
 *
 * 1. perf_tasks_scan() lists the processes
 * 2. all records in the buffers are read
 * 3. perf_tasks_open_new() opens the processes of step 1 without records in
 *    step 2
 *
 * so a process that inherited events is known to have them by step 3. If
 * records were lost, a process whose parent is tracked counts as tracked. If a
 * process was opened although it inherited events, the record of its fork
 * reveals that, and the events opened by this module are closed.
 *
 * Inherited events live as long as the descriptor of the first one, so
 * descriptors of an exited process are kept until no event uses them any more
 * (POLLHUP).
 *
 * Thread names come from records, else from /proc at the first sample. At most
 * LIMIT_AGENT_THREADS are cached; others are read each time.
 *
 * Threads: one thread at a time.
 */
#include <poll.h>
#include <stdbool.h>

#include "common/hash/id_table.h"
#include "sampling/samplers/perf_event.h"
#include "sampling/samplers/perf_record.h"

/* ---- threads ---- */

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

/** Update from a fork, exit, comm or exec record. */
void perf_threads_handle_record(struct perf_threads *t, const struct perf_record *r);

/** The name of a sampled thread, "" when it is unknown. */
void perf_threads_get_name(struct perf_threads *t, uint32_t tid, uint32_t tgid, char ret[static SAMPLE_COMM_SIZE]);

struct perf_task {
        struct sample_process id; /* start_boot_ns is 0 until perf_task_identify() */
        uint64_t last_record_ns;
        uint64_t listed; /* number of the last scan that found it */
        uint64_t opened; /* number of the scan at which it was opened; 0: never */
        bool has_events;
        bool refused; /* the kernel refused to open events for it */
        bool identified, kernel_thread;
        bool sampled, stale; /* since its exec: sampled; mappings changed since the last notice */
        int *fds;            /* owned */
        size_t fd_count, fd_capacity;
};

struct perf_tasks {
        struct perf_events *events;   /* borrowed */
        struct perf_threads *threads; /* borrowed */
        const uint32_t *tgids;        /* borrowed; sample only these processes */
        size_t tgid_count;            /* 0: all that may be opened */
        bool all_users;               /* processes of other users may be opened */
        struct perf_task *items;      /* owned */
        size_t count, capacity;
        struct id_table by_tgid;
        uint32_t *found; /* owned; untracked processes of the last scan */
        size_t found_count, found_capacity;
        uint64_t scan;       /* number of the last scan */
        struct pollfd *left; /* owned; descriptors of exited processes */
        size_t left_count, left_capacity;
        uint64_t refused; /* total of processes that could not be opened */
        bool full;        /* the descriptor limit was reached */
};

void perf_tasks_init(struct perf_tasks *t, struct perf_events *events, struct perf_threads *threads);
void perf_tasks_deinit(struct perf_tasks *t);

/** Step 1. Also forgets exited processes. */
enum status perf_tasks_scan(struct perf_tasks *t, struct error *err) MUST_CHECK;

/**
 * Step 3.
 * @param lost  records were lost since the last call.
 * @return ST_OK, also when processes could not be opened; with tgids, the error of the first
 *         failure.
 */
enum status perf_tasks_open_new(struct perf_tasks *t, bool lost, struct error *err) MUST_CHECK;

/**
 * Update from a record.
 * @return its process, borrowed until the next call; NULL at the limit, or when there is none.
 */
struct perf_task *perf_tasks_handle_record(struct perf_tasks *t, const struct perf_record *r);

/** Look up the start time of the process, once per life. */
void perf_task_identify(struct perf_task *task);

/** Disable all events, inherited ones included. */
void perf_tasks_stop(struct perf_tasks *t);

#endif
