/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/unnamed_follow.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/metrics.h"
#include "common/program/log.h"
#include "common/threads/condition.h"

static struct metric named_objects = METRIC_COUNTER(
        "cairn_unnamed_objects_total",
        "Objects of locations that other nodes committed without names, and that this node's index has.", "");

struct unnamed_follow {
        struct unnamed_follow_options options;
        pthread_mutex_t lock;
        pthread_cond_t changed;
        bool stop;
        pthread_t thread;
};

static bool is_object_in_index(struct symbol_view *view, const struct build_id *id)
{
        struct symbol_object o;

        return view && !symbol_view_get_object(view, id, &o, NULL) && o.state == OBJECT_INDEXED;
}

/* Keep the objects that the index lacks; the others are moved to found. */
static size_t split_by_index(struct unnamed_follow *u, struct build_id *ids, size_t count, struct build_id *found,
                             size_t *found_ret)
{
        struct symbol_view *view = NULL;
        size_t missing = 0;

        *found_ret = 0;
        if (u->options.symbols && symbol_view_begin(u->options.symbols, &view, NULL))
                view = NULL;
        for (size_t i = 0; i < count; i++) {
                if (is_object_in_index(view, &ids[i]))
                        found[(*found_ret)++] = ids[i];
                else
                        ids[missing++] = ids[i];
        }
        symbol_view_end(view);
        return missing;
}

static enum status name_found_objects(struct unnamed_follow *u, const struct build_id *found, size_t count,
                                      struct error *err)
{
        for (size_t i = 0; i < count; i++) {
                enum status st = resymbolizer_expect_change(u->options.resymbolizer, &found[i], err);

                if (st)
                        return st;
                resymbolizer_end_change(u->options.resymbolizer, &found[i], true);
                metric_add(&named_objects, 1);
        }
        return ST_OK;
}

static enum status handle_unnamed(struct unnamed_follow *u, struct build_id *ids, size_t count, struct error *err)
{
        _cleanup_free_ struct build_id *found = calloc(count + 1, sizeof *found);
        _cleanup_free_ struct wanted_object *missing = calloc(count + 1, sizeof *missing);
        size_t found_count, missing_count;

        if (!found || !missing)
                return error_no_memory(err);
        missing_count = split_by_index(u, ids, count, found, &found_count);
        for (size_t i = 0; i < missing_count; i++)
                missing[i] = (struct wanted_object){ .id = ids[i], .weight = 1 };
        if (missing_count)
                u->options.request(u->options.context, missing, missing_count);
        return name_found_objects(u, found, found_count, err);
}

static void follow_unnamed(struct unnamed_follow *u)
{
        for (size_t i = 0; i < u->options.store_count; i++) {
                _cleanup_free_ struct build_id *ids = NULL;
                struct error err;
                size_t count = 0;
                enum status st = profile_store_list_unnamed(u->options.stores[i], &ids, &count, &err);

                if (!st && count && (st = handle_unnamed(u, ids, count, &err)))
                        profile_store_list_unnamed_again(u->options.stores[i]);
                if (st)
                        log_warn("pipeline", "cannot name locations that other nodes wrote without names, retrying: %s",
                                 err.text);
        }
}

static void *run_unnamed_follow(void *arg)
{
        struct unnamed_follow *u = arg;

        pthread_mutex_lock(&u->lock);
        while (!u->stop) {
                int64_t until;

                pthread_mutex_unlock(&u->lock);
                follow_unnamed(u);
                until = monotonic_ns() + UNNAMED_FOLLOW_S * INT64_C(1000000000);
                pthread_mutex_lock(&u->lock);
                while (!u->stop && condition_wait_until(&u->changed, &u->lock, until))
                        ;
        }
        pthread_mutex_unlock(&u->lock);
        return NULL;
}

enum status unnamed_follow_start(const struct unnamed_follow_options *options, struct unnamed_follow **ret,
                                 struct error *err)
{
        struct unnamed_follow *u = calloc(1, sizeof *u);
        int failed;

        assert(!options->symbols == !options->resymbolizer);
        if (!u)
                return error_no_memory(err);
        metric_register(&named_objects);
        u->options = *options;
        pthread_mutex_init(&u->lock, NULL);
        pthread_cond_init(&u->changed, NULL);
        failed = pthread_create(&u->thread, NULL, run_unnamed_follow, u);
        if (failed) {
                pthread_cond_destroy(&u->changed);
                pthread_mutex_destroy(&u->lock);
                free(u);
                return error_os(err, failed, "cannot start a thread");
        }
        pthread_setname_np(u->thread, "unnamed");
        *ret = u;
        return ST_OK;
}

void unnamed_follow_stop(struct unnamed_follow *u)
{
        if (!u)
                return;
        pthread_mutex_lock(&u->lock);
        u->stop = true;
        pthread_cond_signal(&u->changed);
        pthread_mutex_unlock(&u->lock);
        pthread_join(u->thread, NULL);
        pthread_cond_destroy(&u->changed);
        pthread_mutex_destroy(&u->lock);
        free(u);
}
