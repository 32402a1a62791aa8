/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_THREADS_WORK_THREADS_H
#define CAIRN_COMMON_THREADS_WORK_THREADS_H

/**
 * @file
 * Fork and join: the work of a query is shared by the calling thread and helper threads, as long as fewer helpers than
 * CPUs run in the process. If a helper cannot be started, the others do its part. With work_ranges it is a parallel
 * loop.
 *
 * Each thread has its own meter, which forwards checks to the query's meter. The first failure is the result; the other
 * threads end at their next check. Helpers reserve memory for the account of the calling thread.
 */
#include <stddef.h>

#include "common/error.h"
#include "common/threads/work_meter.h"

#define WORK_THREADS_MAX 16 /* per call */

struct work_share;

/** State of one of the threads while it works. */
struct work_thread {
        struct work_share *share;
        struct work_meter meter;
        size_t number; /* 0: the calling thread; always below `useful` of share_work() */
};

/**
 * Executed by each thread until no tasks are left; tasks are taken from the context, which all threads share. Threads
 * with high numbers may never run.
 */
typedef enum status shared_work(void *context, struct work_thread *t, struct error *err);

/** Useful number of concurrent threads: CPUs of the process, at most WORK_THREADS_MAX. */
size_t count_work_threads(void);

/**
 * @param meter   of the query: used under a lock during the call; afterwards it includes the rows and bytes of all
 *                threads; NULL: unlimited.
 * @param useful  maximum number of threads that helps; 0 counts as 1.
 */
enum status share_work(struct work_meter *meter, size_t useful, shared_work *work, void *context,
                       struct error *err) MUST_CHECK;

/** Held while a thread uses state of the query's meter, such as its regular expressions. */
void lock_query_meter(struct work_thread *t);
void unlock_query_meter(struct work_thread *t);

/** Tasks that are numbers: ascending ranges of [0, count), at most `step` long. */
struct work_ranges {
        _Atomic size_t next;
        size_t count, step;
};
/** Take the next range, from any thread. @return false: none is left. */
bool take_work_range(struct work_ranges *r, size_t *start_ret, size_t *end_ret);

#endif
