/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_CLOCK_H
#define CAIRN_COMMON_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t clock_ns(clockid_t id)
{
        struct timespec ts;

        clock_gettime(id, &ts);
        return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/** Nanoseconds since 1970, UTC. */
static inline int64_t wall_clock_ns(void)
{
        return clock_ns(CLOCK_REALTIME);
}

/** Nanoseconds of the monotonic clock. */
static inline int64_t monotonic_ns(void)
{
        return clock_ns(CLOCK_MONOTONIC);
}

#endif
