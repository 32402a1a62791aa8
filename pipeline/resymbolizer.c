/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An object passes through lists: `expected` (a job may change its symbols), `ready` (they changed), `running` (in the
 * current round). One that fails alone is in `failing` with the time of its retry; when that is due it is ready again
 * and leaves `failing` after a success. The queue file has the objects of all lists, so moving one needs no write: it
 * is written before a change, after a change that did not take place, and after a round.
 *
 * One thread runs the rounds (run_resymbolizer()): it waits GATHER_MS for further objects and passes all ready ones to
 * each store in one call. resymbolize_objects() bisects after a failure that one object may cause; other failures, as
 * of a full disk, end the round.
 *
 * Order: queue file, failing objects, delays of uploads, rounds and the thread, start and stop, expected changes.
 *
 * Lock: `lock` protects the lists and noted uploads. It is held while the queue file is written, and released while a
 * store works and while the thread waits.
 */
#include "pipeline/resymbolizer.h"

#include <assert.h>
#include <inttypes.h>
#include <pthread.h>
#include <string.h>

#include "common/clock.h"
#include "common/files/file.h"
#include "common/limits.h"
#include "common/memory/array.h"
#include "common/metrics.h"
#include "common/program/log.h"
#include "common/text/number_text.h"
#include "common/threads/condition.h"
#include "pipeline/id_set.h"

#define GATHER_MS 150     /* objects that change within this time share a round */
#define RETRY_MS 2000     /* after a failure; doubled with each further failure */
#define RETRY_DOUBLINGS 7 /* at most: 256 s */
#define ATTEMPTS_MAX 64   /* per round, to find the objects that fail */
#define UPLOADS_MAX 256
#define LONG_DELAY_MS 5000

static struct metric rounds =
        METRIC_COUNTER("cairn_resymbolize_rounds_total", "Re-symbolization rounds after symbol changes.", "");
static struct metric failures =
        METRIC_COUNTER("cairn_resymbolize_failures_total", "Failed re-symbolizations, which are retried.", "");
static struct metric resymbolized_objects =
        METRIC_COUNTER("cairn_resymbolize_objects_total", "Re-symbolized objects.", "");
static struct metric resymbolized_locations =
        METRIC_COUNTER("cairn_resymbolize_locations_total", "Locations rewritten with better symbols.", "");
static struct metric delays =
        METRIC_COUNTER("cairn_resymbolize_delays_total", "Uploads after which locations were re-symbolized.", "");
static struct metric delay_sum = METRIC_SECONDS("cairn_resymbolize_delay_seconds_total",
                                                "Time from these uploads until the new names are in the tables.", "");
static struct metric long_delays =
        METRIC_COUNTER("cairn_resymbolize_long_delays_total", "Of these uploads, those that took more than 5 s.", "");
static struct metric failing_objects = METRIC_GAUGE(
        "cairn_resymbolize_failing", "Objects whose re-symbolization failed and that are retried separately.", "");
static struct metric waiting = METRIC_GAUGE(
        "cairn_resymbolize_queue", "Objects whose symbols changed and whose locations are not re-symbolized yet.", "");

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
        struct unresolved_counts *counts; /* NULL: samples are not counted */
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
static enum status save_queue(struct resymbolizer *r, struct error *err)
{
        _cleanup_buf_ struct buf text;
        enum status st;

        buf_init(&text, MiB(64));
        for (size_t i = 0; i < r->expected_count; i++)
                append_id_line(&text, &r->expected[i].id);
        append_id_lines(&text, &r->ready);
        append_id_lines(&text, &r->running);
        for (size_t i = 0; i < r->failing_count; i++)
                if (r->failing[i].retry_ns)
                        append_id_line(&text, &r->failing[i].id);
        st = buf_status(&text, err, "re-symbolization queue");
        return st ? st : file_write_durable(r->queue_path, text.data, text.size, err);
}

static enum status load_queue(struct resymbolizer *r, struct error *err)
{
        _cleanup_buf_ struct buf text;
        struct build_id id;
        enum status st;

        buf_init(&text, MiB(64));
        st = file_read(r->queue_path, &text, err);
        if (st)
                return st == ST_NOT_FOUND ? ST_OK : st;
        for (size_t at = 0; at < text.size;) {
                const char *line = (const char *)text.data + at;
                const char *end = memchr(line, '\n', text.size - at);
                size_t n = end ? (size_t)(end - line) : text.size - at;

                if (!build_id_from_hex(&id, line, n))
                        log_warn("resymbolize", "'%s' contains a line that is not a build-id, ignoring", r->queue_path);
                else if (id_set_add(&r->ready, &id))
                        return error_no_memory(err);
                at += n + 1;
        }
        if (r->ready.count)
                log_info("resymbolize", "%s not re-symbolized before the last stop",
                         COUNTED(r->ready.count, "object was", "objects were"));
        return ST_OK;
}

/* Sleep for this time or until the stop. Caller holds the lock. */
static void wait_resymbolizer_ms(struct resymbolizer *r, int64_t ms)
{
        int64_t until = monotonic_ns() + ms * 1000000;

        while (!r->stop && condition_wait_until(&r->changed, &r->lock, until))
                ;
}

/* ---- objects that fail ---------------------------------------------------------------- */

static void update_resymbolizer_metrics(struct resymbolizer *r)
{
        size_t apart = 0;

        for (size_t i = 0; i < r->failing_count; i++)
                apart += r->failing[i].retry_ns != 0;
        metric_set_share(&waiting, &r->waiting_share, (int64_t)(r->ready.count + apart));
        metric_set_share(&failing_objects, &r->failing_share, (int64_t)r->failing_count);
}

static void enqueue_ready(struct resymbolizer *r, const struct build_id *id)
{
        if (id_set_add(&r->ready, id))
                log_warn("resymbolize", "not enough memory to record an object; run 'cairn resymbolize'");
}

static struct failing_object *find_failing_object(struct resymbolizer *r, const struct build_id *id)
{
        for (size_t i = 0; i < r->failing_count; i++)
                if (build_id_equal(&r->failing[i].id, id))
                        return &r->failing[i];
        return NULL;
}

/* The object failed alone: retry it later, separately. */
static void postpone_failing_object(struct resymbolizer *r, const struct build_id *id, const char *why)
{
        struct failing_object *f = find_failing_object(r, id);
        char hex[BUILD_ID_HEX_MAX];
        int64_t wait;

        if (!f) {
                if (!array_reserve(&r->failing, &r->failing_capacity, r->failing_count)) {
                        enqueue_ready(r, id);
                        return;
                }
                f = &r->failing[r->failing_count++];
                *f = (struct failing_object){ .id = *id };
        }
        wait = (int64_t)RETRY_MS << (f->failures < RETRY_DOUBLINGS ? f->failures : RETRY_DOUBLINGS);
        f->failures++;
        f->retry_ns = monotonic_ns() + wait * 1000000;
        log_warn("resymbolize", "%s: %s; retrying in %" PRId64 " s", build_id_hex(id, hex), why, wait / 1000);
}

static void remove_failing_objects(struct resymbolizer *r, const struct build_id *ids, size_t count)
{
        for (size_t i = 0; i < count; i++) {
                struct failing_object *f = find_failing_object(r, &ids[i]);

                if (f)
                        *f = r->failing[--r->failing_count];
        }
}

/* Move failing objects that are due to the ready set. Returns the next due time; 0: none. */
static int64_t enqueue_due_retries(struct resymbolizer *r)
{
        int64_t now = monotonic_ns(), next = 0;

        for (size_t i = 0; i < r->failing_count; i++) {
                struct failing_object *f = &r->failing[i];

                if (!f->retry_ns)
                        continue;
                if (f->retry_ns <= now) {
                        f->retry_ns = 0;
                        enqueue_ready(r, &f->id);
                } else if (!next || f->retry_ns < next) {
                        next = f->retry_ns;
                }
        }
        return next;
}

/* ---- time from an upload to the new names ---------------------------------------------------- */

void resymbolizer_note_upload(struct resymbolizer *r, const struct build_id *id)
{
        pthread_mutex_lock(&r->lock);
        r->uploads[r->next_upload] = (struct noted_upload){ *id, monotonic_ns() };
        r->next_upload = (r->next_upload + 1) % UPLOADS_MAX;
        pthread_mutex_unlock(&r->lock);
}

/* Caller holds the lock. */
static void count_upload_delays(struct resymbolizer *r, const struct build_id *id)
{
        for (size_t i = 0; i < UPLOADS_MAX; i++) {
                struct noted_upload *u = &r->uploads[i];
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
        size_t resymbolized;
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
static enum status resymbolize_stores(const struct resymbolizer *r, const struct build_id *ids, size_t count,
                                      struct resymbolize_result *sum, struct error *err)
{
        const struct resymbolize_request request = { .ids = ids, .count = count };
        enum status first = ST_OK;

        for (size_t i = 0; i < r->store_count; i++) {
                struct resymbolize_result result = { 0 };
                enum status st = profile_store_resymbolize(r->stores[i], &request, &result, first ? NULL : err);

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
static void resymbolize_objects(struct resymbolizer *r, struct round *round, const struct build_id *ids, size_t count)
{
        struct resymbolize_result result = { 0 };
        struct error err;
        enum status st;

        if (round->wait || round->attempts++ == ATTEMPTS_MAX || r->stop) {
                round->wait = true;
                for (size_t i = 0; i < count; i++)
                        enqueue_ready(r, &ids[i]);
                return;
        }
        pthread_mutex_unlock(&r->lock);
        st = resymbolize_stores(r, ids, count, &result, &err);
        pthread_mutex_lock(&r->lock);
        if (!st) {
                remove_failing_objects(r, ids, count);
                for (size_t i = 0; i < count; i++)
                        count_upload_delays(r, &ids[i]);
                round->resymbolized += count;
                round->result.locations_changed += result.locations_changed;
                round->result.locations_seen += result.locations_seen;
                return;
        }
        metric_add(&failures, 1);
        if (count == 1) {
                postpone_failing_object(r, ids, err.text);
        } else if (may_be_caused_by_one_object(st)) {
                log_warn("resymbolize", "%s: %s; bisecting", COUNTED(count, "object", "objects"), err.text);
                resymbolize_objects(r, round, ids, count / 2);
                resymbolize_objects(r, round, ids + count / 2, count - count / 2);
        } else {
                log_warn("resymbolize", "%s: %s; retrying", COUNTED(count, "object", "objects"), err.text);
                for (size_t i = 0; i < count; i++)
                        enqueue_ready(r, &ids[i]);
                round->wait = true;
        }
}

/* One round over all ready objects. Caller holds the lock; it is released during the work. */
static void run_resymbolizer_round(struct resymbolizer *r)
{
        struct round round = { 0 };
        struct error err;
        int64_t start = monotonic_ns();

        r->running = r->ready;
        r->ready = (struct id_set){ 0 };
        resymbolize_objects(r, &round, r->running.items, r->running.count);
        id_set_deinit(&r->running);
        if (save_queue(r, &err))
                log_warn("resymbolize", "%s", err.text);
        if (round.resymbolized) {
                log_info("resymbolize", "%zu objects, %" PRIu64 " of %" PRIu64 " locations changed in %" PRId64 " ms",
                         round.resymbolized, round.result.locations_changed, round.result.locations_seen,
                         (monotonic_ns() - start) / 1000000);
                metric_add(&resymbolized_objects, (int64_t)round.resymbolized);
                metric_add(&resymbolized_locations, (int64_t)round.result.locations_changed);
                metric_add(&rounds, 1);
                unresolved_counts_request(r->counts);
        }
        update_resymbolizer_metrics(r);
        if (round.wait)
                wait_resymbolizer_ms(r, RETRY_MS);
}

static void *run_resymbolizer(void *arg)
{
        struct resymbolizer *r = arg;

        pthread_mutex_lock(&r->lock);
        while (!r->stop) {
                int64_t next = enqueue_due_retries(r);

                if (!r->ready.count) {
                        if (next)
                                condition_wait_until(&r->changed, &r->lock, next);
                        else
                                pthread_cond_wait(&r->changed, &r->lock);
                        continue;
                }
                wait_resymbolizer_ms(r, GATHER_MS);
                if (!r->stop)
                        run_resymbolizer_round(r);
        }
        pthread_mutex_unlock(&r->lock);
        return NULL;
}

enum status resymbolizer_start(struct profile_store *const *stores, size_t store_count,
                               struct unresolved_counts *counts, const char *queue_path, struct resymbolizer **ret,
                               struct error *err)
{
        struct resymbolizer *r = calloc(1, sizeof *r);
        enum status st;
        int failed;

        if (!r)
                return error_no_memory(err);
        metric_register(&rounds);
        metric_register(&failures);
        metric_register(&resymbolized_objects);
        metric_register(&resymbolized_locations);
        metric_register(&delays);
        metric_register(&delay_sum);
        metric_register(&long_delays);
        metric_register(&failing_objects);
        metric_register(&waiting);
        pthread_mutex_init(&r->lock, NULL);
        pthread_cond_init(&r->changed, NULL);
        r->stores = stores;
        r->store_count = store_count;
        r->counts = counts;
        r->queue_path = strdup(queue_path);
        st = r->queue_path ? load_queue(r, err) : error_no_memory(err);
        if (!st) {
                update_resymbolizer_metrics(r);
                failed = pthread_create(&r->thread, NULL, run_resymbolizer, r);
                r->started = !failed;
                if (failed)
                        st = error_os(err, failed, "cannot start a thread");
        }
        if (st) {
                resymbolizer_stop(r);
                return st;
        }
        pthread_setname_np(r->thread, "resymbolize");
        *ret = r;
        return ST_OK;
}

void resymbolizer_stop(struct resymbolizer *r)
{
        if (!r)
                return;
        if (r->started) {
                pthread_mutex_lock(&r->lock);
                r->stop = true;
                pthread_cond_broadcast(&r->changed);
                pthread_mutex_unlock(&r->lock);
                pthread_join(r->thread, NULL);
        }
        metric_set_share(&waiting, &r->waiting_share, 0);
        metric_set_share(&failing_objects, &r->failing_share, 0);
        pthread_cond_destroy(&r->changed);
        pthread_mutex_destroy(&r->lock);
        free(r->expected);
        free(r->failing);
        id_set_deinit(&r->ready);
        free(r->queue_path);
        free(r);
}

static size_t find_expectation(const struct resymbolizer *r, const struct build_id *id)
{
        size_t i = 0;

        while (i < r->expected_count && !build_id_equal(&r->expected[i].id, id))
                i++;
        return i;
}

/* One of the jobs that expect a change ended. */
static void release_expectation(struct resymbolizer *r, const struct build_id *id)
{
        size_t i = find_expectation(r, id);

        assert(i == r->expected_count || r->expected[i].jobs > 0);
        if (i < r->expected_count && --r->expected[i].jobs == 0)
                r->expected[i] = r->expected[--r->expected_count];
}

enum status resymbolizer_expect_change(struct resymbolizer *r, const struct build_id *id, struct error *err)
{
        enum status st = ST_OK;
        size_t i;

        pthread_mutex_lock(&r->lock);
        i = find_expectation(r, id);
        if (i < r->expected_count) {
                r->expected[i].jobs++;
        } else if (!array_reserve(&r->expected, &r->expected_capacity, r->expected_count)) {
                st = error_no_memory(err);
        } else {
                r->expected[r->expected_count++] = (struct expectation){ *id, 1 };
                st = save_queue(r, err);
                if (st)
                        release_expectation(r, id);
        }
        pthread_mutex_unlock(&r->lock);
        return st;
}

void resymbolizer_end_change(struct resymbolizer *r, const struct build_id *id, bool changed)
{
        struct error err;

        pthread_mutex_lock(&r->lock);
        release_expectation(r, id);
        if (changed) {
                struct failing_object *f = find_failing_object(r, id);

                if (f)
                        f->retry_ns = 0; /* retry at once: the symbols changed */
                enqueue_ready(r, id);
                update_resymbolizer_metrics(r);
                pthread_cond_broadcast(&r->changed);
        } else if (save_queue(r, &err)) {
                log_warn("resymbolize", "%s", err.text);
        }
        pthread_mutex_unlock(&r->lock);
}
