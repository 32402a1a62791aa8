/* SPDX-License-Identifier: Apache-2.0 */
#include "common/condition.h"

#include <time.h>

bool condition_wait_until(pthread_cond_t *condition, pthread_mutex_t *lock, int64_t until_ns)
{
        const struct timespec until = { .tv_sec = until_ns / 1000000000, .tv_nsec = until_ns % 1000000000 };

        return pthread_cond_clockwait(condition, lock, CLOCK_MONOTONIC, &until) == 0;
}
