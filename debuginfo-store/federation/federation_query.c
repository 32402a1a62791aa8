/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two forms of requests. federation_query_upstreams() fetches one entry of the fetch queue, an object or a part of
 * one: the upstreams are tried one after another until one has it; the file is verified and stored while clients may
 * already read it (struct arrival). federation_query_all() sends one request to all upstreams, AT_ONCE at a time, and
 * passes each response to the caller.
 *
 * Both convert a result in two steps: a status into an upstream_outcome (upstream_classify_fetch(),
 * upstream_classify_poll()), which upstream_end_request() counts for the circuit breaker of that upstream, and this
 * into the outcome of the whole request.
 *
 * The upstreams are in a set with a reference count. A new configuration replaces the set; running requests keep
 * theirs.
 *
 * Locks: upstreams->lock protects the pointer to the set, f->lock the fetch queue. Neither is held during a request.
 *
 * Order: the set, arriving files, one upstream and the sequence of them, queries to all.
 */

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/limits.h"
#include "debuginfo-store/debuginfo_store_internal.h"
#include "debuginfo-store/federation/federation_internal.h"
#include "debuginfo-store/part_cache.h"

#define TIMEOUT_S 90 /* as in libdebuginfod */
#define FILTER_TIMEOUT_S 5

/* ---- the upstreams ---- */

struct upstream_set *acquire_upstream_set(struct federation_upstreams *upstreams)
{
        struct upstream_set *set;

        pthread_mutex_lock(&upstreams->lock);
        set = upstreams->set;
        atomic_fetch_add(&set->references, 1);
        pthread_mutex_unlock(&upstreams->lock);
        return set;
}

void release_upstream_set(struct upstream_set *set)
{
        if (!set || atomic_fetch_sub(&set->references, 1) > 1)
                return;
        for (size_t i = 0; i < set->count; i++)
                upstream_unref(set->items[i]);
        free(set);
}

static struct upstream *find_upstream(const struct upstream_set *set, const char *url)
{
        for (size_t i = 0; set && i < set->count; i++)
                if (strcmp(upstream_get_url(set->items[i]), url) == 0)
                        return set->items[i];
        return NULL;
}

/* @param old  set whose upstreams are reused; may be NULL. */
static enum status make_upstream_set(const struct federation_upstreams *upstreams, const struct federation_options *o,
                                     const struct upstream_set *old, struct upstream_set **ret, struct error *err)
{
        struct upstream_set *set = calloc(1, sizeof *set + o->url_count * sizeof set->items[0]);
        enum status st = set ? ST_OK : error_no_memory(err);

        if (set)
                atomic_init(&set->references, 1);
        while (!st && set->count < o->url_count) {
                const struct upstream_options u = { .url = o->urls[set->count],
                                                    .tenant = upstreams->tenant,
                                                    .header = o->headers ? o->headers[set->count] : NULL,
                                                    .failures_max = upstreams->breaker_failures,
                                                    .pause_s = upstreams->breaker_pause_s };
                struct upstream *known = find_upstream(old, u.url);

                if (known)
                        set->items[set->count] = upstream_ref(known);
                else
                        st = upstream_create(&u, &set->items[set->count], err);
                set->count += !st;
        }
        if (st)
                release_upstream_set(set);
        else
                *ret = set;
        return st;
}

enum status federation_upstreams_init(struct federation_upstreams *upstreams, struct debuginfo_store *store,
                                      const struct federation_options *o, struct error *err)
{
        *upstreams = (struct federation_upstreams){ .store = store,
                                                    .tenant = o->tenant,
                                                    .timeout_s = o->timeout_s ? o->timeout_s : TIMEOUT_S,
                                                    .breaker_failures = o->breaker_failures,
                                                    .breaker_pause_s = o->breaker_pause_s,
                                                    .upstream_changed = o->upstream_changed,
                                                    .context = o->context };
        pthread_mutex_init(&upstreams->lock, NULL);
        return make_upstream_set(upstreams, o, NULL, &upstreams->set, err);
}

void federation_upstreams_deinit(struct federation_upstreams *upstreams)
{
        release_upstream_set(upstreams->set);
        pthread_mutex_destroy(&upstreams->lock);
}

enum status federation_set_upstreams(struct federation *f, const char *const *urls, const char *const *headers,
                                     size_t count, struct error *err)
{
        const struct federation_options o = { .urls = urls, .headers = headers, .url_count = count };
        struct federation_upstreams *upstreams = &f->upstreams;
        struct upstream_set *old = acquire_upstream_set(upstreams), *fresh = NULL;
        enum status st = make_upstream_set(upstreams, &o, old, &fresh, err);
        bool has_new = false;

        for (size_t i = 0; !st && i < fresh->count; i++) {
                bool is_changed = false;

                st = upstream_set_header(fresh->items[i], headers ? headers[i] : NULL, &is_changed, err);
                has_new |= is_changed || !find_upstream(old, urls[i]);
        }
        release_upstream_set(old);
        if (st) {
                release_upstream_set(fresh);
                return st;
        }
        pthread_mutex_lock(&upstreams->lock);
        old = upstreams->set;
        upstreams->set = fresh;
        pthread_mutex_unlock(&upstreams->lock);
        release_upstream_set(old);
        if (has_new) {
                pthread_mutex_lock(&f->lock);
                f->upstream_changes++;
                fetch_queue_expire(&f->table);
                pthread_mutex_unlock(&f->lock);
        }
        return ST_OK;
}

/* ---- arriving files ---- */

struct arrival {
        struct download *download;
        void (*show)(void *context, struct download *d);
        void *context;
        bool is_shown;
};

static void note_arrival(void *context, const struct fetch_response *response)
{
        struct arrival *a = context;

        download_note_progress(a->download, response);
        if (!a->is_shown)
                a->show(a->context, a->download);
        a->is_shown = true;
}

/*
 * Verify and store a fetched object.
 * @param name        of the upstream's file; "": unknown.
 * @param is_bad_ret  verification failed.
 */
static enum status store_fetched_object(struct federation_upstreams *upstreams, const struct fetch_entry *entry,
                                        enum object_kind kind, int fd, const char *name, bool *is_bad_ret,
                                        struct stored_object *ret, struct error *err)
{
        struct object_claim claim = {
                .build_id = entry->id, .kind = kind, .source = SOURCE_UPSTREAM, .name = *name ? name : NULL
        };
        struct object_upload *upload;
        struct error own = { 0 };
        bool same;
        enum status st;

        err = err ? err : &own; /* its reason is used */
        st = object_upload_begin(upstreams->store, &claim, &upload, err);
        if (st)
                return st;
        st = object_upload_append_file(upload, fd, err);
        if (st)
                object_upload_abort(upload);
        else
                st = object_upload_finish(upload, ret, &same, err);
        *is_bad_ret = st && err->reason != REFUSED_NOT;
        return st;
}

/* ---- one upstream ---- */

/* One attempt to fetch an entry's resource from one upstream. */
struct upstream_fetch {
        struct federation_upstreams *upstreams;
        struct upstream *upstream;
        const struct fetch_entry *entry;
        const atomic_bool *cancel;
        struct arrival arrival;
        struct fetch_response response;
        uint64_t took_ms;
};

static enum status fetch_from_upstream(struct upstream_fetch *f, struct error *err)
{
        _cleanup_free_ char *header = NULL;
        enum status st = upstream_copy_header(f->upstream, &header, err);
        const char *resource = f->entry->resource;
        const struct fetch_request request = { .url = upstream_get_url(f->upstream),
                                               .header = header,
                                               .id = &f->entry->id,
                                               .resource = resource,
                                               .forwarded_for = f->entry->forwarded_for,
                                               .timeout_s = f->upstreams->timeout_s,
                                               .max_bytes = fetch_resource_is_part(resource) ? LIMIT_PIECE_BYTES : 0,
                                               .progress = note_arrival,
                                               .context = &f->arrival };

        if (!st)
                st = fetch_object(&request, download_get_fd(f->arrival.download), f->cancel, &f->response, err);
        if (!st)
                download_note_progress(f->arrival.download, &f->response);
        return st;
}

static enum status store_fetched_file(const struct upstream_fetch *f, bool *is_bad_ret, struct stored_object *ret,
                                      struct error *err)
{
        const struct fetch_entry *entry = f->entry;
        int fd = download_get_fd(f->arrival.download);
        enum object_kind kind;

        if (fetch_resource_is_part(entry->resource))
                return part_cache_insert(f->upstreams->store, &entry->id, entry->resource, fd, err);
        if (!object_kind_parse(entry->resource, &kind))
                return error_set(err, ST_USAGE, "'%.40s' is not an object kind", entry->resource);
        return store_fetched_object(f->upstreams, entry, kind, fd, f->response.name, is_bad_ret, ret, err);
}

static enum federation_outcome federation_outcome_from(enum upstream_outcome outcome)
{
        switch (outcome) {
        case UPSTREAM_FOUND:
                return FEDERATION_STORED;
        case UPSTREAM_MISSING:
                return FEDERATION_MISSING;
        case UPSTREAM_REFUSED:
                return FEDERATION_REFUSED;
        default:
                return FEDERATION_FAILED;
        }
}

/* Fetch and store. A failure to store a valid file is the service's and does not count against the upstream. */
static enum upstream_outcome fetch_and_store(struct upstream_fetch *f, struct stored_object *ret, struct error *err)
{
        int64_t began_ns = monotonic_ns();
        enum upstream_outcome outcome;
        enum status st;
        bool is_bad = false;
        int fd = object_create_temporary(f->upstreams->store, err);

        if (fd < 0 || download_create(fd, &f->arrival.download, err))
                return UPSTREAM_UNSURE;
        st = fetch_from_upstream(f, err);
        f->took_ms = (uint64_t)(monotonic_ns() - began_ns) / 1000000;
        outcome = upstream_classify_fetch(st, &f->response, f->entry->resource, *f->cancel);
        if (outcome == UPSTREAM_FOUND && store_fetched_file(f, &is_bad, ret, err))
                outcome = is_bad ? UPSTREAM_REFUSED : UPSTREAM_UNSURE;
        return outcome;
}

/* Get the upstream's filter if it is time. Its absence says nothing about the upstream: other servers have no such
 * route. */
static void update_filter(const struct upstream_fetch *f)
{
        struct upstream_filter *filter = upstream_get_filter(f->upstream);
        struct fetch_response response = { 0 };
        _cleanup_free_ char *header = NULL;
        _cleanup_close_ int fd = -1;
        struct error err;
        enum status st;

        if (!upstream_filter_begin_fetch(filter))
                return;
        st = upstream_copy_header(f->upstream, &header, &err);
        if (!st) {
                const struct fetch_request request = { .url = upstream_get_url(f->upstream),
                                                       .header = header,
                                                       .resource = UPSTREAM_FILTER_RESOURCE,
                                                       .forwarded_for = f->entry->forwarded_for,
                                                       .timeout_s = FILTER_TIMEOUT_S,
                                                       .total_s = FILTER_TIMEOUT_S,
                                                       .max_bytes = LIMIT_FILTER_BYTES };

                fd = object_create_temporary(f->upstreams->store, &err);
                st = fd < 0 ? ST_OS : fetch_object(&request, fd, f->cancel, &response, &err);
        }
        upstream_filter_set(filter, upstream_classify_filter(st, &response), fd);
}

static bool is_filtered(const struct upstream_fetch *f)
{
        if (!upstream_filter_excludes(upstream_get_filter(f->upstream), &f->entry->id))
                return false;
        upstream_note_filtered(f->upstream);
        return true;
}

static enum federation_outcome query_upstream(struct upstream_fetch *f, struct stored_object *ret, struct error *err)
{
        struct federation_upstreams *upstreams = f->upstreams;
        struct arrival *arrival = &f->arrival;
        enum upstream_outcome outcome;
        struct upstream_status status;
        uint64_t epoch;

        upstream_get_status(f->upstream, &status);
        if (status.state == UPSTREAM_CLOSED)
                update_filter(f);
        if (is_filtered(f))
                return FEDERATION_MISSING;
        if (upstream_begin_request(f->upstream, &epoch, err))
                return FEDERATION_FAILED;
        outcome = fetch_and_store(f, ret, err);
        if (outcome == UPSTREAM_MISSING)
                upstream_filter_note_missing(upstream_get_filter(f->upstream));
        if (upstream_end_request(f->upstream, epoch, outcome, &f->response, f->took_ms, err) != UPSTREAM_UNCHANGED &&
            upstreams->upstream_changed) {
                upstream_get_status(f->upstream, &status);
                upstreams->upstream_changed(upstreams->context, &status);
        }
        if (arrival->is_shown) /* the statistics are updated first, because this ends the clients' reads */
                arrival->show(arrival->context, NULL);
        if (arrival->download)
                download_finish(arrival->download, outcome == UPSTREAM_FOUND);
        download_unref(arrival->download);
        return federation_outcome_from(outcome);
}

/* Of the outcomes of several upstreams the least certain one applies: FAILED before REFUSED before MISSING. */
enum federation_outcome federation_query_upstreams(struct federation_upstreams *upstreams,
                                                   const struct fetch_entry *entry, const atomic_bool *cancel,
                                                   void (*show)(void *context, struct download *d), void *context,
                                                   struct stored_object *ret, struct error *err)
{
        struct upstream_set *set = acquire_upstream_set(upstreams);
        enum federation_outcome worst = FEDERATION_MISSING, outcome = FEDERATION_MISSING;

        for (size_t i = 0; i < set->count && !*cancel && outcome != FEDERATION_STORED; i++) {
                struct upstream_fetch fetch = { .upstreams = upstreams,
                                                .upstream = set->items[i],
                                                .entry = entry,
                                                .cancel = cancel,
                                                .arrival = { .show = show, .context = context } };
                struct error one = { 0 };

                outcome = query_upstream(&fetch, ret, &one);
                if (outcome != FEDERATION_STORED && outcome > worst) {
                        worst = outcome;
                        *err = one;
                }
        }
        release_upstream_set(set);
        if (outcome == FEDERATION_STORED)
                return outcome;
        return *cancel ? FEDERATION_FAILED : worst;
}

/* ---- queries to all upstreams ---- */

#define AT_ONCE 8

/* One upstream's share of the request. */
struct upstream_poll {
        struct federation *f;
        const struct federation_query *query;
        const struct forward_list *route;
        const atomic_bool *cancel; /* of the client, also set when the service is stopping, or f->stop */
        struct upstream *upstream;
        uint64_t epoch;
        pthread_t thread;
        bool is_asked, has_thread;
        int fd; /* -1: none */
        struct fetch_response response;
        uint64_t took_ms;
        enum status st;
        struct error err;
};

static void *run_poll(void *context)
{
        struct upstream_poll *p = context;
        _cleanup_free_ char *header = NULL;
        enum status st = upstream_copy_header(p->upstream, &header, &p->err);
        const struct fetch_request request = { .url = upstream_get_url(p->upstream),
                                               .header = header,
                                               .resource = p->query->path,
                                               .forwarded_for = p->route->header,
                                               .timeout_s = p->query->total_s,
                                               .total_s = p->query->total_s,
                                               .max_bytes = p->query->max_bytes };
        int64_t began_ns = monotonic_ns();

        p->fd = st ? -1 : object_create_temporary(p->f->upstreams.store, &p->err);
        p->st = p->fd < 0 ? ST_OS : fetch_object(&request, p->fd, p->cancel, &p->response, &p->err);
        p->took_ms = (uint64_t)(monotonic_ns() - began_ns) / 1000000;
        return NULL;
}

static void begin_poll(struct upstream_poll *p)
{
        p->fd = -1;
        p->is_asked = !upstream_begin_request(p->upstream, &p->epoch, &p->err);
        p->st = p->is_asked ? ST_OK : ST_BUSY;
        if (!p->is_asked)
                return;
        p->has_thread = pthread_create(&p->thread, NULL, run_poll, p) == 0;
        if (!p->has_thread)
                run_poll(p);
}

static void end_poll(struct upstream_poll *p)
{
        struct federation_upstreams *upstreams = &p->f->upstreams;
        enum upstream_outcome outcome;
        struct upstream_status status;

        if (p->has_thread)
                pthread_join(p->thread, NULL);
        if (!p->is_asked)
                return;
        if (!p->st)
                p->st = p->query->answered(p->query->context, p->fd, &p->err);
        if (p->fd >= 0)
                close(p->fd);
        outcome = upstream_classify_poll(p->st, &p->response, *p->cancel || p->took_ms >= 1000 * p->query->total_s);
        if (upstream_end_request(p->upstream, p->epoch, outcome, &p->response, p->took_ms, &p->err) !=
                    UPSTREAM_UNCHANGED &&
            upstreams->upstream_changed) {
                upstream_get_status(p->upstream, &status);
                upstreams->upstream_changed(upstreams->context, &status);
        }
        if (p->st) {
                upstream_get_status(p->upstream, &status);
                p->query->failed(p->query->context, status.url, &p->err);
        }
}

enum status federation_query_all(struct federation *f, const struct federation_query *query,
                                 const struct federation_client *client, struct error *err)
{
        struct upstream_poll *polls;
        struct upstream_set *set;
        struct forward_list route;
        enum status st = ST_OK;

        if (forward_loop_check(client->forwarded_for, f->name, &route, NULL))
                return ST_OK;
        polls = calloc(AT_ONCE, sizeof *polls);
        if (!polls)
                return error_no_memory(err);
        set = acquire_upstream_set(&f->upstreams);
        for (size_t first = 0, n; first < set->count && !(client->cancel && *client->cancel); first += n) {
                n = set->count - first < AT_ONCE ? set->count - first : AT_ONCE;
                for (size_t i = 0; i < n; i++) {
                        polls[i] = (struct upstream_poll){ .f = f,
                                                           .query = query,
                                                           .route = &route,
                                                           .cancel = client->cancel ? client->cancel : &f->stop,
                                                           .upstream = set->items[first + i] };
                        begin_poll(&polls[i]);
                }
                for (size_t i = 0; i < n; i++) {
                        end_poll(&polls[i]);
                        if (polls[i].st)
                                st = error_set(err, ST_BUSY, "not all upstreams answered");
                }
        }
        release_upstream_set(set);
        free(polls);
        return client->cancel && *client->cancel ? error_set(err, ST_BUSY, "the request was cancelled") : st;
}
