/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_CORE_DEBUGINFO_SPACE_H
#define CAIRN_SERVER_CORE_DEBUGINFO_SPACE_H

/**
 * @file
 * Debuginfo spaces: a store of objects with the index of their symbols, and the components that work on both (indexer,
 * re-symbolization, garbage collection, upstreams). All tenants share one space, except that each tenant with the
 * setting `debuginfo own` has its own. docs/internals/tenants.md
 *
 * A handler gets the space of its request's tenant from get_request_space() or get_call_space(). struct server has no
 * object store or index of its own, so that none can be used by mistake.
 *
 * Files: BASE/debuginfo, BASE/index, BASE/resymbolize-queue, BASE/missing-companions; BASE is tenant_data_path(). Trees
 * of
 * --scan belong to the operator: only the shared space serves them.
 *
 * Threads: any, except open, start, stop and close.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "debuginfo-store/debuginfo_store.h"
#include "debuginfo-store/federation/federation.h"
#include "grpc/grpc_server.h"
#include "http/http_server.h"
#include "pipeline/gc_thread.h"
#include "pipeline/indexer.h"
#include "pipeline/missing_retry.h"
#include "pipeline/object_follow.h"
#include "pipeline/resymbolizer.h"
#include "pipeline/scan_demand.h"
#include "pipeline/unnamed_follow.h"
#include "pipeline/unresolved_counts.h"
#include "server/access/tenant_config.h"
#include "server/core/published_filter.h"
#include "server/core/symbolize_text.h"
#include "server/server_options.h"
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
        const char *tenant;                   /* owner; NULL: the shared space. Borrowed, as are the next three */
        const struct server_options *options; /* at startup */
        const char *scratch_dir;
        const atomic_bool *stopping;
        char *base;                    /* data directory, or the tenant's folder in it */
        struct profile_store **stores; /* of the tenants that use the space; the array is owned */
        size_t store_count;
        struct upload_hints upload_hints; /* uploads that Connect clients have begun */
        struct debuginfo_store
                *objects; /* NULL when read-only and absent, or without a role for it; likewise symbols */
        struct symbol_index *symbols;
        struct text_cache *symbol_texts; /* texts of symbols, for answers */
        /* Protects federation, which starts after, and stops before, the threads that request objects. */
        pthread_mutex_t federation_lock;
        struct federation *federation;       /* NULL without upstreams */
        struct missing_retry *missing_retry; /* NULL without upstreams and --scan */
        bool is_upstream_advised;            /* the log has said what an upstream would add; under federation_lock */
        struct scan_demand scan_demand;      /* its scan is NULL without --scan */
        struct object_follow *follow;        /* NULL unless on an object store */
        struct unnamed_follow *unnamed;      /* likewise */
        struct published_filter published_filter;
        struct unresolved_counts *counts; /* NULL when read-only or without the role symbolize, as are the next three */
        struct resymbolizer *resymbolizer;
        struct indexer *indexer;
        _Atomic(struct gc_thread *) gc_thread; /* notified by the indexer, and queries it */
};

/** All spaces of a service. */
struct debuginfo_spaces;

struct debuginfo_spaces_options {
        const struct server_options *server;  /* borrowed, as are all members */
        const struct tenant_configs *configs; /* NULL: there is only the shared space */
        const char *scratch_dir;
        const atomic_bool *stopping;
        void (*hourly)(void *context); /* as in struct gc_thread_options; called for the shared space only */
        void *context;
};

/**
 * Open stores and indexes. Until debuginfo_spaces_start(), debuginfo_space_request_missing() waits.
 * @param ret  also set on failure, for debuginfo_spaces_close(), except when out of memory.
 */
enum status debuginfo_spaces_open(const struct debuginfo_spaces_options *options, struct debuginfo_spaces **ret,
                                  struct error *err) MUST_CHECK;
/** Start all threads. @param stores  of all tenants, the default one's first; borrowed. */
enum status debuginfo_spaces_start(struct debuginfo_spaces *all, struct profile_store *const *stores,
                                   struct error *err) MUST_CHECK;
/** End all threads. Meanwhile only flushes may use the spaces. NULL is allowed, as below. */
void debuginfo_spaces_stop(struct debuginfo_spaces *all);
void debuginfo_spaces_close(struct debuginfo_spaces *all);

size_t debuginfo_spaces_count(const struct debuginfo_spaces *all);
/** The space of a tenant by its number in tenants_get_stores(). Borrowed. */
struct debuginfo_space *debuginfo_spaces_find(struct debuginfo_spaces *all, size_t tenant);
/** The trees of --scan; NULL: none. */
struct package_scan *debuginfo_spaces_get_scan(const struct debuginfo_spaces *all);

/** At a reload: apply retention and upstreams of these options to all spaces. */
void debuginfo_spaces_set_retention(struct debuginfo_spaces *all, const struct server_options *options);
enum status debuginfo_spaces_set_upstreams(struct debuginfo_spaces *all, const struct server_options *options,
                                           struct error *err) MUST_CHECK;
/** Whether upstreams were configured at startup; only then can a reload replace them. */
bool debuginfo_spaces_have_upstreams(const struct debuginfo_spaces *all);

/** Whether a problem of the service itself prevents indexing in a space. @param ret  the problem, with the tenant. */
bool debuginfo_spaces_are_blocked(struct debuginfo_spaces *all, struct error *ret);

/** Callback for missing_debuginfo of struct profile_store_options; the context is a space. */
void debuginfo_space_request_missing(void *space, const struct wanted_object *objects, size_t count);

/** For Cache-Control: "private" for a tenant's own space, whose data must not enter a shared cache. */
const char *get_cache_policy(const struct debuginfo_space *space);

/** The space of the request's tenant. */
struct debuginfo_space *get_request_space(const struct http_request *req);
struct debuginfo_space *get_call_space(const struct grpc_call *call);

#endif
