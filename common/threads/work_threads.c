/* SPDX-License-Identifier: Apache-2.0 */
#include "common/threads/work_threads.h"

#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/prctl.h>

#include "common/memory/memory_budget.h"

struct work_share {
        shared_work *work;
        void *context;
        struct memory_account *account; /* of the calling thread; may be NULL */
        struct work_meter *meter;       /* of the query; NULL: unlimited */
        pthread_mutex_t meter_lock;
        pthread_mutex_t lock; /* protects the failure */
        enum status failed;
        struct error error;
        _Atomic bool ended; /* a thread failed */
};

static _Atomic size_t helper_count; /* helpers in the whole process */

size_t count_work_threads(void)
{
        cpu_set_t cpus;
        int count = sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) : 1;

        return count < WORK_THREADS_MAX ? (size_t)(count > 1 ? count : 1) : WORK_THREADS_MAX;
}

void lock_query_meter(struct work_thread *t)
{
        pthread_mutex_lock(&t->share->meter_lock);
}

void unlock_query_meter(struct work_thread *t)
{
        pthread_mutex_unlock(&t->share->meter_lock);
}

static enum status check_query_meter(void *context, struct error *err)
{
        struct work_share *s = context;
        enum status st;

        if (atomic_load_explicit(&s->ended, memory_order_relaxed))
                return error_set(err, ST_TIMEOUT, "another thread of the query failed");
        pthread_mutex_lock(&s->meter_lock);
        st = work_meter_check(s->meter, err);
        pthread_mutex_unlock(&s->meter_lock);
        return st;
}

static void run_work_thread(struct work_thread *t)
{
        struct work_share *s = t->share;
        struct error err = { 0 };
        enum status st = s->work(s->context, t, &err);

        if (!st)
                return;
        pthread_mutex_lock(&s->lock);
        if (!s->failed) {
                s->failed = st;
                s->error = err;
        }
        atomic_store(&s->ended, true);
        pthread_mutex_unlock(&s->lock);
}

static void *run_helper(void *context)
{
        struct work_thread *t = context;

        prctl(PR_SET_NAME, "cairn-helper");
        memory_set_account(t->share->account);
        run_work_thread(t);
        return NULL;
}

static bool acquire_helper(size_t cpus)
{
        size_t running = atomic_load(&helper_count);

        while (running + 1 < cpus) {
                if (atomic_compare_exchange_weak(&helper_count, &running, running + 1))
                        return true;
        }
        return false;
}

static void work_thread_init(struct work_thread *t, struct work_share *s, size_t number)
{
        *t = (struct work_thread){ .share = s, .number = number };
        work_meter_init(&t->meter, s->meter ? check_query_meter : NULL, s);
}

static void run_work_threads(struct work_share *s, size_t useful)
{
        struct work_thread threads[WORK_THREADS_MAX];
        pthread_t ids[WORK_THREADS_MAX];
        size_t started = 1, cpus = count_work_threads();

        while (started < useful && started < WORK_THREADS_MAX && acquire_helper(cpus)) {
                work_thread_init(&threads[started], s, started);
                if (pthread_create(&ids[started], NULL, run_helper, &threads[started])) {
                        atomic_fetch_sub(&helper_count, 1);
                        break;
                }
                started++;
        }
        work_thread_init(&threads[0], s, 0);
        run_work_thread(&threads[0]);
        for (size_t i = 1; i < started; i++) {
                pthread_join(ids[i], NULL);
                atomic_fetch_sub(&helper_count, 1);
        }
        for (size_t i = 0; s->meter && i < started; i++) {
                s->meter->rows += threads[i].meter.rows;
                s->meter->bytes += threads[i].meter.bytes;
                s->meter->units += threads[i].meter.units; /* since its last check */
        }
}

enum status share_work(struct work_meter *meter, size_t useful, shared_work *work, void *context, struct error *err)
{
        struct work_share s = { .work = work, .context = context, .account = memory_get_account(), .meter = meter };

        pthread_mutex_init(&s.lock, NULL);
        pthread_mutex_init(&s.meter_lock, NULL);
        run_work_threads(&s, useful);
        pthread_mutex_destroy(&s.meter_lock);
        pthread_mutex_destroy(&s.lock);
        if (s.failed && err)
                *err = s.error;
        return s.failed ? s.failed : work_meter_add(meter, 0, err);
}

bool take_work_range(struct work_ranges *r, size_t *start_ret, size_t *end_ret)
{
        size_t start = atomic_fetch_add(&r->next, r->step);

        assert(r->step);
        if (start >= r->count)
                return false;
        *start_ret = start;
        *end_ret = r->count - start < r->step ? r->count : start + r->step;
        return true;
}
