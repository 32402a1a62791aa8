/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_INTERNAL_H
#define CAIRN_SERVER_INTERNAL_H

#include <pthread.h>

#include "common/limits.h"
#include "common/log.h"
#include "common/metrics.h"
#include "http/server.h"
#include "profile-store/store.h"
#include "server/access/access.h"
#include "server/debuginfo_space.h"
#include "server/readiness.h"
#include "server/self_profile.h"
#include "server/server.h"
#include "server/tenants.h"

struct server {
        const struct server_options *options;  /* at startup */
        const struct server_options *reloaded; /* at the last reload: in force for reloadable options */
        char *scratch_dir;                     /* DIR/tmp: unlinked files of running work */
        int lock_fd;
        struct access_control access_control;
        struct debuginfo_spaces *spaces;   /* objects and symbols: handlers use only get_request_space() */
        struct tenants *tenants;           /* profile stores: handlers use only the one of their request's tenant */
        struct readiness *readiness;       /* opened after the tenants */
        struct self_profile *self_profile; /* NULL: off, or failed to start */
        struct http_server *http;
        struct grpc_server *grpc; /* NULL: no gRPC listener */
        struct http_route *routes;
        atomic_bool ready, stopping;
};

/* Thread pools by kind of request, so that no kind delays another; server.c has their sizes. */
enum server_pool {
        POOL_QUERY,  /* queries, lists, files of the tables; the default */
        POOL_STATUS, /* /metrics, status, sign-in; /healthz and /readyz need no pool */
        POOL_INGEST,
        POOL_UPLOAD,
        POOL_SYMBOLIZE,
        POOL_DEBUGINFOD, /* objects, sources and metadata: may wait for upstreams and workers */
        POOL_ADMIN,      /* garbage collection, re-symbolization, pins */
        POOL_COUNT,
};

/* Each routes_*.c has a table; routes.c joins them. The context of handlers is struct server. */
struct route_table {
        const struct http_route *routes;
        size_t count;
};
#define ROUTE_TABLE(items)                                                                                             \
        {                                                                                                              \
                (items), sizeof(items) / sizeof *(items)                                                               \
        }

extern const struct route_table status_routes, ingest_routes, pyroscope_routes, upload_routes, debuginfod_routes,
        debuginfo_routes, upstream_routes, upkeep_routes, source_routes, table_routes, symbolize_routes,
        symbolicate_routes, query_routes, symbolz_routes, why_routes, connect_upload_routes, metadata_routes,
        resymbolize_routes, store_routes, s3_routes, querier_routes, share_routes, session_routes, parca_routes,
        render_routes;

/** All routes; in a read-only service, routes that modify data respond with 403. Owned by the caller, free(). */
enum status routes_join(bool read_only, struct http_route **ret, size_t *count_ret, struct error *err) MUST_CHECK;

/* Duration of requests to all symbolization routes; defined in routes_symbolize.c. */
extern struct histogram symbolize_duration;

/** Apply the limits of uploads, transfers from upstreams and workers that begin from now on. */
void apply_server_limits(const struct server_options *o);

/** The {id} of the path as a build-id; responds with 400 and returns false when it is malformed. */
bool get_route_build_id(struct http_request *req, struct build_id *ret);

/** Respond with JSON. @param body  bytes taken */
void respond_json(struct http_request *req, struct buf *body);
/** respond_json() if st is ST_OK, else http_fail(). @param body  bytes taken in both cases */
void respond_result(struct http_request *req, enum status st, struct buf *body, const struct error *err);

/** Record that a client fetched this object. A failure is logged only. */
void record_object_use(struct debuginfo_space *s, const struct build_id *id, enum object_kind kind);

/**
 * Set X-DEBUGINFOD-SIZE and compare with the request's X-DEBUGINFOD-MAXSIZE. Source: elfutils, debuginfod(8).
 * @param size  of the response body; 0: not yet known.
 * @return false when the body is too large: the request was answered with 406.
 */
bool check_max_size(struct http_request *req, uint64_t size) MUST_CHECK;

#endif
