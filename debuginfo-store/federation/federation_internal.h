/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DEBUGINFO_STORE_FEDERATION_FEDERATION_INTERNAL_H
#define CAIRN_DEBUGINFO_STORE_FEDERATION_FEDERATION_INTERNAL_H

#include <pthread.h>

#include "debuginfo-store/federation/federation.h"
#include "debuginfo-store/federation/fetch_order.h"
#include "debuginfo-store/federation/fetch_queue.h"

/* ---- queries to upstreams (federation_query.c) ---- */

/* Upstreams in the order in which they are queried. Immutable: a reload creates another set. */
struct upstream_set {
        atomic_uint references;
        size_t count;
        struct upstream *items[];
};

/* Threads: any, except init and deinit. */
struct federation_upstreams {
        struct debuginfo_store *store;
        uint64_t timeout_s;
        const char *tenant;        /* label of new upstreams; borrowed */
        unsigned breaker_failures; /* of new upstreams, like the next */
        uint64_t breaker_pause_s;
        pthread_mutex_t lock; /* protects the pointer */
        struct upstream_set *set;
        void (*upstream_changed)(void *context, const struct upstream_status *status);
        void *context;
};

enum status federation_upstreams_init(struct federation_upstreams *upstreams, struct debuginfo_store *store,
                                      const struct federation_options *options, struct error *err) MUST_CHECK;
void federation_upstreams_deinit(struct federation_upstreams *upstreams); /* also after a failed init */

/* A reference to the current set. */
struct upstream_set *acquire_upstream_set(struct federation_upstreams *upstreams);
void release_upstream_set(struct upstream_set *set); /* takes NULL */

enum federation_outcome {
        FEDERATION_STORED,
        FEDERATION_MISSING, /* no upstream has it */
        FEDERATION_REFUSED, /* an upstream sent a file that failed verification, and no other upstream has it */
        FEDERATION_FAILED   /* an upstream that may have it did not respond, or cancel was set */
};

/**
 * Query the upstreams in their order until one has the resource, and store it.
 * @param entry  id, resource and forwarded_for are read.
 * @param show   called with a download once its first bytes have arrived, and with NULL at its end.
 * @param ret    set with FEDERATION_STORED.
 * @param err    set with FEDERATION_REFUSED and FEDERATION_FAILED.
 */
enum federation_outcome federation_query_upstreams(struct federation_upstreams *upstreams,
                                                   const struct fetch_entry *entry, const atomic_bool *cancel,
                                                   void (*show)(void *context, struct download *d), void *context,
                                                   struct stored_object *ret, struct error *err);

/* ---- the federation ---- */

#define FEDERATION_THREADS_MAX 16

/*
 * Concurrent client fetches by the number of Cairn services that forwarded the request. A request waits for one that
 * was forwarded once more, so each number has its own limit: otherwise services that are each other's upstreams in a
 * ring could all be full of requests that wait for each other.
 */
#define FEDERATION_CLIENT_FETCHES_MAX 32   /* not forwarded, or forwarded once */
#define FEDERATION_FORWARDED_FETCHES_MAX 8 /* for each larger number */

struct federation {
        struct federation_upstreams upstreams;
        struct federation_options options;
        char name[FORWARDED_NAME_SIZE];
        pthread_mutex_t lock;
        pthread_cond_t changed; /* an entry's state, client_fetches, or stop */
        struct fetch_queue table;
        uint64_t upstream_changes;  /* how often upstreams were added or their headers changed, which invalidates older
                                       results */
        struct fetch_order order;   /* of the entries in state FETCH_ENTRY_QUEUED */
        int64_t next_background_ns; /* when the next background fetch may begin; fetches before are ahead of the rate */
        unsigned client_fetches;    /* threads running one */
        unsigned client_fetches_by_hops[FORWARD_LIMIT];
        atomic_bool stop;
        pthread_t threads[FEDERATION_THREADS_MAX];
        unsigned thread_count;
};

#endif
