/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_INTERNAL_H
#define CAIRN_SERVER_INTERNAL_H

#include <pthread.h>

#include "common/limits.h"
#include "common/metrics.h"
#include "common/program/log.h"
#include "http/http_server.h"
#include "profile-store/profile_store.h"
#include "server/access/access.h"
#include "server/core/debuginfo_space.h"
#include "server/core/node_roles.h"
#include "server/core/commit_hander.h"
#include "server/core/forwarder.h"
#include "server/core/peers.h"
#include "server/core/readiness.h"
#include "server/core/self_profile.h"
#include "server/core/tenants.h"
#include "server/server_options.h"

struct server {
        const struct server_options *options;  /* at startup */
        const struct server_options *reloaded; /* at the last reload: in force for reloadable options */
        char *scratch_dir;                     /* DIR/tmp: unlinked files of running work */
        int lock_fd;
        struct access_control access_control;
        struct debuginfo_spaces *spaces;   /* objects and symbols: handlers use only get_request_space() */
        struct tenants *tenants;           /* profile stores: handlers use only the one of their request's tenant */
        struct peers *peers;               /* NULL: none */
        struct commit_hander *hander;      /* of one of several nodes; else NULL */
        struct forwarder *forwarder;       /* of a gateway; else NULL */
        struct readiness *readiness;       /* opened after the tenants */
        struct self_profile *self_profile; /* NULL: off, or failed to start */
        struct http_server *http;
        struct grpc_server *grpc; /* NULL: no gRPC listener */
        struct http_route *routes;
        struct grpc_method *grpc_methods; /* of the listener */
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

/* Duration of requests to all symbolization routes; defined in routes_symbolize.c. */
extern struct histogram symbolize_duration;

/** Apply the limits of uploads, transfers from upstreams and workers that begin from now on. */
void apply_server_limits(const struct server_options *o);

#endif
