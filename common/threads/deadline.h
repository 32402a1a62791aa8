/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_THREADS_DEADLINE_H
#define CAIRN_COMMON_THREADS_DEADLINE_H

/**
 * @file
 * Deadline and cancellation of one piece of work, a request for example.
 *
 * Long loops call deadline_expired() every few thousand steps and return
 * deadline_check()'s error. NULL is a deadline that never expires, so that
 * callers without one (commands, tests) pass NULL.
 *
 * Threads: any number may check one deadline; any may set *cancelled. The
 * other fields do not change while it is in use.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/clock.h"
#include "common/error.h"

struct deadline {
        int64_t expires_ns;           /* monotonic_ns(); INT64_MAX: never */
        uint64_t timeout_s;           /* the configured value, for the error text; 0: unspecified */
        const atomic_bool *cancelled; /* true: cancelled. NULL: cannot be cancelled. Borrowed */
};

/** Whether to stop: the deadline has passed or the work was cancelled. Costs about 30 ns. */
static inline bool deadline_expired(const struct deadline *d)
{
        return d && ((d->cancelled && atomic_load_explicit(d->cancelled, memory_order_relaxed)) ||
                     (d->expires_ns != INT64_MAX && monotonic_ns() >= d->expires_ns));
}

/** @return ST_OK, or ST_TIMEOUT with a text that distinguishes timeout and cancellation. */
enum status deadline_check(const struct deadline *d, struct error *err) MUST_CHECK;

#endif
