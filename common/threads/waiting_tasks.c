/* SPDX-License-Identifier: Apache-2.0 */
#include "common/threads/waiting_tasks.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/prctl.h>

#include "common/memory/memory_budget.h"

struct waiting_work {
        waiting_task *task;
        void *context;
        size_t count;
        _Atomic size_t next;
        struct memory_account *account; /* of the calling thread; may be NULL */
};

static _Atomic size_t helper_count; /* in the whole process */

static void do_tasks(struct waiting_work *w)
{
        size_t i;

        while ((i = atomic_fetch_add(&w->next, 1)) < w->count)
                w->task(w->context, i);
}

static void *run_waiting_helper(void *context)
{
        struct waiting_work *w = context;

        prctl(PR_SET_NAME, "cairn-ask");
        memory_set_account(w->account);
        do_tasks(w);
        return NULL;
}

static bool start_waiting_helper(struct waiting_work *w, pthread_t *ret)
{
        if (atomic_fetch_add(&helper_count, 1) < WAITING_HELPERS_MAX &&
            !pthread_create(ret, NULL, run_waiting_helper, w))
                return true;
        atomic_fetch_sub(&helper_count, 1);
        return false;
}

void do_waiting_tasks(size_t count, waiting_task *task, void *context)
{
        struct waiting_work w = { .task = task, .context = context, .count = count, .account = memory_get_account() };
        pthread_t helpers[WAITING_THREADS_MAX - 1];
        size_t started = 0;

        while (started + 1 < count && started < WAITING_THREADS_MAX - 1 && start_waiting_helper(&w, &helpers[started]))
                started++;
        do_tasks(&w);
        for (size_t i = 0; i < started; i++) {
                pthread_join(helpers[i], NULL);
                atomic_fetch_sub(&helper_count, 1);
        }
}
