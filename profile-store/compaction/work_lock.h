/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_COMPACTION_WORK_LOCK_H
#define CAIRN_PROFILE_STORE_COMPACTION_WORK_LOCK_H

/**
 * @file
 * A fair (FIFO) lock for work that takes minutes. A waiter polls a callback that tells whether to go on waiting, so
 * that a shutdown does not wait for the work of others.
 *
 * Threads: any; the lock belongs to the thread that acquired it.
 */
#include <pthread.h>
#include <stdbool.h>

#define WORK_LOCK_POLL_MS 50 /* poll interval of a waiter */

struct work_waiter;

struct work_lock {
        pthread_mutex_t mutex;
        pthread_cond_t changed;
        struct work_waiter *first; /* oldest waiter; waiters are on the stacks of their threads */
        bool is_held;
};

void work_lock_init(struct work_lock *l);
void work_lock_deinit(struct work_lock *l);

/** @return false, without the lock, once may_wait(context) returns false. It is not called when the lock is free. */
bool work_lock_acquire(struct work_lock *l, bool (*may_wait)(void *context), void *context);
void work_lock_release(struct work_lock *l);

#endif
