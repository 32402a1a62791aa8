/* SPDX-License-Identifier: Apache-2.0 */
/* The data limits of all running workers fit into the memory budget, and neither small nor large ones starve. */
#include <check.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "common/limits.h"
#include "common/memory/memory_budget.h"
#include "sandbox/worker_budget.h"
#include "tests/support/suite.h"

#define BUDGET MiB(1024)

struct waiter {
        uint64_t wanted, granted;
        atomic_bool cancel, is_done;
        atomic_int tid;
        enum status st;
        pthread_t thread;
};

static void *acquire_in_thread(void *arg)
{
        struct waiter *w = arg;

        atomic_store(&w->tid, gettid());
        w->st = worker_budget_acquire(w->wanted, false, &w->cancel, &w->granted, NULL);
        atomic_store(&w->is_done, true);
        return NULL;
}

/* How often the thread has begun to wait; ULONG_MAX after its end. */
static unsigned long count_waits(const struct waiter *w)
{
        unsigned long ret = ULONG_MAX;
        char path[64], line[256];
        FILE *f;

        snprintf(path, sizeof path, "/proc/self/task/%d/status", atomic_load(&w->tid));
        f = fopen(path, "re");
        while (f && fgets(line, sizeof line, f))
                if (sscanf(line, "voluntary_ctxt_switches: %lu", &ret) == 1)
                        break;
        if (f)
                (void)fclose(f);
        return ret;
}

/* Until it has looked at the budget again, and waits or has ended. */
static void await_look(const struct waiter *w)
{
        const unsigned long before = count_waits(w);

        while (before < ULONG_MAX && count_waits(w) < before + 2)
                poll(NULL, 0, 1);
}

static void start_waiter(struct waiter *w, uint64_t wanted)
{
        *w = (struct waiter){ .wanted = wanted };
        ck_assert_int_eq(pthread_create(&w->thread, NULL, acquire_in_thread, w), 0);
        while (!atomic_load(&w->tid))
                poll(NULL, 0, 1);
        await_look(w);
}

static uint64_t acquire(uint64_t wanted, bool is_short)
{
        uint64_t ret;

        ck_assert_int_eq(worker_budget_acquire(wanted, is_short, NULL, &ret, NULL), ST_OK);
        return ret;
}

START_TEST(without_a_limit_nothing_is_counted)
{
        ck_assert_uint_eq(acquire(GiB(100), false), 0);
        ck_assert_uint_eq(acquire(GiB(100), true), 0);
}
END_TEST

START_TEST(a_worker_gets_a_share_at_most)
{
        uint64_t bytes;

        ck_assert_int_eq(memory_budget_set_limit(BUDGET, NULL), ST_OK);
        bytes = acquire(0, false);
        ck_assert_uint_eq(bytes, BUDGET / 4);
        worker_budget_release(bytes);
        bytes = acquire(GiB(100), false);
        ck_assert_uint_eq(bytes, BUDGET / 2);
        worker_budget_release(bytes);
        bytes = acquire(GiB(100), true); /* a client waits for it */
        ck_assert_uint_eq(bytes, BUDGET / 4);
        worker_budget_release(bytes);
        bytes = acquire(MiB(10), false);
        ck_assert_uint_eq(bytes, MiB(10));
        worker_budget_release(bytes);
}
END_TEST

START_TEST(worker_over_the_limit_waits)
{
        struct waiter w;

        ck_assert_int_eq(memory_budget_set_limit(BUDGET, NULL), ST_OK);
        for (unsigned i = 0; i < 4; i++)
                acquire(0, false);
        start_waiter(&w, 0);
        ck_assert(!atomic_load(&w.is_done));
        worker_budget_release(BUDGET / 4);
        pthread_join(w.thread, NULL);
        ck_assert_int_eq(w.st, ST_OK);
        ck_assert_uint_eq(w.granted, BUDGET / 4);
}
END_TEST

START_TEST(wait_can_be_cancelled)
{
        struct waiter w;

        ck_assert_int_eq(memory_budget_set_limit(BUDGET, NULL), ST_OK);
        for (unsigned i = 0; i < 4; i++)
                acquire(0, false);
        start_waiter(&w, 0);
        atomic_store(&w.cancel, true);
        pthread_join(w.thread, NULL);
        ck_assert_int_eq(w.st, ST_BUSY);
        ck_assert_uint_eq(w.granted, 0);
}
END_TEST

START_TEST(small_workers_do_not_wait_for_large_ones)
{
        struct waiter large;
        uint64_t small;

        ck_assert_int_eq(memory_budget_set_limit(BUDGET, NULL), ST_OK);
        acquire(GiB(1), false);
        start_waiter(&large, GiB(1)); /* a second large one waits for the first */
        ck_assert(!atomic_load(&large.is_done));
        small = acquire(0, false);
        ck_assert_uint_eq(small, BUDGET / 4);
        ck_assert_uint_eq(acquire(0, false), BUDGET / 4);
        worker_budget_release(BUDGET / 2);
        pthread_join(large.thread, NULL);
        ck_assert_uint_eq(large.granted, BUDGET / 2);
}
END_TEST

START_TEST(a_large_worker_is_not_starved_by_small_ones)
{
        struct waiter large, small;

        ck_assert_int_eq(memory_budget_set_limit(BUDGET, NULL), ST_OK);
        for (unsigned i = 0; i < 4; i++)
                acquire(0, false);
        start_waiter(&large, GiB(1));
        start_waiter(&small, 0);
        worker_budget_release(BUDGET / 4); /* the small one came later: it leaves the memory to the large one */
        await_look(&small);
        await_look(&large);
        ck_assert(!atomic_load(&small.is_done));
        ck_assert(!atomic_load(&large.is_done));
        worker_budget_release(BUDGET / 4);
        pthread_join(large.thread, NULL);
        ck_assert_uint_eq(large.granted, BUDGET / 2);
        ck_assert(!atomic_load(&small.is_done));
        worker_budget_release(BUDGET / 4);
        pthread_join(small.thread, NULL);
        ck_assert_uint_eq(small.granted, BUDGET / 4);
}
END_TEST

TEST_SUITE("worker-budget", without_a_limit_nothing_is_counted, a_worker_gets_a_share_at_most,
           worker_over_the_limit_waits, wait_can_be_cancelled, small_workers_do_not_wait_for_large_ones,
           a_large_worker_is_not_starved_by_small_ones)
