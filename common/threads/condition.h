/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_THREADS_CONDITION_H
#define CAIRN_COMMON_THREADS_CONDITION_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/**
 * Wait on a condition variable, with its mutex locked, until monotonic_ns() reaches until_ns. The monotonic clock is
 * used because the wall clock may be set while waiting. Wakeups may be spurious.
 * @return false on timeout.
 */
static inline bool condition_wait_until(pthread_cond_t *condition, pthread_mutex_t *lock, int64_t until_ns)
{
        const struct timespec until = { .tv_sec = until_ns / 1000000000, .tv_nsec = until_ns % 1000000000 };

        return pthread_cond_clockwait(condition, lock, CLOCK_MONOTONIC, &until) == 0;
}

#endif
