/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_DEBUGINFO_SPACE_H
#define CAIRN_SERVER_DEBUGINFO_SPACE_H

/**
 * @file
 * Debuginfo spaces: a store of objects with the index of their symbols, and what works on both (indexer,
 * re-symbolization, garbage collection, upstreams). All tenants share one space, but those whose setting is
 * `debuginfo own`: each of these has one of its own. docs/internals/tenants.md
 *
 * A handler gets the space of its request's tenant from get_request_space() or get_call_space(): struct server has no
 * object store, and no index, that could be used instead.
 *
 * Files: BASE/debuginfo, BASE/index, BASE/heal-queue, BASE/supplement-needs, where BASE is tenant_data_path(). Trees of
 * --scan are the operator's: only the shared space serves them.
 *
 * Threads: any, except open, start, stop and close.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "debuginfo-store/federation.h"
#include "debuginfo-store/store.h"
#include "grpc/grpc_server.h"
#include "http/server.h"
#include "pipeline/gc_thread.h"
#include "pipeline/indexer.h"
#include "pipeline/missing_retry.h"
#include "pipeline/resymbolizer.h"
#include "pipeline/scan_demand.h"
#include "server/access/tenant_config.h"
#include "server/server.h"
#include "server/symbolize/symbolize_text.h"
#include "symbol-index/lookup.h"

#define UPLOAD_HINTS_MAX 256

/* Metadata that a Connect client sends before an upload. */
struct upload_hint {
        struct build_id build_id;
        struct build_id htlhash; /* size 0: unknown */
        char name[128];
};

/* The last UPLOAD_HINTS_MAX hints, in memory. A file without a hint is stored without a name. */
struct upload_hints {
        pthread_mutex_t lock;
        struct upload_hint hints[UPLOAD_HINTS_MAX];
        size_t next; /* index to overwrite */
};

struct debuginfo_space {
        const char *tenant; /* whose own it is; NULL: the shared one. Borrowed, as are the next three */
        const struct server_options *options; /* of the start */
        const char *scratch_dir;
        const atomic_bool *stopping;
        char *base;                    /* data directory, or the tenant's folder in it */
        struct profile_store **stores; /* of the tenants whose symbols are here; the array is owned */
        size_t store_count;
        struct upload_hints upload_hints; /* uploads that Connect clients have begun */
        struct debuginfo_store *objects;  /* NULL when read-only and absent, as are the symbols */
        struct symbol_index *symbols;
        struct text_cache *symbol_texts; /* of its names, for answers */
        pthread_mutex_t
                federation_lock;       /* federation starts after, and stops before, the threads that request objects */
        struct federation *federation; /* NULL without upstreams */
        struct missing_retry *missing_retry; /* NULL without upstreams and trees */
        struct scan_demand scan_demand;      /* its scan is NULL without trees */
        struct resymbolizer *resymbolizer;   /* NULL when read-only, as are the next two */
        struct indexer *indexer;
        _Atomic(struct gc_thread *) gc_thread; /* notified by the indexer, and queries it */
};

/** All spaces of a service. */
struct debuginfo_spaces;

struct debuginfo_spaces_options {
        const struct server_options *server;  /* borrowed, as is everything here */
        const struct tenant_configs *configs; /* NULL: there is only the shared space */
        const char *scratch_dir;
        const atomic_bool *stopping;
        void (*hourly)(void *context); /* struct gc_thread_options; of one of the spaces */
        void *context;
};

/**
 * Open stores and indexes. Until debuginfo_spaces_start(), debuginfo_space_request_missing() waits.
 * @param ret  set also on failure, for debuginfo_spaces_close(), unless there is no memory.
 */
enum status debuginfo_spaces_open(const struct debuginfo_spaces_options *options, struct debuginfo_spaces **ret,
                                  struct error *err) MUST_CHECK;
/** Start all threads. @param stores  of all tenants, the default one's first; borrowed. */
enum status debuginfo_spaces_start(struct debuginfo_spaces *all, struct profile_store *const *stores,
                                   struct error *err) MUST_CHECK;
/** End all threads. Nothing but flushes may use them meanwhile. NULL is allowed, as below. */
void debuginfo_spaces_stop(struct debuginfo_spaces *all);
void debuginfo_spaces_close(struct debuginfo_spaces *all);

size_t debuginfo_spaces_count(const struct debuginfo_spaces *all);
/** The space of a tenant by its number in tenants_get_stores(). Borrowed. */
struct debuginfo_space *debuginfo_spaces_find(struct debuginfo_spaces *all, size_t tenant);
/** The trees of --scan; NULL without. */
struct scan *debuginfo_spaces_get_scan(const struct debuginfo_spaces *all);

/** At a reload: what retention and upstreams of these options say, in all spaces. */
void debuginfo_spaces_set_retention(struct debuginfo_spaces *all, const struct server_options *options);
enum status debuginfo_spaces_set_upstreams(struct debuginfo_spaces *all, const struct server_options *options,
                                           struct error *err) MUST_CHECK;
/** Whether upstreams were there at the start: others can replace them. */
bool debuginfo_spaces_have_upstreams(const struct debuginfo_spaces *all);

/** Whether the service itself prevents indexing in one of them. @param ret  names the tenant of an own space. */
bool debuginfo_spaces_are_blocked(struct debuginfo_spaces *all, struct error *ret);

/** As missing_debuginfo of struct profile_store_options; the context is a space. */
void debuginfo_space_request_missing(void *space, const struct build_id *ids, size_t count);

/** For Cache-Control: what one tenant may read is not for a cache that others use too. */
const char *get_cache_policy(const struct debuginfo_space *space);

/** The space of the request's tenant. */
struct debuginfo_space *get_request_space(const struct http_request *req);
struct debuginfo_space *get_call_space(const struct grpc_call *call);

#endif
