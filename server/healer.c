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
#define RETRY_MS 2000

static struct metric rounds = METRIC_COUNTER("cairn_heal_rounds_total", "Re-symbolizations done after symbols changed.", "");
static struct metric failures = METRIC_COUNTER("cairn_heal_failures_total", "Re-symbolizations that failed and are repeated.", "");
static struct metric healed_objects = METRIC_COUNTER("cairn_heal_objects_total", "Objects whose locations were looked up again.", "");
static struct metric healed_locations = METRIC_COUNTER("cairn_heal_locations_total", "Locations rewritten with better symbols.", "");
static struct metric waiting = METRIC_GAUGE("cairn_heal_queue", "Objects whose symbols changed and whose locations wait.", "");

/* Jobs that are about to change the symbols of one id: of the object itself, and of one that it is an alias of. */
struct expectation {
        struct build_id id;
        unsigned jobs; /* at least 1 */
};

struct healer {
        struct profile_store *profiles;
        char *queue_path;
        pthread_mutex_t lock;
        pthread_cond_t changed;
        /* An object moves from one to the next; the file holds all three. */
        struct expectation *expected;
        size_t expected_count, expected_capacity;
        struct id_set ready, running;
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

static void note_done(struct healer *h, const struct resymbolize_result *result, int64_t start_ns)
{
        struct error err;

        log_info("heal", "%zu objects, %" PRIu64 " of %" PRIu64 " locations changed in %" PRId64 " ms", h->running.count,
                 result->locations_changed, result->locations_seen, (monotonic_ns() - start_ns) / 1000000);
        metric_add(&healed_objects, (int64_t)h->running.count);
        metric_add(&healed_locations, (int64_t)result->locations_changed);
        id_set_deinit(&h->running);
        if (save(h, &err))
                log_warn("heal", "%s", err.text);
        metric_add(&rounds, 1);
}

/* One round over all that is ready. Called with the lock held, which is given up meanwhile. */
static void heal(struct healer *h)
{
        struct resymbolize_result result = { 0 };
        struct error err;
        int64_t start = monotonic_ns();
        enum status st;

        h->running = h->ready;
        h->ready = (struct id_set){ 0 };
        pthread_mutex_unlock(&h->lock);
        st = profile_store_resymbolize(h->profiles, h->running.items, h->running.count, NULL, NULL, &result, &err);
        pthread_mutex_lock(&h->lock);
        if (!st) {
                note_done(h, &result, start);
        } else {
                metric_add(&failures, 1);
                log_warn("heal", "%zu objects: %s; trying again", h->running.count, err.text);
                for (size_t i = 0; i < h->running.count; i++)
                        if (id_set_add(&h->ready, &h->running.items[i]))
                                log_warn("heal", "no memory to remember an object; 'cairn resymbolize' heals it");
                id_set_deinit(&h->running);
                wait_ms(h, RETRY_MS);
        }
        metric_set(&waiting, (int64_t)h->ready.count);
}

static void *run(void *arg)
{
        struct healer *h = arg;

        pthread_mutex_lock(&h->lock);
        while (!h->stop) {
                if (!h->ready.count) {
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
        metric_register(&waiting);
        pthread_mutex_init(&h->lock, NULL);
        pthread_cond_init(&h->changed, NULL);
        h->profiles = profiles;
        h->queue_path = strdup(queue_path);
        st = h->queue_path ? load(h, err) : error_no_memory(err);
        if (!st) {
                metric_set(&waiting, (int64_t)h->ready.count);
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
                if (id_set_add(&h->ready, id))
                        log_warn("heal", "no memory to remember an object; 'cairn resymbolize' heals it");
                metric_set(&waiting, (int64_t)h->ready.count);
                pthread_cond_broadcast(&h->changed);
        } else if (save(h, &err)) {
                log_warn("heal", "%s", err.text);
        }
        pthread_mutex_unlock(&h->lock);
}
