/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients that wait for one entry of the table share it, so equal questions in
 * flight are one. What samples wish for waits in a queue for a few threads; the
 * question of a client that waits gets a thread of its own at once (an errand),
 * so that it stands neither behind wishes nor behind a slow upstream, and goes
 * on when the client has left.
 *
 * Services may be each other's upstreams. What makes questions equal is then
 * also the list of services they came through: each service adds its own name
 * to what it asks and answers what comes back with it from its store alone, so
 * whoever waits for another waits with a longer list, and no ring of waiting
 * comes about. The miss of a forwarded question is not the whole truth, since
 * who asked was left out, and is remembered only as long as an error; that of
 * a direct question holds for all. A forwarded question that finds no room waits
 * in the queue for that of its like (federation_internal.h), not for a thread of
 * the service, so that services whose threads all wait for each other still answer.
 */
#include "debuginfo-store/federation.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/limits.h"
#include "common/metrics.h"
#include "debuginfo-store/federation_internal.h"

static struct metric fetched = METRIC_COUNTER("cairn_federation_fetches_total",
                                              "Build-ids looked for at upstreams, by outcome.", "outcome=\"found\"");
static struct metric missed = METRIC_COUNTER("cairn_federation_fetches_total",
                                             "Build-ids looked for at upstreams, by outcome.", "outcome=\"missing\"");
static struct metric failed = METRIC_COUNTER("cairn_federation_fetches_total",
                                             "Build-ids looked for at upstreams, by outcome.", "outcome=\"failed\"");

/* ---- one question ---- */

struct visible {
        struct federation *f;
        struct wanted *w;
};

/* From its first bytes on, who waits may read along; NULL: no more. */
static void show(void *context, struct download *d)
{
        struct visible *v = context;

        pthread_mutex_lock(&v->f->lock);
        download_unref(v->w->download);
        v->w->download = d ? download_ref(d) : NULL;
        pthread_cond_broadcast(&v->f->changed);
        pthread_mutex_unlock(&v->f->lock);
}

static void tell(struct federation *f, const struct wanted *w, enum asked asked, const struct stored_object *object,
                 const struct error *err)
{
        metric_add(asked == ASKED_STORED ? &fetched : asked == ASKED_MISSING ? &missed : &failed, 1);
        if (asked == ASKED_STORED && f->options.arrived && !wanted_is_piece(w->part))
                f->options.arrived(f->options.context, object);
        if ((asked == ASKED_FAILED || asked == ASKED_REFUSED) && !f->stop && f->options.failed)
                f->options.failed(f->options.context, &w->id, err);
}

/* Not when the upstream knows it by one of its other names: it is stored under its build-id, where who waits does not look. */
static bool is_found(struct federation *f, const struct wanted *w)
{
        struct stored_object have;
        enum object_kind kind;

        return !object_kind_parse(w->part, &kind) || debuginfo_store_find(f->asker.store, &w->id, kind, &have, NULL) != ST_NOT_FOUND;
}

/* Ask for what the entry is about. Called with the lock held, which is given up meanwhile; the entry may be gone then. */
static void fetch_entry(struct federation *f, struct wanted *w)
{
        struct visible visible = { f, w };
        struct stored_object object;
        struct error err = { 0 };
        enum asked asked;

        w->state = WANTED_IN_FLIGHT;
        pthread_mutex_unlock(&f->lock);
        asked = federation_ask(&f->asker, w, &f->stop, show, &visible, &object, &err);
        tell(f, w, asked, &object, &err);

        pthread_mutex_lock(&f->lock);
        if (asked == ASKED_STORED && !is_found(f, w))
                asked = ASKED_MISSING;
        if (asked == ASKED_STORED) {
                wanted_forget(&f->table, w);
        } else {
                bool is_for_long = asked == ASKED_REFUSED || (asked == ASKED_MISSING && !w->via[0]);
                uint64_t wait_s = is_for_long ? f->options.miss_s : f->options.error_s;

                w->state = asked == ASKED_MISSING ? WANTED_MISSING : WANTED_FAILED;
                w->forget_ns = monotonic_ns() + (int64_t)wait_s * 1000000000;
        }
        pthread_cond_broadcast(&f->changed);
}

/* ---- wishes ---- */

void federation_enqueue(struct federation *f, struct wanted *w)
{
        w->next_queued = NULL;
        *f->queue_last = w;
        f->queue_last = &w->next_queued;
        pthread_cond_broadcast(&f->changed);
}

void federation_dequeue(struct federation *f, struct wanted *w)
{
        struct wanted **at = &f->queue_first;

        while (*at != w)
                at = &(*at)->next_queued;
        *at = w->next_queued;
        if (f->queue_last == &w->next_queued)
                f->queue_last = at;
}

static void *run(void *context)
{
        struct federation *f = context;

        pthread_setname_np(pthread_self(), "federation");
        pthread_mutex_lock(&f->lock);
        while (!f->stop) {
                struct wanted *w = f->queue_first;

                if (!w) {
                        pthread_cond_wait(&f->changed, &f->lock);
                        continue;
                }
                federation_dequeue(f, w);
                fetch_entry(f, w);
        }
        pthread_mutex_unlock(&f->lock);
        return NULL;
}

/* Called with the lock held, so that what is stored just now still has its entry or is found. */
static void want_one(struct federation *f, const struct build_id *id, enum object_kind kind, const struct forwarded *way)
{
        const char *part = object_kind_name(kind);
        struct stored_object have;
        struct wanted *w;

        if (wanted_find(&f->table, id, part, way) || debuginfo_store_find(f->asker.store, id, kind, &have, NULL) == ST_OK)
                return;
        w = wanted_add(&f->table, id, part, way);
        if (w)
                federation_enqueue(f, w);
}

void federation_want(struct federation *f, const struct build_id *ids, size_t count, enum object_kind kind)
{
        struct forwarded way;

        if (forwarded_parse(NULL, f->name, &way, NULL))
                return;
        for (size_t i = 0; i < count; i++) {
                pthread_mutex_lock(&f->lock);
                want_one(f, &ids[i], kind, &way);
                pthread_mutex_unlock(&f->lock);
        }
}

/* ---- errands ---- */

static unsigned services_passed(const struct wanted *w)
{
        return (unsigned)(strlen(w->via) / (FORWARDED_NAME_SIZE - 1));
}

static void *run_errand(void *context)
{
        struct visible *errand = context;
        struct federation *f = errand->f;
        unsigned passed;

        pthread_setname_np(pthread_self(), "errand");
        pthread_mutex_lock(&f->lock);
        passed = services_passed(errand->w);
        fetch_entry(f, errand->w);
        f->errands--;
        f->errands_through[passed]--;
        pthread_cond_broadcast(&f->changed);
        pthread_mutex_unlock(&f->lock); /* f may be gone from here on */
        free(errand);
        return NULL;
}

bool federation_has_room(const struct federation *f, const struct wanted *w)
{
        unsigned passed = services_passed(w);

        return f->errands_through[passed] < (passed < 2 ? FEDERATION_ERRANDS_MAX : FEDERATION_ERRANDS_FAR_MAX);
}

bool federation_start_errand(struct federation *f, struct wanted *w)
{
        struct visible *errand = federation_has_room(f, w) ? malloc(sizeof *errand) : NULL;
        pthread_attr_t attr;
        pthread_t thread;
        int rc;

        if (!errand)
                return false;
        *errand = (struct visible){ f, w };
        pthread_attr_init(&attr);
        pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
        rc = pthread_create(&thread, &attr, run_errand, errand);
        pthread_attr_destroy(&attr);
        if (rc) {
                free(errand);
                return false;
        }
        w->state = WANTED_IN_FLIGHT;
        f->errands++;
        f->errands_through[services_passed(w)]++;
        return true;
}

/* ---- the whole ---- */

void federation_get(struct federation *f, struct federation_status *ret)
{
        struct federation_status s = { .upstream_count = f->asker.upstream_count };

        pthread_mutex_lock(&f->lock);
        for (size_t b = 0; b < WANTED_BUCKETS; b++) {
                for (const struct wanted *w = f->table.buckets[b]; w; w = w->next) {
                        s.queued += w->state == WANTED_QUEUED;
                        s.in_flight += w->state == WANTED_IN_FLIGHT;
                        s.missing += w->state == WANTED_MISSING && w->forget_ns > monotonic_ns();
                        s.failed += w->state == WANTED_FAILED && w->forget_ns > monotonic_ns();
                }
        }
        pthread_mutex_unlock(&f->lock);
        *ret = s;
}

void federation_get_upstream(struct federation *f, size_t i, struct upstream_status *ret)
{
        upstream_get(f->asker.upstreams[i], ret);
}

static enum status start_threads(struct federation *f, struct error *err)
{
        while (f->thread_count < f->options.threads) {
                int rc = pthread_create(&f->threads[f->thread_count], NULL, run, f);

                if (rc)
                        return error_os(err, rc, "cannot start a federation thread");
                f->thread_count++;
        }
        return ST_OK;
}

enum status federation_start(struct debuginfo_store *store, const struct federation_options *o, struct federation **ret,
                             struct error *err)
{
        struct federation *f = calloc(1, sizeof *f);
        enum status st = f ? forwarded_name(f->name, err) : error_no_memory(err);

        if (st) {
                free(f);
                return st;
        }
        f->options = *o;
        f->options.miss_s = o->miss_s ? o->miss_s : 600;
        f->options.error_s = o->error_s ? o->error_s : 30;
        f->options.threads = !o->threads ? 2 : o->threads < FEDERATION_THREADS_MAX ? o->threads : FEDERATION_THREADS_MAX;
        f->queue_last = &f->queue_first;
        pthread_mutex_init(&f->lock, NULL);
        pthread_cond_init(&f->changed, NULL);
        metric_register(&fetched);
        metric_register(&missed);
        metric_register(&failed);
        st = federation_asker_init(&f->asker, store, o, err);
        if (!st)
                st = start_threads(f, err);
        if (st)
                federation_stop(f);
        else
                *ret = f;
        return st;
}

void federation_stop(struct federation *f)
{
        if (!f)
                return;
        pthread_mutex_lock(&f->lock);
        f->stop = true;
        pthread_cond_broadcast(&f->changed);
        while (f->errands)
                pthread_cond_wait(&f->changed, &f->lock);
        pthread_mutex_unlock(&f->lock);
        for (unsigned i = 0; i < f->thread_count; i++)
                pthread_join(f->threads[i], NULL);
        wanted_deinit(&f->table);
        federation_asker_deinit(&f->asker);
        pthread_cond_destroy(&f->changed);
        pthread_mutex_destroy(&f->lock);
        free(f);
}
