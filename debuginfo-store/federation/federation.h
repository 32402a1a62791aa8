/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DEBUGINFO_STORE_FEDERATION_FEDERATION_H
#define CAIRN_DEBUGINFO_STORE_FEDERATION_FEDERATION_H

/**
 * @file
 * Federation: fetch missing objects from upstream debuginfod servers.
 *
 * Upstreams are queried in the configured order, each through its circuit breaker (upstream.h) and by a worker process
 * (fetch.h). A fetched file is verified like an upload. Negative caching: "not found" and files that fail verification
 * are cached for miss_s, transient failures for error_s. Single flight: identical concurrent requests share one fetch,
 * which continues when its clients disconnect.
 *
 * Threads: any.
 */
#include <stdatomic.h>

#include "common/wanted_object.h"
#include "debuginfo-store/debuginfo_store.h"
#include "debuginfo-store/federation/download.h"
#include "debuginfo-store/federation/forward_loop.h"
#include "debuginfo-store/federation/upstream.h"

struct federation;

struct federation_options {
        size_t size;
        const char *const *urls;    /* copied; queried in this order */
        const char *const *headers; /* a header (or NULL) for each upstream, as in struct fetch_request; copied. NULL:
                                       no headers */
        size_t url_count;
        const char *tenant;        /* label of metrics, if one process has several; NULL: none. Borrowed */
        uint64_t timeout_s;        /* maximum silence of an upstream; 0: 90 */
        uint64_t miss_s;           /* how long "not found" is cached; 0: 600 */
        uint64_t error_s;          /* how long transient failures are cached; 0: 30 */
        unsigned threads;          /* for background fetches; 0: 2 */
        unsigned rate;             /* background fetches per second, so requests to each upstream; 0: any */
        unsigned breaker_failures; /* see upstream.h */
        uint64_t breaker_pause_s;
        /* Called for each object that was stored, on the thread that fetched it, without locks. */
        void (*arrived)(void *context, const struct stored_object *object);
        /* Called if a fetch failed other than with "not found"; likewise. */
        void (*failed)(void *context, const struct build_id *id, const struct error *err);
        /* Called if an upstream's circuit breaker opened or closed; likewise. May be NULL. */
        void (*upstream_changed)(void *context, const struct upstream_status *status);
        void *context;
};

enum status federation_start(struct debuginfo_store *store, const struct federation_options *options,
                             struct federation **ret, struct error *err) MUST_CHECK;
/** No thread may be inside federation_fetch(). Fetches in progress are cancelled. */
void federation_stop(struct federation *f);

/**
 * Queue build-ids for background fetches; does not block. Skips those stored, in flight or cached as missing, and those
 * beyond the share of their sender (fetch_order.h), which have to be requested again.
 */
void federation_request(struct federation *f, const struct wanted_object *objects, size_t count, enum object_kind kind);

/** The client on whose behalf a request is made. */
struct federation_client {
        const char *forwarded_for; /* the client's X-Forwarded-For, or NULL; see forward_loop.h */
        const atomic_bool *cancel; /* polled; true ends the wait, but not the fetch, with ST_BUSY. NULL: never */
        int64_t until_ns;          /* monotonic_ns() at which the wait ends likewise. 0: never */
};

/**
 * Wait for one object on behalf of a client.
 * @param coming_ret if not NULL, return ST_OK as soon as the first bytes have arrived, with the download in *coming_ret
 * (download_unref()); *coming_ret is NULL if the object is in the store.
 * @return ST_OK: it is stored or being downloaded. ST_NOT_FOUND: no upstream has it, or the request has passed too many
 * servers. ST_BUSY: transient failure.
 */
enum status federation_fetch(struct federation *f, const struct build_id *id, enum object_kind kind,
                             const struct federation_client *client, struct download **coming_ret,
                             struct error *err) MUST_CHECK;

/**
 * Wait for a section or a source file. The result is cached (part_cache.h) and not verified.
 * @param part   "section/NAME" or "source/PATH", escaped as in a URL.
 * @param fd_ret the file, owned.
 * @return as federation_fetch(). Also ST_BUSY if an upstream does not support sections.
 */
enum status federation_fetch_part(struct federation *f, const struct build_id *id, const char *part,
                                  const struct federation_client *client, int *fd_ret, struct error *err) MUST_CHECK;

/**
 * Replace the upstreams. One whose URL is unchanged keeps its circuit breaker and statistics; running requests continue
 * with the previous ones. A new URL clears the negative cache, because that upstream may have the resources.
 * @param headers  as in federation_options.
 */
enum status federation_set_upstreams(struct federation *f, const char *const *urls, const char *const *headers,
                                     size_t count, struct error *err) MUST_CHECK;

struct federation_status {
        size_t upstream_count;
        size_t queued, in_flight, missing, failed; /* fetch entries by state; the last two are cached results */
};
void federation_get_status(struct federation *f, struct federation_status *ret);
/** @param i in query order.  @return false beyond the last one. */
bool federation_get_upstream(struct federation *f, size_t i, struct upstream_status *ret);

/** A request to all upstreams that names no single object; the caller merges the answers. */
struct federation_query {
        const char *path;   /* path after the upstream's URL, escaped: "metadata?key=file&value=/x" */
        uint64_t total_s;   /* per response */
        uint64_t max_bytes; /* per response */
        /* Called for each response, a borrowed file. Returns other than ST_OK if the response is invalid. */
        enum status (*answered)(void *context, int fd, struct error *err);
        /* Called for each upstream that failed to respond. */
        void (*failed)(void *context, const char *url_text, const struct error *why);
        void *context;
};

/**
 * Query all upstreams whose circuit breaker is not open, in parallel. The callbacks run on the caller's thread after
 * all responses, in the order of the upstreams. Nothing is cached.
 * @return ST_OK: all upstreams responded, or the request has passed too many servers. ST_BUSY: some upstream did not
 * respond, or its response was invalid.
 */
enum status federation_query_all(struct federation *f, const struct federation_query *query,
                                 const struct federation_client *client, struct error *err) MUST_CHECK;

#endif
