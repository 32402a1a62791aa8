/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_WORK_THREADS_H
#define CAIRN_COMMON_WORK_THREADS_H

/**
 * @file
 * Fork and join: work of a query that several threads share, the calling one, and helpers while fewer than one a CPU
 * run in the process. A helper that cannot be started leaves its part to the others. work_ranges make it a parallel
 * loop.
 *
 * Each thread has a meter of its own, whose checks are those of the query's. The first failure is the result; the other
 * threads end at their next check. Helpers reserve memory for the account of the calling thread.
 */
#include <stddef.h>

#include "common/error.h"
#include "common/work_meter.h"

#define WORK_THREADS_MAX 16 /* of one call */

struct work_share;

/** One of the threads, while it works. */
struct work_thread {
        struct work_share *share;
        struct work_meter meter;
        size_t number; /* 0: the calling thread; below the `useful` of share_work() */
};

/**
 * What each thread does until nothing is left; it takes its tasks from the context, which all threads share. Threads
 * with high numbers may never run.
 */
typedef enum status shared_work(void *context, struct work_thread *t, struct error *err);

/** How many threads can work at once: CPUs of the process, at most WORK_THREADS_MAX. */
size_t count_work_threads(void);

/**
 * @param meter   of the query: used under a lock meanwhile, and afterwards has the rows and bytes of all threads; NULL:
 *                unlimited.
 * @param useful  threads that pay; 0 is 1.
 */
enum status share_work(struct work_meter *meter, size_t useful, shared_work *work, void *context,
                       struct error *err) MUST_CHECK;

/** While a thread uses what belongs to the query's meter, such as its regular expressions. */
void lock_query_meter(struct work_thread *t);
void unlock_query_meter(struct work_thread *t);

/** Tasks that are numbers: ranges of [0, count) in rising order, at most `step` long. */
struct work_ranges {
        _Atomic size_t next;
        size_t count, step;
};
/** The next range of any thread. @return false: there is none left. */
bool take_work_range(struct work_ranges *r, size_t *start_ret, size_t *end_ret);

#endif
