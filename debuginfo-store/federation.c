/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every build-id that was ever asked for has one entry: queued, in flight, or
 * missing until a time. Clients that wait for one share it, so equal requests
 * in flight are one. Entries that are done are dropped, misses when their
 * time has come; the table has a bound (MAX_ENTRIES) past which background
 * wishes are dropped, to be repeated with the next flush.
 *
 * Services may be each other's upstreams. What makes requests equal is then
 * also the list of services they came through: each service adds its own name
 * to what it asks and answers what comes back with it from its store alone, so
 * whoever waits for another waits with a longer list, and no ring of waiting
 * comes about. The miss of a forwarded question is not the whole truth, since
 * who asked was left out, and is remembered only as long as an error; that of
 * a direct question holds for all. The threads here are for direct questions:
 * a forwarded one is fetched by the thread that brings it, so that services
 * whose threads all wait for each other still answer each other.
 */
#include "debuginfo-store/federation.h"

#include <pthread.h>
#include <string.h>

#include "common/clock.h"
#include "common/limits.h"
#include "common/metrics.h"
#include "debuginfo-store/fetch.h"
#include "debuginfo-store/forwarded.h"
#include "debuginfo-store/store_internal.h"

#define MAX_ENTRIES 100000
#define BUCKETS 4096
#define MAX_THREADS 16
#define CANCEL_POLL_NS 100000000

enum entry_state { QUEUED, IN_FLIGHT, MISSING, FAILED };

struct entry {
        struct entry *next;       /* in its bucket */
        struct entry *next_queued;
        struct build_id id;
        enum object_kind kind;
        enum entry_state state;
        int64_t forget_ns;        /* monotonic; MISSING and FAILED */
        char *forwarded_for;      /* to send; until it is done */
        char via[];               /* as in struct forwarded */
};

struct federation {
        struct debuginfo_store *store;
        struct federation_options options;
        char **urls;
        char name[FORWARDED_NAME_SIZE];
        pthread_mutex_t lock;
        pthread_cond_t changed;   /* an entry's state, or stop */
        struct entry *buckets[BUCKETS];
        struct entry *queue_first, **queue_last;
        size_t entry_count;
        atomic_bool stop;
        pthread_t threads[MAX_THREADS];
        unsigned thread_count;
};

static struct metric fetched = METRIC_COUNTER("cairn_federation_fetches_total",
                                              "Build-ids looked for at upstreams, by outcome.", "outcome=\"found\"");
static struct metric missed = METRIC_COUNTER("cairn_federation_fetches_total",
                                             "Build-ids looked for at upstreams, by outcome.", "outcome=\"missing\"");
static struct metric failed = METRIC_COUNTER("cairn_federation_fetches_total",
                                             "Build-ids looked for at upstreams, by outcome.", "outcome=\"failed\"");

static struct entry **bucket_of(struct federation *f, const struct build_id *id, enum object_kind kind)
{
        uint32_t h = 2166136261u + (uint32_t)kind;

        for (unsigned i = 0; i < id->size; i++)
                h = (h ^ id->bytes[i]) * 16777619u;
        return &f->buckets[h % BUCKETS];
}

static void free_entry(struct entry *e)
{
        free(e->forwarded_for);
        free(e);
}

/* A direct question that found nothing answers every other. */
static bool answers(const struct entry *e, const struct build_id *id, enum object_kind kind, const struct forwarded *way)
{
        return e->kind == kind && build_id_equal(&e->id, id) &&
               (strcmp(e->via, way->via) == 0 || (e->state == MISSING && !e->via[0]));
}

/* Called with the lock held. Drops misses of the bucket whose time has come. */
static struct entry *find(struct federation *f, const struct build_id *id, enum object_kind kind,
                          const struct forwarded *way)
{
        struct entry **at = bucket_of(f, id, kind), *found = NULL;

        while (*at) {
                struct entry *e = *at;

                if ((e->state == MISSING || e->state == FAILED) && e->forget_ns <= monotonic_ns()) {
                        *at = e->next;
                        free_entry(e);
                        f->entry_count--;
                        continue;
                }
                if (answers(e, id, kind, way))
                        found = e;
                at = &e->next;
        }
        return found;
}

/* Called with the lock held. */
static void forget(struct federation *f, struct entry *gone)
{
        for (struct entry **at = bucket_of(f, &gone->id, gone->kind); *at; at = &(*at)->next) {
                if (*at == gone) {
                        *at = gone->next;
                        free_entry(gone);
                        f->entry_count--;
                        return;
                }
        }
}

/* Called with the lock held; NULL when the table is full or memory is out. */
static struct entry *add(struct federation *f, const struct build_id *id, enum object_kind kind,
                             const struct forwarded *way)
{
        struct entry **bucket = bucket_of(f, id, kind);
        size_t via_size = strlen(way->via) + 1;
        struct entry *e = f->entry_count < MAX_ENTRIES ? calloc(1, sizeof *e + via_size) : NULL;

        if (e)
                e->forwarded_for = strdup(way->header);
        if (!e || !e->forwarded_for) {
                free(e);
                return NULL;
        }
        e->id = *id;
        e->kind = kind;
        memcpy(e->via, way->via, via_size);
        e->next = *bucket;
        *bucket = e;
        f->entry_count++;
        return e;
}

/* Called with the lock held. */
static void enqueue(struct federation *f, struct entry *e)
{
        *f->queue_last = e;
        f->queue_last = &e->next_queued;
        pthread_cond_broadcast(&f->changed);
}

/* Ask one upstream, and store what it has. */
static enum status fetch_from(struct federation *f, const char *url, const struct entry *e, const atomic_bool *cancel,
                              struct stored_object *ret, struct error *err)
{
        struct object_claim claim = { .build_id = e->id, .kind = e->kind, .source = SOURCE_UPSTREAM };
        const struct fetch_question question = { .url = url, .id = &e->id, .kind = e->kind,
                                                 .forwarded_for = e->forwarded_for, .timeout_s = f->options.timeout_s };
        struct object_upload *upload;
        enum refusal why;
        bool same;
        int fd = object_scratch(f->store, err);
        enum status st;

        if (fd < 0)
                return ST_OS;
        st = fetch_object(&question, fd, cancel, err);
        if (!st)
                st = object_upload_begin(f->store, &claim, &upload, &why, err);
        if (st) {
                close(fd);
                return st;
        }
        st = object_upload_append_file(upload, fd, &why, err);
        close(fd);
        if (st) {
                object_upload_abort(upload);
                return st;
        }
        return object_upload_finish(upload, ret, &same, &why, err);
}

/* The upstreams in their order; a transient failure at one matters only when none has the object. */
static enum status fetch_one(struct federation *f, const struct entry *e, const atomic_bool *cancel,
                             struct stored_object *ret, struct error *err)
{
        enum status worst = ST_NOT_FOUND;

        for (size_t i = 0; i < f->options.url_count && !*cancel; i++) {
                struct error one = { 0 };
                enum status st = fetch_from(f, f->urls[i], e, cancel, ret, &one);

                if (st == ST_OK)
                        return ST_OK;
                if (st != ST_NOT_FOUND || worst == ST_NOT_FOUND) {
                        worst = st == ST_NOT_FOUND ? ST_NOT_FOUND : ST_BUSY;
                        if (err)
                                *err = one;
                }
        }
        return worst;
}

/* Fetch what the entry is about. Called with the lock held, which is given up meanwhile; the entry may be gone then. */
static void fetch_entry(struct federation *f, struct entry *e, const atomic_bool *cancel)
{
        struct stored_object object;
        struct error err;
        enum status st;

        e->state = IN_FLIGHT;
        pthread_mutex_unlock(&f->lock);
        st = fetch_one(f, e, cancel, &object, &err);
        metric_add(st == ST_OK ? &fetched : st == ST_NOT_FOUND ? &missed : &failed, 1);
        if (st == ST_OK && f->options.arrived)
                f->options.arrived(f->options.context, &object);
        if (st && st != ST_NOT_FOUND && !*cancel && f->options.failed)
                f->options.failed(f->options.context, &e->id, &err);

        pthread_mutex_lock(&f->lock);
        if (st == ST_OK) {
                forget(f, e);
        } else {
                bool whole_truth = st == ST_NOT_FOUND && !e->via[0];
                uint64_t wait_s = whole_truth ? f->options.miss_s : f->options.error_s;

                e->state = st == ST_NOT_FOUND ? MISSING : FAILED;
                e->forget_ns = monotonic_ns() + (int64_t)wait_s * 1000000000;
        }
        pthread_cond_broadcast(&f->changed);
}

static void *run(void *context)
{
        struct federation *f = context;

        pthread_setname_np(pthread_self(), "federation");
        pthread_mutex_lock(&f->lock);
        while (!f->stop) {
                struct entry *e = f->queue_first;

                if (!e) {
                        pthread_cond_wait(&f->changed, &f->lock);
                        continue;
                }
                f->queue_first = e->next_queued;
                if (!f->queue_first)
                        f->queue_last = &f->queue_first;
                fetch_entry(f, e, &f->stop);
        }
        pthread_mutex_unlock(&f->lock);
        return NULL;
}

enum status federation_start(struct debuginfo_store *store, const struct federation_options *options,
                             struct federation **ret, struct error *err)
{
        struct federation *f = calloc(1, sizeof *f);
        enum status st = f ? forwarded_name(f->name, err) : error_no_memory(err);

        if (st) {
                free(f);
                return st;
        }
        f->store = store;
        f->options = *options;
        f->options.timeout_s = options->timeout_s ? options->timeout_s : 90;
        f->options.miss_s = options->miss_s ? options->miss_s : 600;
        f->options.error_s = options->error_s ? options->error_s : 30;
        f->options.threads = options->threads ? options->threads : 2;
        if (f->options.threads > MAX_THREADS)
                f->options.threads = MAX_THREADS;
        f->queue_last = &f->queue_first;
        pthread_mutex_init(&f->lock, NULL);
        pthread_cond_init(&f->changed, NULL);
        metric_register(&fetched);
        metric_register(&missed);
        metric_register(&failed);
        f->urls = calloc(options->url_count + 1, sizeof *f->urls);
        for (size_t i = 0; f->urls && i < options->url_count; i++) {
                f->urls[i] = strdup(options->urls[i]);
                if (!f->urls[i]) {
                        federation_stop(f);
                        return error_no_memory(err);
                }
        }
        while (f->urls && f->thread_count < f->options.threads) {
                int rc = pthread_create(&f->threads[f->thread_count], NULL, run, f);

                if (rc) {
                        federation_stop(f);
                        return error_os(err, rc, "cannot start a federation thread");
                }
                f->thread_count++;
        }
        if (!f->urls) {
                federation_stop(f);
                return error_no_memory(err);
        }
        *ret = f;
        return ST_OK;
}

void federation_stop(struct federation *f)
{
        if (!f)
                return;
        pthread_mutex_lock(&f->lock);
        f->stop = true;
        pthread_cond_broadcast(&f->changed);
        pthread_mutex_unlock(&f->lock);
        for (unsigned i = 0; i < f->thread_count; i++)
                pthread_join(f->threads[i], NULL);
        for (unsigned b = 0; b < BUCKETS; b++) {
                while (f->buckets[b]) {
                        struct entry *next = f->buckets[b]->next;

                        free_entry(f->buckets[b]);
                        f->buckets[b] = next;
                }
        }
        for (char **url = f->urls; url && *url; url++)
                free(*url);
        free(f->urls);
        pthread_cond_destroy(&f->changed);
        pthread_mutex_destroy(&f->lock);
        free(f);
}

void federation_want(struct federation *f, const struct build_id *ids, size_t count, enum object_kind kind)
{
        struct forwarded way;

        if (forwarded_parse(NULL, f->name, &way, NULL))
                return;
        for (size_t i = 0; i < count; i++) {
                struct stored_object have;

                if (debuginfo_store_stat(f->store, &ids[i], kind, &have, NULL) == ST_OK)
                        continue;
                pthread_mutex_lock(&f->lock);
                if (!find(f, &ids[i], kind, &way)) {
                        struct entry *e = add(f, &ids[i], kind, &way);

                        if (e)
                                enqueue(f, e);
                }
                pthread_mutex_unlock(&f->lock);
        }
}

/* Called with the lock held. Nobody signals a cancelled caller, so one that can be cancelled looks now and then. */
static void wait_for_change(struct federation *f, const atomic_bool *cancel)
{
        int64_t until = wall_clock_ns() + CANCEL_POLL_NS;
        struct timespec ts = { .tv_sec = until / 1000000000, .tv_nsec = until % 1000000000 };

        if (cancel)
                pthread_cond_timedwait(&f->changed, &f->lock, &ts);
        else
                pthread_cond_wait(&f->changed, &f->lock);
}

enum status federation_fetch(struct federation *f, const struct build_id *id, enum object_kind kind,
                             const char *forwarded_for, const atomic_bool *cancel, struct error *err)
{
        struct entry *e;
        struct stored_object have;
        struct forwarded way;
        char hex[BUILD_ID_HEX_MAX];
        enum status st;

        if (forwarded_parse(forwarded_for, f->name, &way, err)) {
                error_prefix(err, ST_NOT_FOUND, "build-id %s is not asked for any further", build_id_hex(id, hex));
                return ST_NOT_FOUND;
        }
        build_id_hex(id, hex);
        pthread_mutex_lock(&f->lock);
        for (;;) {
                st = debuginfo_store_stat(f->store, id, kind, &have, err);
                if (st != ST_NOT_FOUND)
                        break;
                e = find(f, id, kind, &way);
                if (!e && !f->stop && !(cancel && *cancel)) {
                        e = add(f, id, kind, &way);
                        if (e && way.via[0]) {
                                fetch_entry(f, e, cancel ? cancel : &f->stop);
                                continue;
                        }
                        if (e)
                                enqueue(f, e);
                }
                if (e && e->state == MISSING) {
                        st = error_set(err, ST_NOT_FOUND, "no upstream has a %s for build-id %s",
                                       object_kind_name(kind), hex);
                        break;
                }
                if (!e || e->state == FAILED || f->stop || (cancel && *cancel)) {
                        st = error_set(err, ST_BUSY, "the upstreams did not answer for build-id %s", hex);
                        break;
                }
                wait_for_change(f, cancel);
        }
        pthread_mutex_unlock(&f->lock);
        return st;
}
