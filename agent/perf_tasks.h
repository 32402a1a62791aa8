/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_AGENT_PERF_TASKS_H
#define CAIRN_AGENT_PERF_TASKS_H

/**
 * @file
 * Which processes are followed by perf events, and getting hold of the others.
 *
 * A process is followed because its threads were opened here, or because it
 * inherited its parent's events. The second kind must not be opened: each of
 * its samples would come twice. Every record of a process tells that it is
 * followed, at that time; the record of its leader's exit that it is not from
 * then on. (The kernel also takes the events from a process that runs a
 * set-user-ID program, and says so by the same record.) A new process is found
 * by looking through /proc once a second, in three steps:
 *
 *   1. perf_tasks_list()   which processes are there
 *   2. all records that are in the buffers are read
 *   3. perf_tasks_follow() those of 1 that 2 did not tell of are opened
 *
 * so that one which was born followed is known to be by the third step. When
 * records were lost meanwhile, one whose parent is followed counts as followed.
 * Should both ways meet all the same, the record of its birth shows it, and
 * what was opened here is closed.
 *
 * The events that children inherited live as long as the descriptor of the
 * first one, so the descriptors of an ended process are kept until the kernel
 * says that nobody has such an event any more (POLLHUP).
 *
 * Threads: one thread at a time.
 */
#include <poll.h>
#include <stdbool.h>

#include "agent/id_table.h"
#include "agent/perf_event.h"
#include "agent/perf_threads.h"

struct perf_task {
        struct sample_process id; /* start_boot_ns is 0 until perf_tasks_identify() */
        uint64_t last_record_ns;
        uint64_t listed;          /* number of the list that had it last */
        uint64_t opened;          /* number of the list at which it was opened; 0: it was not */
        bool followed;
        bool refused;             /* it may not be opened */
        bool identified, kernel_thread;
        bool sampled, stale;      /* for the sampler: since its exec; its mappings changed since it was told of */
        int *fds;                 /* owned */
        size_t fd_count;
};

struct perf_tasks {
        struct perf_events *events;   /* borrowed */
        struct perf_threads *threads; /* borrowed */
        const uint32_t *tgids;        /* borrowed; only these */
        size_t tgid_count;            /* 0: all that may be opened */
        bool all_users;               /* those of others may be */
        struct perf_task *items;      /* owned */
        size_t count, capacity;
        struct id_table by_tgid;
        uint32_t *found;              /* owned; what the last list has and is not known */
        size_t found_count, found_capacity;
        uint64_t list;                /* number of the last list */
        struct pollfd *left;          /* owned; descriptors of ended processes */
        size_t left_count, left_capacity;
        uint64_t refused;             /* processes that could not be opened, all in all */
        bool full;                    /* there was no descriptor left for some */
};

void perf_tasks_init(struct perf_tasks *t, struct perf_events *events, struct perf_threads *threads);
void perf_tasks_deinit(struct perf_tasks *t);

/** Step 1. Processes that are gone are forgotten. */
enum status perf_tasks_list(struct perf_tasks *t, struct error *err) MUST_CHECK;

/**
 * Step 3.
 * @param lost  records were lost since the last time.
 * @return ST_OK, also when processes could not be opened; with tgids, the reason why the first could not.
 */
enum status perf_tasks_follow(struct perf_tasks *t, bool lost, struct error *err) MUST_CHECK;

/**
 * Learn from a record.
 * @return the process it is about, borrowed until the next call; NULL without room, or when there is none.
 */
struct perf_task *perf_tasks_record(struct perf_tasks *t, const struct perf_record *r);

/** Find out when the process started, once for each life. */
void perf_tasks_identify(struct perf_task *task);

/** Let no more samples come; what inherited the events stops too. */
void perf_tasks_stop(struct perf_tasks *t);

#endif
