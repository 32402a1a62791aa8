/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/resymbolizer.h"

#include <assert.h>
#include <inttypes.h>
#include <pthread.h>
#include <string.h>

#include "common/array.h"
#include "common/clock.h"
#include "common/condition.h"
#include "common/file.h"
#include "common/limits.h"
#include "common/log.h"
#include "common/metrics.h"
#include "pipeline/id_set.h"

#define GATHER_MS 150     /* objects that change within this time share a round */
#define RETRY_MS 2000     /* after a failure; doubled with each further failure */
#define RETRY_DOUBLINGS 7 /* at most: 256 s */
#define ATTEMPTS_MAX 64   /* per round, to find the objects that fail */
#define UPLOADS_MAX 256
#define LONG_DELAY_MS 5000

static struct metric rounds =
        METRIC_COUNTER("cairn_heal_rounds_total", "Re-symbolization rounds after symbol changes.", "");
static struct metric failures =
        METRIC_COUNTER("cairn_heal_failures_total", "Failed re-symbolizations, which are retried.", "");
static struct metric healed_objects = METRIC_COUNTER("cairn_heal_objects_total", "Re-symbolized objects.", "");
static struct metric healed_locations =
        METRIC_COUNTER("cairn_heal_locations_total", "Locations rewritten with better symbols.", "");
static struct metric delays =
        METRIC_COUNTER("cairn_heal_delays_total", "Uploads after which locations were re-symbolized.", "");
static struct metric delay_sum = METRIC_COUNTER("cairn_heal_delay_milliseconds_total",
                                                "Time from these uploads until the new names are in the tables.", "");
static struct metric long_delays =
        METRIC_COUNTER("cairn_heal_long_delays_total", "Of these uploads, those that took more than 5 s.", "");
static struct metric failing_objects = METRIC_GAUGE(
        "cairn_heal_failing", "Objects whose re-symbolization failed and that are retried separately.", "");
static struct metric waiting = METRIC_GAUGE(
        "cairn_heal_queue", "Objects whose symbols changed and whose locations are not re-symbolized yet.", "");

/*
 * Number of running jobs that may change the symbols of this id: an object's own, or that of an object with this alias.
 */
struct expectation {
        struct build_id id;
        unsigned jobs; /* at least 1 */
};

/* An object whose own re-symbolization failed. It is retried separately, with exponential backoff. */
struct failing_object {
        struct build_id id;
        unsigned failures; /* in a row */
        int64_t retry_ns;  /* monotonic; 0: ready or running again */
};

/* A file of this object was uploaded at this monotonic time; 0: unused, or its delay was counted. */
struct noted_upload {
        struct build_id id;
        int64_t at_ns;
};

struct resymbolizer {
        struct profile_store *const *stores;
        size_t store_count;
        char *queue_path;
        pthread_mutex_t lock;
        pthread_cond_t changed;
        /*
         * An object moves from one list to the next, or from running to failing; the queue file contains all of them.
         */
        struct expectation *expected;
        size_t expected_count, expected_capacity;
        struct id_set ready, running;
        struct failing_object *failing;
        size_t failing_count, failing_capacity;
        struct noted_upload uploads[UPLOADS_MAX];
        size_t next_upload; /* next slot to overwrite */
        bool stop;
        bool started;
        pthread_t thread;
        _Atomic int64_t waiting_share, failing_share; /* this resymbolizer's shares of the gauges */
};

static void append_id_line(struct buf *text, const struct build_id *id)
{
        char hex[BUILD_ID_HEX_MAX];

        buf_printf(text, "%s\n", build_id_hex(id, hex));
}

static void append_id_lines(struct buf *text, const struct id_set *ids)
{
        for (size_t i = 0; i < ids->count; i++)
                append_id_line(text, &ids->items[i]);
}

/* Caller holds the lock. */
static enum status save_queue(struct resymbolizer *h, struct error *err)
{
        _cleanup_buf_ struct buf text;
        enum status st;

        buf_init(&text, MiB(64));
        for (size_t i = 0; i < h->expected_count; i++)
                append_id_line(&text, &h->expected[i].id);
        append_id_lines(&text, &h->ready);
        append_id_lines(&text, &h->running);
        for (size_t i = 0; i < h->failing_count; i++)
                if (h->failing[i].retry_ns)
                        append_id_line(&text, &h->failing[i].id);
        st = buf_status(&text, err, "heal queue");
        return st ? st : file_write_durable(h->queue_path, text.data, text.size, err);
}

static enum status load_queue(struct resymbolizer *h, struct error *err)
{
        _cleanup_buf_ struct buf text;
        struct build_id id;
        enum status st;

        buf_init(&text, MiB(64));
        st = file_read(h->queue_path, &text, err);
        if (st)
                return st == ST_NOT_FOUND ? ST_OK : st;
        for (size_t at = 0; at < text.size;) {
                const char *line = (const char *)text.data + at;
                const char *end = memchr(line, '\n', text.size - at);
                size_t n = end ? (size_t)(end - line) : text.size - at;

                if (!build_id_from_hex(&id, line, n))
                        log_warn("heal", "'%s' contains a line that is not a build-id, ignoring", h->queue_path);
                else if (id_set_add(&h->ready, &id))
                        return error_no_memory(err);
                at += n + 1;
        }
        if (h->ready.count)
                log_info("heal", "%zu objects were not re-symbolized before the last stop", h->ready.count);
        return ST_OK;
}

/* Sleep for this time or until the stop. Caller holds the lock. */
static void wait_resymbolizer_ms(struct resymbolizer *h, int64_t ms)
{
        int64_t until = monotonic_ns() + ms * 1000000;

        while (!h->stop && condition_wait_until(&h->changed, &h->lock, until))
                ;
}

/* ---- objects that fail ---------------------------------------------------------------- */

static void update_resymbolizer_metrics(struct resymbolizer *h)
{
        size_t apart = 0;

        for (size_t i = 0; i < h->failing_count; i++)
                apart += h->failing[i].retry_ns != 0;
        metric_set_share(&waiting, &h->waiting_share, (int64_t)(h->ready.count + apart));
        metric_set_share(&failing_objects, &h->failing_share, (int64_t)h->failing_count);
}

static void enqueue_ready(struct resymbolizer *h, const struct build_id *id)
{
        if (id_set_add(&h->ready, id))
                log_warn("heal", "not enough memory to record an object; run 'cairn resymbolize'");
}

static struct failing_object *find_failing_object(struct resymbolizer *h, const struct build_id *id)
{
        for (size_t i = 0; i < h->failing_count; i++)
                if (build_id_equal(&h->failing[i].id, id))
                        return &h->failing[i];
        return NULL;
}

/* The object failed alone: retry it later, separately. */
static void postpone_failing_object(struct resymbolizer *h, const struct build_id *id, const char *why)
{
        struct failing_object *f = find_failing_object(h, id);
        char hex[BUILD_ID_HEX_MAX];
        int64_t wait;

        if (!f) {
                if (!array_reserve(&h->failing, &h->failing_capacity, h->failing_count)) {
                        enqueue_ready(h, id);
                        return;
                }
                f = &h->failing[h->failing_count++];
                *f = (struct failing_object){ .id = *id };
        }
        wait = (int64_t)RETRY_MS << (f->failures < RETRY_DOUBLINGS ? f->failures : RETRY_DOUBLINGS);
        f->failures++;
        f->retry_ns = monotonic_ns() + wait * 1000000;
        log_warn("heal", "%s: %s; retrying in %" PRId64 " s", build_id_hex(id, hex), why, wait / 1000);
}

static void remove_failing_objects(struct resymbolizer *h, const struct build_id *ids, size_t count)
{
        for (size_t i = 0; i < count; i++) {
                struct failing_object *f = find_failing_object(h, &ids[i]);

                if (f)
                        *f = h->failing[--h->failing_count];
        }
}

/* Move failing objects that are due to the ready set. Returns the next due time; 0: none. */
static int64_t enqueue_due_retries(struct resymbolizer *h)
{
        int64_t now = monotonic_ns(), next = 0;

        for (size_t i = 0; i < h->failing_count; i++) {
                struct failing_object *f = &h->failing[i];

                if (!f->retry_ns)
                        continue;
                if (f->retry_ns <= now) {
                        f->retry_ns = 0;
                        enqueue_ready(h, &f->id);
                } else if (!next || f->retry_ns < next) {
                        next = f->retry_ns;
                }
        }
        return next;
}

/* ---- time from an upload to the new names ---------------------------------------------------- */

void resymbolizer_note_upload(struct resymbolizer *h, const struct build_id *id)
{
        pthread_mutex_lock(&h->lock);
        h->uploads[h->next_upload] = (struct noted_upload){ *id, monotonic_ns() };
        h->next_upload = (h->next_upload + 1) % UPLOADS_MAX;
        pthread_mutex_unlock(&h->lock);
}

/* Caller holds the lock. */
static void count_upload_delays(struct resymbolizer *h, const struct build_id *id)
{
        for (size_t i = 0; i < UPLOADS_MAX; i++) {
                struct noted_upload *u = &h->uploads[i];
                int64_t ms;

                if (!u->at_ns || !build_id_equal(&u->id, id))
                        continue;
                ms = (monotonic_ns() - u->at_ns) / 1000000;
                metric_add(&delays, 1);
                metric_add(&delay_sum, ms);
                metric_add(&long_delays, ms > LONG_DELAY_MS);
                u->at_ns = 0;
        }
}

/* ---- rounds ----------------------------------------------------------------------------- */

struct round {
        struct resymbolize_result result;
        size_t healed;
        unsigned attempts;
        bool wait; /* the failure is not caused by a single object: pause before the next round */
};

/*
 * Whether one object can cause this failure for the whole group. Bisection does not help against a full disk, for
 * example.
 */
static bool may_be_caused_by_one_object(enum status st)
{
        return st == ST_NO_MEMORY || st == ST_TOO_BIG || st == ST_BAD_DATA;
}

/* Continue with the other stores after a failure; the first failure is returned. */
static enum status resymbolize_stores(const struct resymbolizer *h, const struct build_id *ids, size_t count,
                                      struct resymbolize_result *sum, struct error *err)
{
        const struct resymbolize_request request = { .ids = ids, .count = count };
        enum status first = ST_OK;

        for (size_t i = 0; i < h->store_count; i++) {
                struct resymbolize_result result = { 0 };
                enum status st = profile_store_resymbolize(h->stores[i], &request, &result, first ? NULL : err);

                first = first ? first : st;
                sum->locations_changed += result.locations_changed;
                sum->locations_seen += result.locations_seen;
        }
        return first;
}

/*
 * Re-symbolize these objects together; on failure bisect, down to the objects that fail alone. Caller holds the lock;
 * it is released during the work.
 */
static void resymbolize_objects(struct resymbolizer *h, struct round *r, const struct build_id *ids, size_t count)
{
        struct resymbolize_result result = { 0 };
        struct error err;
        enum status st;

        if (r->wait || r->attempts++ == ATTEMPTS_MAX || h->stop) {
                r->wait = true;
                for (size_t i = 0; i < count; i++)
                        enqueue_ready(h, &ids[i]);
                return;
        }
        pthread_mutex_unlock(&h->lock);
        st = resymbolize_stores(h, ids, count, &result, &err);
        pthread_mutex_lock(&h->lock);
        if (!st) {
                remove_failing_objects(h, ids, count);
                for (size_t i = 0; i < count; i++)
                        count_upload_delays(h, &ids[i]);
                r->healed += count;
                r->result.locations_changed += result.locations_changed;
                r->result.locations_seen += result.locations_seen;
                return;
        }
        metric_add(&failures, 1);
        if (count == 1) {
                postpone_failing_object(h, ids, err.text);
        } else if (may_be_caused_by_one_object(st)) {
                log_warn("heal", "%zu objects: %s; bisecting", count, err.text);
                resymbolize_objects(h, r, ids, count / 2);
                resymbolize_objects(h, r, ids + count / 2, count - count / 2);
        } else {
                log_warn("heal", "%zu objects: %s; retrying", count, err.text);
                for (size_t i = 0; i < count; i++)
                        enqueue_ready(h, &ids[i]);
                r->wait = true;
        }
}

/* One round over all ready objects. Caller holds the lock; it is released during the work. */
static void run_resymbolizer_round(struct resymbolizer *h)
{
        struct round r = { 0 };
        struct error err;
        int64_t start = monotonic_ns();

        h->running = h->ready;
        h->ready = (struct id_set){ 0 };
        resymbolize_objects(h, &r, h->running.items, h->running.count);
        id_set_deinit(&h->running);
        if (save_queue(h, &err))
                log_warn("heal", "%s", err.text);
        if (r.healed) {
                log_info("heal", "%zu objects, %" PRIu64 " of %" PRIu64 " locations changed in %" PRId64 " ms",
                         r.healed, r.result.locations_changed, r.result.locations_seen,
                         (monotonic_ns() - start) / 1000000);
                metric_add(&healed_objects, (int64_t)r.healed);
                metric_add(&healed_locations, (int64_t)r.result.locations_changed);
                metric_add(&rounds, 1);
        }
        update_resymbolizer_metrics(h);
        if (r.wait)
                wait_resymbolizer_ms(h, RETRY_MS);
}

static void *run_resymbolizer(void *arg)
{
        struct resymbolizer *h = arg;

        pthread_mutex_lock(&h->lock);
        while (!h->stop) {
                int64_t next = enqueue_due_retries(h);

                if (!h->ready.count) {
                        if (next)
                                condition_wait_until(&h->changed, &h->lock, next);
                        else
                                pthread_cond_wait(&h->changed, &h->lock);
                        continue;
                }
                wait_resymbolizer_ms(h, GATHER_MS);
                if (!h->stop)
                        run_resymbolizer_round(h);
        }
        pthread_mutex_unlock(&h->lock);
        return NULL;
}

enum status resymbolizer_start(struct profile_store *const *stores, size_t store_count, const char *queue_path,
                               struct resymbolizer **ret, struct error *err)
{
        struct resymbolizer *h = calloc(1, sizeof *h);
        enum status st;
        int failed;

        if (!h)
                return error_no_memory(err);
        metric_register(&rounds);
        metric_register(&failures);
        metric_register(&healed_objects);
        metric_register(&healed_locations);
        metric_register(&delays);
        metric_register(&delay_sum);
        metric_register(&long_delays);
        metric_register(&failing_objects);
        metric_register(&waiting);
        pthread_mutex_init(&h->lock, NULL);
        pthread_cond_init(&h->changed, NULL);
        h->stores = stores;
        h->store_count = store_count;
        h->queue_path = strdup(queue_path);
        st = h->queue_path ? load_queue(h, err) : error_no_memory(err);
        if (!st) {
                update_resymbolizer_metrics(h);
                failed = pthread_create(&h->thread, NULL, run_resymbolizer, h);
                h->started = !failed;
                if (failed)
                        st = error_os(err, failed, "cannot start a thread");
        }
        if (st) {
                resymbolizer_stop(h);
                return st;
        }
        pthread_setname_np(h->thread, "heal");
        *ret = h;
        return ST_OK;
}

void resymbolizer_stop(struct resymbolizer *h)
{
        if (!h)
                return;
        if (h->started) {
                pthread_mutex_lock(&h->lock);
                h->stop = true;
                pthread_cond_broadcast(&h->changed);
                pthread_mutex_unlock(&h->lock);
                pthread_join(h->thread, NULL);
        }
        metric_set_share(&waiting, &h->waiting_share, 0);
        metric_set_share(&failing_objects, &h->failing_share, 0);
        pthread_cond_destroy(&h->changed);
        pthread_mutex_destroy(&h->lock);
        free(h->expected);
        free(h->failing);
        id_set_deinit(&h->ready);
        free(h->queue_path);
        free(h);
}

static size_t find_expectation(const struct resymbolizer *h, const struct build_id *id)
{
        size_t i = 0;

        while (i < h->expected_count && !build_id_equal(&h->expected[i].id, id))
                i++;
        return i;
}

/* One of the jobs that expect a change ended. */
static void release_expectation(struct resymbolizer *h, const struct build_id *id)
{
        size_t i = find_expectation(h, id);

        assert(i == h->expected_count || h->expected[i].jobs > 0);
        if (i < h->expected_count && --h->expected[i].jobs == 0)
                h->expected[i] = h->expected[--h->expected_count];
}

enum status resymbolizer_expect_change(struct resymbolizer *h, const struct build_id *id, struct error *err)
{
        enum status st = ST_OK;
        size_t i;

        pthread_mutex_lock(&h->lock);
        i = find_expectation(h, id);
        if (i < h->expected_count) {
                h->expected[i].jobs++;
        } else if (!array_reserve(&h->expected, &h->expected_capacity, h->expected_count)) {
                st = error_no_memory(err);
        } else {
                h->expected[h->expected_count++] = (struct expectation){ *id, 1 };
                st = save_queue(h, err);
                if (st)
                        release_expectation(h, id);
        }
        pthread_mutex_unlock(&h->lock);
        return st;
}

void resymbolizer_end_change(struct resymbolizer *h, const struct build_id *id, bool changed)
{
        struct error err;

        pthread_mutex_lock(&h->lock);
        release_expectation(h, id);
        if (changed) {
                struct failing_object *f = find_failing_object(h, id);

                if (f)
                        f->retry_ns = 0; /* retry at once: the symbols changed */
                enqueue_ready(h, id);
                update_resymbolizer_metrics(h);
                pthread_cond_broadcast(&h->changed);
        } else if (save_queue(h, &err)) {
                log_warn("heal", "%s", err.text);
        }
        pthread_mutex_unlock(&h->lock);
}
