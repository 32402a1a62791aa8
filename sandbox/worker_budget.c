/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/worker_budget.h"

#include <assert.h>
#include <pthread.h>

#include "common/clock.h"
#include "common/threads/condition.h"
#include "common/memory/memory_budget.h"
#include "common/metrics.h"

#define POLL_NS 50000000

static struct metric limits =
        METRIC_GAUGE("cairn_worker_memory_bytes", "Sum of the memory limits of running workers.", "");

/* small_bytes + large_bytes <= W; small_bytes <= W/2 once a large worker runs. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t released = PTHREAD_COND_INITIALIZER;
static uint64_t small_bytes, large_bytes;
static unsigned large_waiting;

/* Caller holds the lock. */
static bool can_start_worker(uint64_t bytes, bool is_large, uint64_t budget)
{
        if (is_large)
                return large_bytes == 0 && small_bytes <= budget / 2;
        return small_bytes + bytes <= (large_bytes || large_waiting ? budget / 2 : budget);
}

enum status worker_budget_acquire(uint64_t wanted_bytes, bool is_short, const atomic_bool *cancel, uint64_t *ret,
                                  struct error *err)
{
        const uint64_t budget = memory_budget_limit();
        uint64_t most = budget / (is_short || !wanted_bytes ? 4 : 2), bytes;
        enum status st = ST_OK;
        bool is_large;

        *ret = 0;
        if (budget == SIZE_MAX)
                return ST_OK;
        bytes = wanted_bytes && wanted_bytes < most ? wanted_bytes : most;
        is_large = bytes > budget / 4;
        pthread_mutex_lock(&lock);
        large_waiting += is_large;
        while (!can_start_worker(bytes, is_large, budget)) {
                if (cancel && atomic_load(cancel)) {
                        st = error_set(err, ST_BUSY, "cancelled while waiting for other workers to end");
                        break;
                }
                condition_wait_until(&released, &lock, monotonic_ns() + POLL_NS);
        }
        large_waiting -= is_large;
        if (!st) {
                *(is_large ? &large_bytes : &small_bytes) += bytes;
                assert(small_bytes + large_bytes <= budget);
                metric_set(&limits, (int64_t)(small_bytes + large_bytes));
                *ret = bytes;
        }
        pthread_mutex_unlock(&lock);
        return st;
}

void worker_budget_release(uint64_t bytes)
{
        if (!bytes)
                return;
        pthread_mutex_lock(&lock);
        if (bytes > memory_budget_limit() / 4) {
                assert(large_bytes == bytes);
                large_bytes = 0;
        } else {
                assert(small_bytes >= bytes);
                small_bytes -= bytes;
        }
        metric_set(&limits, (int64_t)(small_bytes + large_bytes));
        pthread_cond_broadcast(&released);
        pthread_mutex_unlock(&lock);
}
