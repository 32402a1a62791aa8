/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/unresolved_counts.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/memory/memory_budget.h"
#include "common/metrics.h"
#include "common/program/log.h"
#include "common/threads/condition.h"
#include "profile-store/scan.h"

#define COUNT_TIMEOUT_S 60
#define COUNT_PAUSE_FACTOR 20 /* at most 5 % of the time is spent on counting */
#define MIN_PAUSE_NS 100000000
#define COUNT_NICENESS 10

#define UNRESOLVED_SAMPLES(when, reason)                                                                               \
        METRIC_GAUGE("cairn_unresolved_samples",                                                                       \
                     "Samples with an unresolved location, by reason, at the last count after a re-symbolization and " \
                     "at the count before it.",                                                                        \
                     "when=\"" when "\",reason=\"" reason "\"")
#define UNRESOLVED_BY_REASON(when)                                                                                     \
        {                                                                                                              \
                [SYMBOL_NO_BUILD_ID] = UNRESOLVED_SAMPLES(when, "no_build_id"),                                        \
                [SYMBOL_NO_DEBUGINFO] = UNRESOLVED_SAMPLES(when, "no_debuginfo"),                                      \
                [SYMBOL_PENDING] = UNRESOLVED_SAMPLES(when, "pending"),                                                \
                [SYMBOL_FAILED] = UNRESOLVED_SAMPLES(when, "failed"),                                                  \
                [SYMBOL_OUTSIDE] = UNRESOLVED_SAMPLES(when, "outside"),                                                \
                [SYMBOL_NO_ADDRESS] = UNRESOLVED_SAMPLES(when, "no_address"),                                          \
                [SYMBOL_STRIPPED] = UNRESOLVED_SAMPLES(when, "stripped"),                                              \
                [SYMBOL_UNCOVERED] = UNRESOLVED_SAMPLES(when, "uncovered"),                                            \
                [SYMBOL_NOT_IN_OBJECT] = UNRESOLVED_SAMPLES(when, "not_in_object"),                                    \
                [SYMBOL_TOO_LARGE] = UNRESOLVED_SAMPLES(when, "too_large"),                                            \
        }

static struct metric unresolved_before[SYMBOL_STATE_COUNT] = UNRESOLVED_BY_REASON("before");
static struct metric unresolved_after[SYMBOL_STATE_COUNT] = UNRESOLVED_BY_REASON("after");
static struct metric failures =
        METRIC_COUNTER("cairn_unresolved_count_failures_total",
                       "Failed counts of unresolved samples; cairn_unresolved_samples has the counts before.", "");

/* A store's shares of the gauges, which are sums over all stores. */
struct store_counts {
        bool is_counted;  /* after is a count */
        uint64_t version; /* number of changes */
        _Atomic int64_t before[SYMBOL_STATE_COUNT], after[SYMBOL_STATE_COUNT];
};

struct unresolved_counts {
        struct profile_store *const *stores;
        size_t store_count;
        struct store_counts *counts; /* by store; owned */
        pthread_mutex_t lock;
        pthread_cond_t changed;
        bool is_requested;
        atomic_bool stop;
        bool started;
        pthread_t thread;
};

/* ---- counting ---- */

enum status count_unresolved_samples(struct profile_store *store, struct work_meter *meter,
                                     uint64_t ret[static SYMBOL_STATE_COUNT], struct error *err)
{
        static const struct scan_filter all = { .from_unix_ns = INT64_MIN, .to_unix_ns = INT64_MAX };
        struct memory_account account = { .limit = memory_get_query_limit() };
        struct store_scan *scan;
        enum status st;

        memory_set_account(&account);
        st = store_scan_begin(store, &scan, err);
        if (!st) {
                store_scan_set_meter(scan, meter);
                st = store_scan_count_unresolved(scan, &all, ret, err);
                store_scan_end(scan);
        }
        memory_set_account(NULL);
        return st;
}

struct count_limit {
        const struct unresolved_counts *u;
        int64_t deadline_ns;
};

static enum status interrupt_count(void *context, struct error *err)
{
        const struct count_limit *l = context;

        if (atomic_load(&l->u->stop))
                return error_set(err, ST_BUSY, "the service is stopping");
        return monotonic_ns() < l->deadline_ns ? ST_OK
                                               : error_set(err, ST_TOO_BIG, "it takes more than %d s", COUNT_TIMEOUT_S);
}

/* ---- gauges ---- */

static void set_gauge_shares(struct metric *gauges, _Atomic int64_t *shares, const uint64_t *counts)
{
        for (int i = 0; i < SYMBOL_STATE_COUNT; i++)
                if (gauges[i].name)
                        metric_set_share(&gauges[i], &shares[i], (int64_t)counts[i]);
}

void unresolved_counts_set(struct unresolved_counts *u, const struct profile_store *store,
                           const uint64_t before[static SYMBOL_STATE_COUNT],
                           const uint64_t after[static SYMBOL_STATE_COUNT])
{
        size_t i = 0;

        if (!u)
                return;
        while (i < u->store_count && u->stores[i] != store)
                i++;
        assert(i < u->store_count);
        pthread_mutex_lock(&u->lock);
        set_gauge_shares(unresolved_before, u->counts[i].before, before);
        set_gauge_shares(unresolved_after, u->counts[i].after, after);
        u->counts[i].is_counted = true;
        u->counts[i].version++;
        pthread_mutex_unlock(&u->lock);
}

/* The last count becomes the one before. Caller holds the lock. */
static void shift_counts(struct store_counts *c, const uint64_t after[static SYMBOL_STATE_COUNT])
{
        uint64_t before[SYMBOL_STATE_COUNT];

        for (int i = 0; i < SYMBOL_STATE_COUNT; i++)
                before[i] = (uint64_t)atomic_load(&c->after[i]);
        if (c->is_counted)
                set_gauge_shares(unresolved_before, c->before, before);
        set_gauge_shares(unresolved_after, c->after, after);
        c->is_counted = true;
        c->version++;
}

/* Returns whether to retry. The result is dropped if the counts were set meanwhile: those may be newer. */
static bool update_store_counts(struct unresolved_counts *u, size_t store)
{
        struct count_limit limit = { u, monotonic_ns() + COUNT_TIMEOUT_S * INT64_C(1000000000) };
        struct store_counts *c = &u->counts[store];
        uint64_t after[SYMBOL_STATE_COUNT], version;
        struct work_meter meter;
        struct error err;
        bool is_current;
        enum status st;

        pthread_mutex_lock(&u->lock);
        version = c->version;
        pthread_mutex_unlock(&u->lock);
        work_meter_init(&meter, interrupt_count, &limit);
        st = count_unresolved_samples(u->stores[store], &meter, after, &err);
        if (atomic_load(&u->stop))
                return false;
        if (st) {
                metric_add(&failures, 1);
                log_warn("resymbolize", "cannot count unresolved samples: %s", err.text);
                return st == ST_BUSY || st == ST_NO_MEMORY;
        }
        pthread_mutex_lock(&u->lock);
        is_current = c->version == version;
        if (is_current)
                shift_counts(c, after);
        pthread_mutex_unlock(&u->lock);
        return !is_current;
}

/* ---- thread ---- */

static bool update_all_counts(struct unresolved_counts *u)
{
        bool retry = false;

        for (size_t i = 0; i < u->store_count && !atomic_load(&u->stop); i++)
                retry |= update_store_counts(u, i);
        return retry;
}

static void *run_unresolved_counts(void *arg)
{
        struct unresolved_counts *u = arg;

        (void)setpriority(PRIO_PROCESS, (id_t)gettid(), COUNT_NICENESS);
        pthread_mutex_lock(&u->lock);
        while (!u->stop) {
                int64_t began_ns, pause_ns, until;
                bool retry;

                if (!u->is_requested) {
                        pthread_cond_wait(&u->changed, &u->lock);
                        continue;
                }
                u->is_requested = false;
                pthread_mutex_unlock(&u->lock);
                began_ns = monotonic_ns();
                retry = update_all_counts(u);
                pause_ns = (monotonic_ns() - began_ns) * COUNT_PAUSE_FACTOR;
                until = monotonic_ns() + (pause_ns > MIN_PAUSE_NS ? pause_ns : MIN_PAUSE_NS);
                pthread_mutex_lock(&u->lock);
                u->is_requested |= retry;
                while (!u->stop && condition_wait_until(&u->changed, &u->lock, until))
                        ;
        }
        pthread_mutex_unlock(&u->lock);
        return NULL;
}

void unresolved_counts_request(struct unresolved_counts *u)
{
        if (!u)
                return;
        pthread_mutex_lock(&u->lock);
        u->is_requested = true;
        pthread_cond_broadcast(&u->changed);
        pthread_mutex_unlock(&u->lock);
}

enum status unresolved_counts_start(struct profile_store *const *stores, size_t store_count,
                                    struct unresolved_counts **ret, struct error *err)
{
        struct unresolved_counts *u = calloc(1, sizeof *u);
        int failed;

        if (!u)
                return error_no_memory(err);
        metric_register(&failures);
        u->stores = stores;
        u->store_count = store_count;
        pthread_mutex_init(&u->lock, NULL);
        pthread_cond_init(&u->changed, NULL);
        u->counts = calloc(store_count + 1, sizeof *u->counts);
        if (!u->counts) {
                unresolved_counts_stop(u);
                return error_no_memory(err);
        }
        failed = pthread_create(&u->thread, NULL, run_unresolved_counts, u);
        u->started = !failed;
        if (failed) {
                unresolved_counts_stop(u);
                return error_os(err, failed, "cannot start a thread");
        }
        pthread_setname_np(u->thread, "unresolved");
        *ret = u;
        return ST_OK;
}

void unresolved_counts_stop(struct unresolved_counts *u)
{
        if (!u)
                return;
        if (u->started) {
                pthread_mutex_lock(&u->lock);
                u->stop = true;
                pthread_cond_broadcast(&u->changed);
                pthread_mutex_unlock(&u->lock);
                pthread_join(u->thread, NULL);
        }
        for (size_t i = 0; u->counts && i < u->store_count; i++) {
                static const uint64_t none[SYMBOL_STATE_COUNT];

                if (!u->counts[i].is_counted)
                        continue;
                set_gauge_shares(unresolved_before, u->counts[i].before, none);
                set_gauge_shares(unresolved_after, u->counts[i].after, none);
        }
        pthread_cond_destroy(&u->changed);
        pthread_mutex_destroy(&u->lock);
        free(u->counts);
        free(u);
}
