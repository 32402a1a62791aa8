/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/object_follow.h"

#include <pthread.h>
#include <stdlib.h>

#include "common/clock.h"
#include "common/metrics.h"
#include "common/program/log.h"
#include "common/threads/condition.h"

static struct metric failures =
        METRIC_COUNTER("cairn_object_follow_failures_total",
                       "Failed attempts to read what other services committed to a table of objects.", "");

struct object_follow {
        struct debuginfo_store *store;
        void (*changed_objects)(void *context);
        void *context;
        pthread_mutex_t lock;
        pthread_cond_t changed;
        bool stop;
        pthread_t thread;
};

static void follow_objects(struct object_follow *r)
{
        bool has_changed = false;
        struct error err;

        if (!debuginfo_store_follow(r->store, &has_changed, &err)) {
                if (has_changed && r->changed_objects)
                        r->changed_objects(r->context);
                return;
        }
        metric_add(&failures, 1);
        log_warn("debuginfo", "cannot read which objects were stored, trying again: %s", err.text);
}

static void *run_object_follow(void *arg)
{
        struct object_follow *r = arg;

        pthread_mutex_lock(&r->lock);
        while (!r->stop) {
                int64_t until = monotonic_ns() + OBJECT_FOLLOW_S * INT64_C(1000000000);

                while (!r->stop && condition_wait_until(&r->changed, &r->lock, until))
                        ;
                if (r->stop)
                        break;
                pthread_mutex_unlock(&r->lock);
                follow_objects(r);
                pthread_mutex_lock(&r->lock);
        }
        pthread_mutex_unlock(&r->lock);
        return NULL;
}

enum status object_follow_start(struct debuginfo_store *store, void (*changed)(void *context), void *context,
                                struct object_follow **ret, struct error *err)
{
        struct object_follow *r = calloc(1, sizeof *r);
        int refused;

        if (!r)
                return error_no_memory(err);
        metric_register(&failures);
        r->store = store;
        r->changed_objects = changed;
        r->context = context;
        pthread_mutex_init(&r->lock, NULL);
        pthread_cond_init(&r->changed, NULL);
        refused = pthread_create(&r->thread, NULL, run_object_follow, r);
        if (refused) {
                pthread_cond_destroy(&r->changed);
                pthread_mutex_destroy(&r->lock);
                free(r);
                return error_os(err, refused, "cannot start a thread");
        }
        pthread_setname_np(r->thread, "follow");
        *ret = r;
        return ST_OK;
}

void object_follow_stop(struct object_follow *r)
{
        if (!r)
                return;
        pthread_mutex_lock(&r->lock);
        r->stop = true;
        pthread_cond_signal(&r->changed);
        pthread_mutex_unlock(&r->lock);
        pthread_join(r->thread, NULL);
        pthread_cond_destroy(&r->changed);
        pthread_mutex_destroy(&r->lock);
        free(r);
}
