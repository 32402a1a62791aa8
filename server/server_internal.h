/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_INTERNAL_H
#define CAIRN_SERVER_INTERNAL_H

#include <pthread.h>

#include "common/limits.h"
#include "common/log.h"
#include "debuginfo-store/federation.h"
#include "http/server.h"
#include "profile-store/store.h"
#include "scan/scan.h"
#include "server/announced.h"
#include "server/collector.h"
#include "server/doors.h"
#include "server/healer.h"
#include "server/indexer.h"
#include "server/readiness.h"
#include "server/server.h"
#include "server/symbolize_text.h"
#include "server/wishes.h"
#include "symbolizer/lookup.h"

struct server {
        const struct server_options *options;
        char *tables_dir;                /* DIR/profiles/tables */
        char *scratch_dir;               /* DIR/tmp: unlinked files of running work */
        int lock_fd;
        struct doors doors;
        struct announced announced;      /* uploads that Connect clients have begun */
        struct debuginfo_store *objects; /* NULL when read-only and the directory has none, as are the symbols */
        struct symbol_index *symbols;
        struct text_cache *symbol_texts; /* of its names, for answers */
        struct profile_store *profiles;
        pthread_mutex_t federation_lock; /* federation comes after, and goes before, the threads that wish for objects */
        struct federation *federation;   /* NULL without upstreams */
        struct wishes *wishes;           /* NULL without upstreams and trees */
        struct scan *scan;               /* NULL without trees */
        struct healer *healer;           /* NULL when read-only, as are the next two */
        struct indexer *indexer;
        _Atomic(struct collector *) collector; /* the indexer tells it what it did, and it asks the indexer */
        struct readiness *readiness;     /* with the profile store */
        struct http_server *http;
        struct http_route *routes;
        atomic_bool ready, stopping;
};

/* Pools of threads for kinds of requests, none of which waits for another kind: server.c has their sizes. */
enum server_pool {
        POOL_QUERY,      /* queries, lists, files of the tables; the default */
        POOL_STATUS,     /* /metrics; /healthz and /readyz need no thread at all */
        POOL_INGEST,
        POOL_UPLOAD,
        POOL_SYMBOLIZE,
        POOL_DEBUGINFOD, /* objects, sources and metadata: may wait for upstreams and workers */
        POOL_ADMIN,      /* collection, re-symbolization, pins */
        POOL_COUNT,
};

/* Routes are tables, one per file; routes.c joins them. Handlers get the server as their context. */
struct route_table {
        const struct http_route *routes;
        size_t count;
};
#define ROUTE_TABLE(items) { (items), sizeof(items) / sizeof *(items) }

extern const struct route_table status_routes, ingest_routes, pprof_routes, upload_routes, debuginfod_routes,
        debuginfo_routes, upstream_routes, upkeep_routes, source_routes, table_routes, symbolize_routes, symbolicate_routes, query_routes, why_routes,
        connect_upload_routes, metadata_routes;

/** All routes; in a read-only service those that change something answer 403. Owned by the caller, free(). */
enum status routes_join(bool read_only, struct http_route **ret, size_t *count_ret, struct error *err) MUST_CHECK;

/** The {id} of the path as a build-id; answers 400 and returns false when it is none. */
bool route_build_id(struct http_request *req, struct build_id *ret);

/** Answer with what buf holds as JSON. Takes the bytes. */
void respond_json(struct http_request *req, struct buf *body);
/** The same when st is ST_OK, else http_fail(). Takes the bytes in both cases. */
void respond_result(struct http_request *req, enum status st, struct buf *body, const struct error *err);

/** A client takes this object. That it cannot be noted is logged, and no reason to refuse it. */
void note_use(struct server *s, const struct build_id *id, enum object_kind kind);

#endif
