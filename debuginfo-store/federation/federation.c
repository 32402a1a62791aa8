/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Single flight: clients that wait for one resource share its table entry. Build-ids required by samples are queued for
 * a few background threads. A request with a waiting client gets its own thread at once (a client fetch), so that it
 * waits neither for background fetches nor for a slow upstream, and continues when the client disconnects.
 *
 * Services may be each other's upstreams. The key of an entry therefore includes the list of services that forwarded
 * the request: each service appends its own name to its requests, and answers a request that carries its name only from
 * its store. A request thus waits only for requests with a longer list, which rules out deadlock. A miss for a
 * forwarded request is inconclusive, since the forwarding services were not queried, and is cached only as long as an
 * error; a miss for a direct request applies to all. A forwarded request that exceeds its limit of client fetches
 * (federation_internal.h) is queued, so that services whose threads all wait for each other still respond.
 */
#include "debuginfo-store/federation/federation.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/threads/condition.h"
#include "common/metrics.h"
#include "debuginfo-store/federation/federation_internal.h"
#include "debuginfo-store/part_cache.h"

static struct metric fetched = METRIC_COUNTER("cairn_federation_fetches_total",
                                              "Build-ids requested from upstreams, by outcome.", "outcome=\"found\"");
static struct metric missed = METRIC_COUNTER("cairn_federation_fetches_total",
                                             "Build-ids requested from upstreams, by outcome.", "outcome=\"missing\"");
static struct metric dropped = METRIC_COUNTER(
        "cairn_federation_dropped_total",
        "Build-ids that were not queued for a background fetch, since their sender has too many; queued later.", "");
static struct metric failed = METRIC_COUNTER("cairn_federation_fetches_total",
                                             "Build-ids requested from upstreams, by outcome.", "outcome=\"failed\"");

/* ---- one fetch ---- */

struct fetch_context {
        struct federation *f;
        struct fetch_entry *entry;
};

/* Publish the download to waiting clients; NULL: it ended. */
static void publish_download(void *context, struct download *d)
{
        struct fetch_context *v = context;

        pthread_mutex_lock(&v->f->lock);
        download_unref(v->entry->download);
        v->entry->download = d ? download_ref(d) : NULL;
        pthread_cond_broadcast(&v->f->changed);
        pthread_mutex_unlock(&v->f->lock);
}

static void report_outcome(struct federation *f, const struct fetch_entry *entry, enum federation_outcome outcome,
                           const struct stored_object *object, const struct error *err)
{
        metric_add(outcome == FEDERATION_STORED ? &fetched : outcome == FEDERATION_MISSING ? &missed : &failed, 1);
        if (outcome == FEDERATION_STORED && f->options.arrived && !fetch_resource_is_part(entry->resource))
                f->options.arrived(f->options.context, object);
        if ((outcome == FEDERATION_FAILED || outcome == FEDERATION_REFUSED) && !f->stop && f->options.failed)
                f->options.failed(f->options.context, &entry->id, err);
}

/* False if the requested id is an alias: the object is stored under its build-id, where waiting clients do not look. */
static bool is_requested_object_stored(struct federation *f, const struct fetch_entry *entry)
{
        struct stored_object have;
        enum object_kind kind;

        return !object_kind_parse(entry->resource, &kind) ||
               debuginfo_store_find(f->upstreams.store, &entry->id, kind, &have, NULL) != ST_NOT_FOUND;
}

/* Fetch an entry's resource. Caller holds the lock; it is released during the fetch, and the entry may be freed. */
static void execute_fetch(struct federation *f, struct fetch_entry *entry)
{
        struct fetch_context context = { f, entry };
        uint64_t upstream_changes = f->upstream_changes;
        struct stored_object object;
        struct error err = { 0 };
        enum federation_outcome outcome;

        assert(entry->state == FETCH_ENTRY_QUEUED || entry->state == FETCH_ENTRY_IN_FLIGHT);
        entry->state = FETCH_ENTRY_IN_FLIGHT;
        pthread_mutex_unlock(&f->lock);
        outcome = federation_query_upstreams(&f->upstreams, entry, &f->stop, publish_download, &context, &object, &err);
        report_outcome(f, entry, outcome, &object, &err);

        pthread_mutex_lock(&f->lock);
        if (outcome == FEDERATION_STORED && !is_requested_object_stored(f, entry))
                outcome = FEDERATION_MISSING;
        if (outcome == FEDERATION_STORED) {
                fetch_queue_remove(&f->table, entry);
        } else {
                bool is_for_long = outcome == FEDERATION_REFUSED || (outcome == FEDERATION_MISSING && !entry->via[0]);
                uint64_t wait_s = is_for_long ? f->options.miss_s : f->options.error_s;

                entry->state = outcome == FEDERATION_MISSING ? FETCH_ENTRY_MISSING : FETCH_ENTRY_FAILED;
                entry->forget_ns = monotonic_ns() + (int64_t)wait_s * 1000000000;
                if (upstream_changes != f->upstream_changes)
                        entry->forget_ns = 0; /* other upstreams may have it */
        }
        pthread_cond_broadcast(&f->changed);
}

/* ---- background fetches ---- */

/* False if it was dropped and freed, since its sender has too many. */
static bool enqueue_fetch(struct federation *f, struct fetch_entry *entry)
{
        assert(entry->state == FETCH_ENTRY_QUEUED);
        if (!fetch_order_add(&f->order, entry)) {
                fetch_queue_remove(&f->table, entry);
                metric_add(&dropped, 1);
                return false;
        }
        pthread_cond_broadcast(&f->changed);
        return true;
}

/*
 * Wait until the rate allows another background fetch. A token bucket of BACKGROUND_BURST_S seconds: fetches may be
 * ahead of the clock by this much. Caller holds the lock.
 */
#define BACKGROUND_BURST_S 5
static bool wait_for_background_turn(struct federation *f)
{
        const int64_t now = monotonic_ns(), burst = BACKGROUND_BURST_S * INT64_C(1000000000);

        if (!f->options.rate)
                return true;
        if (f->next_background_ns < now)
                f->next_background_ns = now;
        if (f->next_background_ns > now + burst) {
                condition_wait_until(&f->changed, &f->lock, f->next_background_ns - burst);
                return false;
        }
        f->next_background_ns += INT64_C(1000000000) / f->options.rate;
        return true;
}

static void *run_background_fetches(void *context)
{
        struct federation *f = context;

        pthread_setname_np(pthread_self(), "federation");
        pthread_mutex_lock(&f->lock);
        while (!f->stop) {
                struct fetch_entry *entry;

                if (TAILQ_EMPTY(&f->order.senders)) {
                        pthread_cond_wait(&f->changed, &f->lock);
                        continue;
                }
                if (!wait_for_background_turn(f))
                        continue;
                entry = fetch_order_take(&f->order);
                assert(entry);
                execute_fetch(f, entry);
        }
        pthread_mutex_unlock(&f->lock);
        return NULL;
}

/* Caller holds the lock, so that an object being stored is found either in the table or in the store. */
static void request_object(struct federation *f, const struct wanted_object *object, enum object_kind kind,
                           const struct forward_list *route)
{
        const struct build_id *id = &object->id;
        const char *resource = object_kind_name(kind);
        struct stored_object have;
        struct fetch_entry *entry, *excess;

        if (fetch_queue_find(&f->table, id, resource, route) ||
            debuginfo_store_find(f->upstreams.store, id, kind, &have, NULL) == ST_OK)
                return;
        entry = fetch_queue_add(&f->table, id, resource, route);
        if (!entry && (excess = fetch_order_find_excess(&f->order, object->sender))) {
                fetch_order_remove(&f->order, excess);
                fetch_queue_remove(&f->table, excess);
                metric_add(&dropped, 1);
                entry = fetch_queue_add(&f->table, id, resource, route);
        }
        if (!entry) {
                metric_add(&dropped, 1);
                return;
        }
        entry->sender = object->sender;
        entry->weight = object->weight;
        (void)enqueue_fetch(f, entry);
}

void federation_request(struct federation *f, const struct wanted_object *objects, size_t count, enum object_kind kind)
{
        struct forward_list route;

        if (forward_loop_check(NULL, f->name, &route, NULL))
                return;
        for (size_t i = 0; i < count; i++) {
                pthread_mutex_lock(&f->lock);
                request_object(f, &objects[i], kind, &route);
                pthread_mutex_unlock(&f->lock);
        }
}

/* ---- client fetches ---- */

static unsigned count_forwarding_services(const struct fetch_entry *entry)
{
        return (unsigned)(strlen(entry->via) / (FORWARDED_NAME_SIZE - 1));
}

static void *run_client_fetch(void *context)
{
        struct fetch_context *fetch = context;
        struct federation *f = fetch->f;
        unsigned passed;

        pthread_setname_np(pthread_self(), "fetch");
        pthread_mutex_lock(&f->lock);
        passed = count_forwarding_services(fetch->entry);
        execute_fetch(f, fetch->entry);
        assert(f->client_fetches > 0 && f->client_fetches_by_hops[passed] > 0);
        f->client_fetches--;
        f->client_fetches_by_hops[passed]--;
        pthread_cond_broadcast(&f->changed);
        pthread_mutex_unlock(&f->lock); /* f may be freed from here on */
        free(fetch);
        return NULL;
}

static bool has_client_fetch_room(const struct federation *f, const struct fetch_entry *entry)
{
        unsigned passed = count_forwarding_services(entry);

        return f->client_fetches_by_hops[passed] <
               (passed < 2 ? FEDERATION_CLIENT_FETCHES_MAX : FEDERATION_FORWARDED_FETCHES_MAX);
}

static bool start_client_fetch(struct federation *f, struct fetch_entry *entry)
{
        struct fetch_context *fetch = has_client_fetch_room(f, entry) ? malloc(sizeof *fetch) : NULL;
        pthread_attr_t attr;
        pthread_t thread;
        int rc;

        if (!fetch)
                return false;
        *fetch = (struct fetch_context){ f, entry };
        pthread_attr_init(&attr);
        pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
        rc = pthread_create(&thread, &attr, run_client_fetch, fetch);
        pthread_attr_destroy(&attr);
        if (rc) {
                free(fetch);
                return false;
        }
        entry->state = FETCH_ENTRY_IN_FLIGHT;
        f->client_fetches++;
        f->client_fetches_by_hops[count_forwarding_services(entry)]++;
        return true;
}

/* ---- status, start and stop ---- */

void federation_get_status(struct federation *f, struct federation_status *ret)
{
        struct upstream_set *set = acquire_upstream_set(&f->upstreams);
        struct federation_status s = { .upstream_count = set->count };

        release_upstream_set(set);
        pthread_mutex_lock(&f->lock);
        for (const struct lru_entry *one = lru_table_oldest(&f->table.entries); one; one = lru_entry_newer(one)) {
                const struct fetch_entry *entry = (const struct fetch_entry *)one;

                s.queued += entry->state == FETCH_ENTRY_QUEUED;
                s.in_flight += entry->state == FETCH_ENTRY_IN_FLIGHT;
                s.missing += entry->state == FETCH_ENTRY_MISSING && entry->forget_ns > monotonic_ns();
                s.failed += entry->state == FETCH_ENTRY_FAILED && entry->forget_ns > monotonic_ns();
        }
        pthread_mutex_unlock(&f->lock);
        *ret = s;
}

bool federation_get_upstream(struct federation *f, size_t i, struct upstream_status *ret)
{
        struct upstream_set *set = acquire_upstream_set(&f->upstreams);
        bool is_there = i < set->count;

        if (is_there)
                upstream_get_status(set->items[i], ret);
        release_upstream_set(set);
        return is_there;
}

static enum status start_federation_threads(struct federation *f, struct error *err)
{
        while (f->thread_count < f->options.threads) {
                int rc = pthread_create(&f->threads[f->thread_count], NULL, run_background_fetches, f);

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
        enum status st = f ? forward_loop_make_name(f->name, err) : error_no_memory(err);

        if (st) {
                free(f);
                return st;
        }
        f->options = *o;
        f->options.miss_s = o->miss_s ? o->miss_s : 600;
        f->options.error_s = o->error_s ? o->error_s : 30;
        f->options.threads = !o->threads                           ? 2
                             : o->threads < FEDERATION_THREADS_MAX ? o->threads
                                                                   : FEDERATION_THREADS_MAX;
        fetch_order_init(&f->order);
        pthread_mutex_init(&f->lock, NULL);
        pthread_cond_init(&f->changed, NULL);
        metric_register(&fetched);
        metric_register(&missed);
        metric_register(&failed);
        metric_register(&dropped);
        st = federation_upstreams_init(&f->upstreams, store, o, err);
        if (!st)
                st = fetch_queue_init(&f->table, err);
        if (!st)
                st = start_federation_threads(f, err);
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
        while (f->client_fetches)
                pthread_cond_wait(&f->changed, &f->lock);
        pthread_mutex_unlock(&f->lock);
        for (unsigned i = 0; i < f->thread_count; i++)
                pthread_join(f->threads[i], NULL);
        fetch_order_deinit(&f->order);
        fetch_queue_deinit(&f->table);
        federation_upstreams_deinit(&f->upstreams);
        pthread_cond_destroy(&f->changed);
        pthread_mutex_destroy(&f->lock);
        free(f);
}

/* ---- waiting clients ---- */

#define CANCEL_POLL_NS 100000000

/* Add a client's request; NULL: the table is full. Caller holds the lock. */
static struct fetch_entry *begin_client_fetch(struct federation *f, const struct build_id *id, const char *resource,
                                              const struct forward_list *route)
{
        struct fetch_entry *entry = fetch_queue_add(&f->table, id, resource, route);

        if (entry && !start_client_fetch(f, entry) && !enqueue_fetch(f, entry))
                entry = NULL;
        return entry;
}

/* Caller holds the lock. Cancellation is not signalled, so a caller that may stop waiting polls. */
static void wait_for_federation(struct federation *f, const struct federation_client *client)
{
        if (client->cancel || client->until_ns)
                condition_wait_until(&f->changed, &f->lock, monotonic_ns() + CANCEL_POLL_NS);
        else
                pthread_cond_wait(&f->changed, &f->lock);
}

/* A waiting client's request: for an object if fd is NULL, else for a part. */
struct client_wait {
        const struct build_id *id;
        const char *resource;
        enum object_kind kind;
        int *fd;
        const struct federation_client *client;
        struct forward_list route;
};

static enum status find_stored_resource(struct federation *f, const struct client_wait *w, struct error *err)
{
        struct stored_object have;

        return w->fd ? part_cache_open(f->upstreams.store, w->id, w->resource, w->fd, err)
                     : debuginfo_store_find(f->upstreams.store, w->id, w->kind, &have, err);
}

/* Find or add the entry, and start its fetch if possible; NULL: none. Caller holds the lock. */
static struct fetch_entry *find_or_begin_fetch(struct federation *f, const struct client_wait *w, bool is_over)
{
        struct fetch_entry *entry = fetch_queue_find(&f->table, w->id, w->resource, &w->route);

        if (!entry)
                return is_over ? NULL : begin_client_fetch(f, w->id, w->resource, &w->route);
        if (entry->state == FETCH_ENTRY_QUEUED && has_client_fetch_room(f, entry)) {
                fetch_order_remove(&f->order, entry);
                if (!start_client_fetch(f, entry) && !enqueue_fetch(f, entry))
                        entry = NULL;
        }
        return entry;
}

static enum status wait_for_resource(struct federation *f, struct client_wait *w, struct download **coming_ret,
                                     struct error *err)
{
        const struct federation_client *client = w->client;
        char hex[BUILD_ID_HEX_MAX];
        enum status st;

        build_id_hex(w->id, hex);
        if (forward_loop_check(w->client->forwarded_for, f->name, &w->route, err)) {
                error_prefix(err, ST_NOT_FOUND, "cannot forward the request for build-id %s", hex);
                return ST_NOT_FOUND;
        }
        pthread_mutex_lock(&f->lock);
        for (;;) {
                bool is_over = f->stop || (client->cancel && *client->cancel) ||
                               (client->until_ns && monotonic_ns() >= client->until_ns);
                struct fetch_entry *entry;

                st = find_stored_resource(f, w, err);
                if (st != ST_NOT_FOUND)
                        break;
                entry = find_or_begin_fetch(f, w, is_over);
                if (entry && entry->state == FETCH_ENTRY_MISSING) {
                        st = error_set(err, ST_NOT_FOUND, "no upstream has %.80s for build-id %s", w->resource, hex);
                        break;
                }
                if (!entry || entry->state == FETCH_ENTRY_FAILED || is_over) {
                        st = error_set(err, ST_BUSY, "the upstreams did not answer for build-id %s", hex);
                        break;
                }
                if (coming_ret && entry->download) {
                        *coming_ret = download_ref(entry->download);
                        st = ST_OK;
                        break;
                }
                wait_for_federation(f, client);
        }
        pthread_mutex_unlock(&f->lock);
        return st;
}

enum status federation_fetch(struct federation *f, const struct build_id *id, enum object_kind kind,
                             const struct federation_client *client, struct download **coming_ret, struct error *err)
{
        struct client_wait w = { .id = id, .resource = object_kind_name(kind), .kind = kind, .client = client };

        if (coming_ret)
                *coming_ret = NULL;
        return wait_for_resource(f, &w, coming_ret, err);
}

enum status federation_fetch_part(struct federation *f, const struct build_id *id, const char *part,
                                  const struct federation_client *client, int *fd_ret, struct error *err)
{
        struct client_wait w = { .id = id, .resource = part, .fd = fd_ret, .client = client };

        return wait_for_resource(f, &w, NULL, err);
}
