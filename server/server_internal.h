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
        const struct server_options *options;  /* of the start */
        const struct server_options *reloaded; /* of the last reload: what it can change is as these say */
        char *scratch_dir;                     /* DIR/tmp: unlinked files of running work */
        int lock_fd;
        struct access_control access_control;
        struct debuginfo_spaces *spaces; /* with the objects and symbols: handlers have get_request_space() only */
        struct tenants *tenants;     /* with the profile stores: handlers have that of their request's tenant only */
        struct readiness *readiness; /* with the tenants */
        struct self_profile *self_profile; /* NULL: it is off, or cannot be */
        struct http_server *http;
        struct grpc_server *grpc; /* NULL: no such listener */
        struct http_route *routes;
        atomic_bool ready, stopping;
};

/* Thread pools by kind of request, so that no kind waits for another; server.c has their sizes. */
enum server_pool {
        POOL_QUERY,  /* queries, lists, files of the tables; the default */
        POOL_STATUS, /* /metrics; /healthz and /readyz need no thread at all */
        POOL_INGEST,
        POOL_UPLOAD,
        POOL_SYMBOLIZE,
        POOL_DEBUGINFOD, /* objects, sources and metadata: may wait for upstreams and workers */
        POOL_ADMIN,      /* collection, re-symbolization, pins */
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
        resymbolize_routes, store_routes, s3_routes, querier_routes, share_routes, session_routes, parca_routes;

/** All routes; in a read-only service, routes that modify data answer 403. Owned by the caller, free(). */
enum status routes_join(bool read_only, struct http_route **ret, size_t *count_ret, struct error *err) MUST_CHECK;

/* Of the routes that symbolize: routes_symbolize.c. */
extern struct histogram symbolize_duration;

/** The limits of what begins from now on: uploads, transfers from upstreams, workers. */
void apply_server_limits(const struct server_options *o);

/** The {id} of the path as a build-id; responds with 400 and returns false when it is malformed. */
bool get_route_build_id(struct http_request *req, struct build_id *ret);

/** Answer with what buf holds as JSON. Takes the bytes. */
void respond_json(struct http_request *req, struct buf *body);
/** The same when st is ST_OK, else http_fail(). Takes the bytes in both cases. */
void respond_result(struct http_request *req, enum status st, struct buf *body, const struct error *err);

/** Record that a client fetched this object. A failure is logged only. */
void record_object_use(struct debuginfo_space *s, const struct build_id *id, enum object_kind kind);

/** Append text percent-encoded for a URL's path; unreserved characters and those in keep stay. Source: RFC 3986, 2.3.
 */
void append_url_encoded(struct buf *to, const char *text, const char *keep);
/** Whether ".." components lead above the path's root. */
bool is_path_outside_root(const char *path);

/**
 * Set X-DEBUGINFOD-SIZE and compare with the request's X-DEBUGINFOD-MAXSIZE. Source: elfutils, debuginfod(8).
 * @param size of the response body; 0: not known yet.
 * @return false when the body is too large: the request was answered with 406.
 */
bool check_max_size(struct http_request *req, uint64_t size) MUST_CHECK;

#endif
