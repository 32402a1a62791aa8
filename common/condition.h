/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_CONDITION_H
#define CAIRN_COMMON_CONDITION_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/**
 * Wait on a condition, its lock held, at most until monotonic_ns() is until_ns: the wall clock may be set meanwhile.
 * As any wait it may return early for no reason.
 * @return false when the time has come.
 */
bool condition_wait_until(pthread_cond_t *condition, pthread_mutex_t *lock, int64_t until_ns);

#endif
