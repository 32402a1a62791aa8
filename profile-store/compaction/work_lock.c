/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-store/compaction/work_lock.h"

#include <assert.h>
#include <stddef.h>

#include "common/clock.h"
#include "common/threads/condition.h"

struct work_waiter {
        struct work_waiter *next;
};

void work_lock_init(struct work_lock *l)
{
        *l = (struct work_lock){ 0 };
        pthread_mutex_init(&l->mutex, NULL);
        pthread_cond_init(&l->changed, NULL);
}

void work_lock_deinit(struct work_lock *l)
{
        assert(!l->is_held && !l->first);
        pthread_cond_destroy(&l->changed);
        pthread_mutex_destroy(&l->mutex);
}

static struct work_waiter **find_waiter_link(struct work_lock *l, const struct work_waiter *w)
{
        struct work_waiter **link = &l->first;

        while (*link != w)
                link = &(*link)->next;
        return link;
}

bool work_lock_acquire(struct work_lock *l, bool (*may_wait)(void *context), void *context)
{
        struct work_waiter me = { 0 };
        bool waits = true;

        pthread_mutex_lock(&l->mutex);
        *find_waiter_link(l, NULL) = &me;
        while (waits && (l->is_held || l->first != &me)) {
                pthread_mutex_unlock(&l->mutex);
                waits = may_wait(context); /* called without the mutex: it may take other locks */
                pthread_mutex_lock(&l->mutex);
                if (waits && (l->is_held || l->first != &me))
                        condition_wait_until(&l->changed, &l->mutex,
                                             monotonic_ns() + INT64_C(1000000) * WORK_LOCK_POLL_MS);
        }
        *find_waiter_link(l, &me) = me.next;
        l->is_held |= waits;
        if (!waits)
                pthread_cond_broadcast(&l->changed); /* wakes the next waiter if this was the first */
        pthread_mutex_unlock(&l->mutex);
        return waits;
}

void work_lock_release(struct work_lock *l)
{
        pthread_mutex_lock(&l->mutex);
        assert(l->is_held);
        l->is_held = false;
        pthread_cond_broadcast(&l->changed);
        pthread_mutex_unlock(&l->mutex);
}
