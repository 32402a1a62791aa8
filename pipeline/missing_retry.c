/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/missing_retry.h"

#include <pthread.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/program/log.h"
#include "common/threads/condition.h"
#include "profile-store/scan.h"
#include "symbol-index/symbol_state.h"

#define INTERVAL_S 600
#define WINDOW_NS (24 * 3600 * 1000000000ll)

struct missing_retry {
        struct profile_store *const *stores;
        size_t store_count;
        void (*request)(void *context, const struct wanted_object *objects, size_t count);
        void *context;
        pthread_mutex_t lock;
        pthread_cond_t changed;
        bool stop, is_woken;
        pthread_t thread;
};

static int compare_object_weights(const void *a, const void *b)
{
        const struct wanted_object *x = a, *y = b;

        return (x->weight < y->weight) - (x->weight > y->weight);
}

static size_t append_wanted_objects(const struct scan_upload *from, size_t count, struct wanted_object *to)
{
        size_t n = 0;

        for (size_t i = 0; i < count; i++)
                if (from[i].build_id.size && symbol_state_wants_upstream(from[i].state, from[i].quality))
                        to[n++] = (struct wanted_object){ .id = from[i].build_id,
                                                          .weight = sample_count_round(from[i].samples) };
        return n;
}

/* Those with the most samples first; an object may be listed twice, for addresses without names and without lines. */
static enum status list_missing_objects(struct profile_store *store, bool of_any_age, struct wanted_object **ret,
                                        size_t *count_ret, struct error *err)
{
        const struct scan_filter filter = { .from_unix_ns = of_any_age ? 0 : wall_clock_ns() - WINDOW_NS,
                                            .to_unix_ns = INT64_MAX };
        struct scan_uploads uploads; /* lists are owned by the scan */
        struct store_scan *scan;
        struct wanted_object *objects = NULL;
        size_t n = 0;
        enum status st = store_scan_begin(store, &scan, err);

        if (st)
                return st;
        st = store_scan_rank_uploads(scan, &filter, NULL, &uploads, err);
        if (!st)
                objects = calloc(uploads.missing_count + uploads.poor_count + 1, sizeof *objects);
        if (objects) {
                n = append_wanted_objects(uploads.missing, uploads.missing_count, objects);
                n += append_wanted_objects(uploads.poor, uploads.poor_count, objects + n);
        }
        store_scan_end(scan);
        if (st)
                return st;
        if (!objects)
                return error_no_memory(err);
        qsort(objects, n, sizeof *objects, compare_object_weights);
        *ret = objects;
        *count_ret = n;
        return ST_OK;
}

static void request_missing(struct missing_retry *r, bool of_any_age)
{
        for (size_t i = 0; i < r->store_count; i++) {
                _cleanup_free_ struct wanted_object *objects = NULL;
                struct error err;
                size_t count = 0;

                if (list_missing_objects(r->stores[i], of_any_age, &objects, &count, &err))
                        log_warn("federation", "cannot list missing objects: %s", err.text);
                else if (count)
                        r->request(r->context, objects, count);
        }
}

static void *run_missing_retry(void *arg)
{
        struct missing_retry *r = arg;
        bool of_any_age;
        int64_t until;

        pthread_mutex_lock(&r->lock);
        while (!r->stop) {
                of_any_age = r->is_woken;
                r->is_woken = false;
                pthread_mutex_unlock(&r->lock);
                request_missing(r, of_any_age);
                until = monotonic_ns() + INTERVAL_S * INT64_C(1000000000);
                pthread_mutex_lock(&r->lock);
                while (!r->stop && !r->is_woken && condition_wait_until(&r->changed, &r->lock, until))
                        ;
        }
        pthread_mutex_unlock(&r->lock);
        return NULL;
}

enum status missing_retry_start(struct profile_store *const *stores, size_t store_count,
                                void (*request)(void *context, const struct wanted_object *objects, size_t count),
                                void *context, struct missing_retry **ret, struct error *err)
{
        struct missing_retry *r = calloc(1, sizeof *r);
        int failed;

        if (!r)
                return error_no_memory(err);
        r->stores = stores;
        r->store_count = store_count;
        r->request = request;
        r->context = context;
        pthread_mutex_init(&r->lock, NULL);
        pthread_cond_init(&r->changed, NULL);
        failed = pthread_create(&r->thread, NULL, run_missing_retry, r);
        if (failed) {
                pthread_cond_destroy(&r->changed);
                pthread_mutex_destroy(&r->lock);
                free(r);
                return error_os(err, failed, "cannot start a thread");
        }
        pthread_setname_np(r->thread, "missing-retry");
        *ret = r;
        return ST_OK;
}

void missing_retry_run_now(struct missing_retry *r)
{
        pthread_mutex_lock(&r->lock);
        r->is_woken = true;
        pthread_cond_broadcast(&r->changed);
        pthread_mutex_unlock(&r->lock);
}

void missing_retry_stop(struct missing_retry *r)
{
        if (!r)
                return;
        pthread_mutex_lock(&r->lock);
        r->stop = true;
        pthread_cond_broadcast(&r->changed);
        pthread_mutex_unlock(&r->lock);
        pthread_join(r->thread, NULL);
        pthread_cond_destroy(&r->changed);
        pthread_mutex_destroy(&r->lock);
        free(r);
}
