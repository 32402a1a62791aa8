/* SPDX-License-Identifier: Apache-2.0 */
#include "server/wishes.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/cleanup.h"
#include "common/condition.h"
#include "common/log.h"
#include "profile-store/scan.h"

#define INTERVAL_S 600
#define WINDOW_NS (24 * 3600 * 1000000000ll)

struct wishes {
        struct profile_store *profiles;
        void (*want)(void *context, const struct build_id *ids, size_t count);
        void *context;
        pthread_mutex_t lock;
        pthread_cond_t changed;
        bool stop, is_woken;
        pthread_t thread;
};

/* Nothing of it is here, or nothing that helps. */
static bool is_wanted(const char *state)
{
        return strcmp(state, symbol_state_name(SYMBOL_NO_DEBUGINFO)) == 0 ||
               strcmp(state, symbol_state_name(SYMBOL_STRIPPED)) == 0;
}

static enum status find_missing(struct wishes *w, bool of_any_age, struct build_id **ret, size_t *count_ret, struct error *err)
{
        const struct scan_filter filter = { .from_unix_ns = of_any_age ? 0 : wall_clock_ns() - WINDOW_NS, .to_unix_ns = INT64_MAX };
        struct scan_missing *missing = NULL; /* the scan's */
        struct store_scan *scan;
        struct build_id *ids;
        size_t count = 0, n = 0;
        enum status st = store_scan_begin(w->profiles, &scan, err);

        if (st)
                return st;
        st = store_scan_missing(scan, &filter, &missing, &count, err);
        ids = st ? NULL : calloc(count + 1, sizeof *ids);
        for (size_t i = 0; ids && i < count; i++)
                if (missing[i].build_id.size && is_wanted(missing[i].state))
                        ids[n++] = missing[i].build_id;
        store_scan_end(scan);
        if (st)
                return st;
        if (!ids)
                return error_no_memory(err);
        *ret = ids;
        *count_ret = n;
        return ST_OK;
}

static void wish(struct wishes *w, bool of_any_age)
{
        _cleanup_free_ struct build_id *ids = NULL;
        struct error err;
        size_t count = 0;

        if (find_missing(w, of_any_age, &ids, &count, &err))
                log_warn("federation", "cannot find out what is missing: %s", err.text);
        else if (count)
                w->want(w->context, ids, count);
}

static void *run(void *arg)
{
        struct wishes *w = arg;
        bool of_any_age;
        int64_t until;

        pthread_mutex_lock(&w->lock);
        while (!w->stop) {
                of_any_age = w->is_woken;
                w->is_woken = false;
                pthread_mutex_unlock(&w->lock);
                wish(w, of_any_age);
                until = monotonic_ns() + INTERVAL_S * INT64_C(1000000000);
                pthread_mutex_lock(&w->lock);
                while (!w->stop && !w->is_woken && condition_wait_until(&w->changed, &w->lock, until))
                        ;
        }
        pthread_mutex_unlock(&w->lock);
        return NULL;
}

enum status wishes_start(struct profile_store *profiles, void (*want)(void *context, const struct build_id *ids, size_t count),
                         void *context, struct wishes **ret, struct error *err)
{
        struct wishes *w = calloc(1, sizeof *w);
        int failed;

        if (!w)
                return error_no_memory(err);
        w->profiles = profiles;
        w->want = want;
        w->context = context;
        pthread_mutex_init(&w->lock, NULL);
        pthread_cond_init(&w->changed, NULL);
        failed = pthread_create(&w->thread, NULL, run, w);
        if (failed) {
                pthread_cond_destroy(&w->changed);
                pthread_mutex_destroy(&w->lock);
                free(w);
                return error_os(err, failed, "cannot start a thread");
        }
        pthread_setname_np(w->thread, "wishes");
        *ret = w;
        return ST_OK;
}

void wishes_wake(struct wishes *w)
{
        pthread_mutex_lock(&w->lock);
        w->is_woken = true;
        pthread_cond_broadcast(&w->changed);
        pthread_mutex_unlock(&w->lock);
}

void wishes_stop(struct wishes *w)
{
        if (!w)
                return;
        pthread_mutex_lock(&w->lock);
        w->stop = true;
        pthread_cond_broadcast(&w->changed);
        pthread_mutex_unlock(&w->lock);
        pthread_join(w->thread, NULL);
        pthread_cond_destroy(&w->changed);
        pthread_mutex_destroy(&w->lock);
        free(w);
}
