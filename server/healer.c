/* SPDX-License-Identifier: Apache-2.0 */
#include "server/healer.h"

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
#include "server/id_set.h"

#define GATHER_MS 150      /* objects that follow each other closely share a round */
#define RETRY_MS 2000      /* after a failure; doubled with each one that follows */
#define RETRY_DOUBLINGS 7  /* at most: 256 s */
#define ATTEMPTS_MAX 64    /* of one round, to find the objects that fail */

static struct metric rounds = METRIC_COUNTER("cairn_heal_rounds_total", "Re-symbolizations done after symbols changed.", "");
static struct metric failures = METRIC_COUNTER("cairn_heal_failures_total", "Re-symbolizations that failed and are repeated.", "");
static struct metric healed_objects = METRIC_COUNTER("cairn_heal_objects_total", "Objects whose locations were looked up again.", "");
static struct metric healed_locations = METRIC_COUNTER("cairn_heal_locations_total", "Locations rewritten with better symbols.", "");
static struct metric failing_objects =
        METRIC_GAUGE("cairn_heal_failing", "Objects whose re-symbolization failed, which is repeated apart from others.", "");
static struct metric waiting = METRIC_GAUGE("cairn_heal_queue", "Objects whose symbols changed and whose locations wait.", "");

/* Jobs that are about to change the symbols of one id: of the object itself, and of one that it is an alias of. */
struct expectation {
        struct build_id id;
        unsigned jobs; /* at least 1 */
};

/* An object that failed on its own. It waits apart from the others, longer each time. */
struct failing_object {
        struct build_id id;
        unsigned failures; /* in a row */
        int64_t retry_ns;  /* monotonic; 0: it is ready or running again */
};

struct healer {
        struct profile_store *profiles;
        char *queue_path;
        pthread_mutex_t lock;
        pthread_cond_t changed;
        /* An object moves from one to the next, or from running to failing; the file holds all of them. */
        struct expectation *expected;
        size_t expected_count, expected_capacity;
        struct id_set ready, running;
        struct failing_object *failing;
        size_t failing_count, failing_capacity;
        bool stop;
        bool started;
        pthread_t thread;
};

static void put_id(struct buf *text, const struct build_id *id)
{
        char hex[BUILD_ID_HEX_MAX];

        buf_printf(text, "%s\n", build_id_hex(id, hex));
}

static void put_ids(struct buf *text, const struct id_set *ids)
{
        for (size_t i = 0; i < ids->count; i++)
                put_id(text, &ids->items[i]);
}

/* Called with the lock held. */
static enum status save(struct healer *h, struct error *err)
{
        _cleanup_buf_ struct buf text;
        enum status st;

        buf_init(&text, MiB(64));
        for (size_t i = 0; i < h->expected_count; i++)
                put_id(&text, &h->expected[i].id);
        put_ids(&text, &h->ready);
        put_ids(&text, &h->running);
        for (size_t i = 0; i < h->failing_count; i++)
                if (h->failing[i].retry_ns)
                        put_id(&text, &h->failing[i].id);
        st = buf_status(&text, err, "heal queue");
        return st ? st : file_write_durable(h->queue_path, text.data, text.size, err);
}

static enum status load(struct healer *h, struct error *err)
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
                        log_warn("heal", "'%s' holds a line that is no build-id, ignoring", h->queue_path);
                else if (id_set_add(&h->ready, &id))
                        return error_no_memory(err);
                at += n + 1;
        }
        if (h->ready.count)
                log_info("heal", "%zu objects were not healed before the last end", h->ready.count);
        return ST_OK;
}

/* Wait for the time with the lock held, whatever is added meanwhile. */
static void wait_ms(struct healer *h, int64_t ms)
{
        int64_t until = monotonic_ns() + ms * 1000000;

        while (!h->stop && condition_wait_until(&h->changed, &h->lock, until))
                ;
}

/* ---- objects that fail ---------------------------------------------------------------- */

static void count_waiting(struct healer *h)
{
        size_t apart = 0;

        for (size_t i = 0; i < h->failing_count; i++)
                apart += h->failing[i].retry_ns != 0;
        metric_set(&waiting, (int64_t)(h->ready.count + apart));
        metric_set(&failing_objects, (int64_t)h->failing_count);
}

static void make_ready(struct healer *h, const struct build_id *id)
{
        if (id_set_add(&h->ready, id))
                log_warn("heal", "no memory to remember an object; 'cairn resymbolize' heals it");
}

static struct failing_object *find_failing(struct healer *h, const struct build_id *id)
{
        for (size_t i = 0; i < h->failing_count; i++)
                if (build_id_equal(&h->failing[i].id, id))
                        return &h->failing[i];
        return NULL;
}

/* It failed on its own: it waits, and others go on. */
static void set_apart(struct healer *h, const struct build_id *id, const char *why)
{
        struct failing_object *f = find_failing(h, id);
        char hex[BUILD_ID_HEX_MAX];
        int64_t wait;

        if (!f) {
                if (!array_reserve(&h->failing, &h->failing_capacity, h->failing_count)) {
                        make_ready(h, id);
                        return;
                }
                f = &h->failing[h->failing_count++];
                *f = (struct failing_object){ .id = *id };
        }
        wait = (int64_t)RETRY_MS << (f->failures < RETRY_DOUBLINGS ? f->failures : RETRY_DOUBLINGS);
        f->failures++;
        f->retry_ns = monotonic_ns() + wait * 1000000;
        log_warn("heal", "%s: %s; trying again in %" PRId64 " s", build_id_hex(id, hex), why, wait / 1000);
}

static void forget_failures(struct healer *h, const struct build_id *ids, size_t count)
{
        for (size_t i = 0; i < count; i++) {
                struct failing_object *f = find_failing(h, &ids[i]);

                if (f)
                        *f = h->failing[--h->failing_count];
        }
}

/* Those whose time has come are ready. Returns when the next one is, 0 without one. */
static int64_t retry_failing(struct healer *h)
{
        int64_t now = monotonic_ns(), next = 0;

        for (size_t i = 0; i < h->failing_count; i++) {
                struct failing_object *f = &h->failing[i];

                if (!f->retry_ns)
                        continue;
                if (f->retry_ns <= now) {
                        f->retry_ns = 0;
                        make_ready(h, &f->id);
                } else if (!next || f->retry_ns < next) {
                        next = f->retry_ns;
                }
        }
        return next;
}

/* ---- rounds ----------------------------------------------------------------------------- */

struct round {
        struct resymbolize_result result;
        size_t healed;
        unsigned attempts;
        bool wait; /* it failed for a reason that is not an object's */
};

/* Failures that one object can cause for all; a full disk, say, is not halved away. */
static bool can_be_one_object(enum status st)
{
        return st == ST_NO_MEMORY || st == ST_TOO_BIG || st == ST_BAD_DATA;
}

/*
 * Heal these objects together; when that fails, each half of them, down to the
 * objects that fail alone. Called with the lock held, which is given up meanwhile.
 */
static void heal_objects(struct healer *h, struct round *r, const struct build_id *ids, size_t count)
{
        struct resymbolize_result result = { 0 };
        struct error err;
        enum status st;

        if (r->wait || r->attempts++ == ATTEMPTS_MAX || h->stop) {
                r->wait = true;
                for (size_t i = 0; i < count; i++)
                        make_ready(h, &ids[i]);
                return;
        }
        pthread_mutex_unlock(&h->lock);
        st = profile_store_resymbolize(h->profiles, ids, count, NULL, NULL, &result, &err);
        pthread_mutex_lock(&h->lock);
        if (!st) {
                forget_failures(h, ids, count);
                r->healed += count;
                r->result.locations_changed += result.locations_changed;
                r->result.locations_seen += result.locations_seen;
                return;
        }
        metric_add(&failures, 1);
        if (count == 1) {
                set_apart(h, ids, err.text);
        } else if (can_be_one_object(st)) {
                log_warn("heal", "%zu objects: %s; trying each half of them", count, err.text);
                heal_objects(h, r, ids, count / 2);
                heal_objects(h, r, ids + count / 2, count - count / 2);
        } else {
                log_warn("heal", "%zu objects: %s; trying again", count, err.text);
                for (size_t i = 0; i < count; i++)
                        make_ready(h, &ids[i]);
                r->wait = true;
        }
}

/* One round over all that is ready. Called with the lock held, which is given up meanwhile. */
static void heal(struct healer *h)
{
        struct round r = { 0 };
        struct error err;
        int64_t start = monotonic_ns();

        h->running = h->ready;
        h->ready = (struct id_set){ 0 };
        heal_objects(h, &r, h->running.items, h->running.count);
        id_set_deinit(&h->running);
        if (save(h, &err))
                log_warn("heal", "%s", err.text);
        if (r.healed) {
                log_info("heal", "%zu objects, %" PRIu64 " of %" PRIu64 " locations changed in %" PRId64 " ms", r.healed,
                         r.result.locations_changed, r.result.locations_seen, (monotonic_ns() - start) / 1000000);
                metric_add(&healed_objects, (int64_t)r.healed);
                metric_add(&healed_locations, (int64_t)r.result.locations_changed);
                metric_add(&rounds, 1);
        }
        count_waiting(h);
        if (r.wait)
                wait_ms(h, RETRY_MS);
}

static void *run(void *arg)
{
        struct healer *h = arg;

        pthread_mutex_lock(&h->lock);
        while (!h->stop) {
                int64_t next = retry_failing(h);

                if (!h->ready.count) {
                        if (next)
                                condition_wait_until(&h->changed, &h->lock, next);
                        else
                                pthread_cond_wait(&h->changed, &h->lock);
                        continue;
                }
                wait_ms(h, GATHER_MS);
                if (!h->stop)
                        heal(h);
        }
        pthread_mutex_unlock(&h->lock);
        return NULL;
}

enum status healer_start(struct profile_store *profiles, const char *queue_path, struct healer **ret, struct error *err)
{
        struct healer *h = calloc(1, sizeof *h);
        enum status st;
        int failed;

        if (!h)
                return error_no_memory(err);
        metric_register(&rounds);
        metric_register(&failures);
        metric_register(&healed_objects);
        metric_register(&healed_locations);
        metric_register(&failing_objects);
        metric_register(&waiting);
        pthread_mutex_init(&h->lock, NULL);
        pthread_cond_init(&h->changed, NULL);
        h->profiles = profiles;
        h->queue_path = strdup(queue_path);
        st = h->queue_path ? load(h, err) : error_no_memory(err);
        if (!st) {
                count_waiting(h);
                failed = pthread_create(&h->thread, NULL, run, h);
                h->started = !failed;
                if (failed)
                        st = error_os(err, failed, "cannot start a thread");
        }
        if (st) {
                healer_stop(h);
                return st;
        }
        pthread_setname_np(h->thread, "heal");
        *ret = h;
        return ST_OK;
}

void healer_stop(struct healer *h)
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
        pthread_cond_destroy(&h->changed);
        pthread_mutex_destroy(&h->lock);
        free(h->expected);
        free(h->failing);
        id_set_deinit(&h->ready);
        free(h->queue_path);
        free(h);
}

static size_t find_expected(const struct healer *h, const struct build_id *id)
{
        size_t i = 0;

        while (i < h->expected_count && !build_id_equal(&h->expected[i].id, id))
                i++;
        return i;
}

/* One job less. */
static void expect_less(struct healer *h, const struct build_id *id)
{
        size_t i = find_expected(h, id);

        if (i < h->expected_count && --h->expected[i].jobs == 0)
                h->expected[i] = h->expected[--h->expected_count];
}

enum status healer_expect(struct healer *h, const struct build_id *id, struct error *err)
{
        enum status st = ST_OK;
        size_t i;

        pthread_mutex_lock(&h->lock);
        i = find_expected(h, id);
        if (i < h->expected_count) {
                h->expected[i].jobs++;
        } else if (!array_reserve(&h->expected, &h->expected_capacity, h->expected_count)) {
                st = error_no_memory(err);
        } else {
                h->expected[h->expected_count++] = (struct expectation){ *id, 1 };
                st = save(h, err);
                if (st)
                        expect_less(h, id);
        }
        pthread_mutex_unlock(&h->lock);
        return st;
}

void healer_changed(struct healer *h, const struct build_id *id, bool changed)
{
        struct error err;

        pthread_mutex_lock(&h->lock);
        expect_less(h, id);
        if (changed) {
                struct failing_object *f = find_failing(h, id);

                if (f)
                        f->retry_ns = 0; /* with other symbols it may succeed at once */
                make_ready(h, id);
                count_waiting(h);
                pthread_cond_broadcast(&h->changed);
        } else if (save(h, &err)) {
                log_warn("heal", "%s", err.text);
        }
        pthread_mutex_unlock(&h->lock);
}
