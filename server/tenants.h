/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_TENANTS_H
#define CAIRN_SERVER_TENANTS_H

/**
 * @file
 * Tenants: each has a profile store of its own, with queue, tables, retention and limits. The memory budget is shared,
 * as are debuginfo and symbols but of tenants with the setting `debuginfo own`. docs/internals/tenants.md
 *
 * The tenant of a request is chosen once, before its body is received (tenants_choose()), and handed to its handler by
 * get_request_tenant() or grpc_call_tenant(): struct server has no profile store that a handler could use instead.
 *
 * Threads: any, except open and close.
 */
#include <stdatomic.h>

#include "http/server.h"
#include "profile-store/store.h"
#include "server/access/tenant_config.h"
#include "server/debuginfo_space.h"
#include "server/ingest_history.h"
#include "server/server.h"
#include "server/share/share_store.h"

struct tenant {
        char name[TENANT_NAME_SIZE];
        char *tables_dir; /* PROFILES/tables */
        struct profile_store *profiles;
        struct debuginfo_space *space;           /* that its symbols come from: the shared one, or its own */
        struct share_store *shares;              /* profiles by link */
        struct ingest_history *ingested;         /* what came lately, and from whom */
        _Atomic uint64_t max_age_s, max_ahead_s; /* of samples that are accepted; 0: no bound */
        unsigned lane;                           /* its index: http_set_lane() */
        struct rate_limit_config limits;         /* with the lock of struct tenants */
        _Atomic uint64_t arriving_bytes;         /* that requests announced which are being ingested */
        struct memory_group bodies;              /* what of them is there */
        struct tenant_metrics *metrics;          /* NULL without configured tenants */
        /* Requested re-symbolizations that run, and the progress of the last. */
        _Atomic uint64_t resymbolize_running, resymbolize_done, resymbolize_all;
};

struct tenants;

struct tenants_options {
        const struct server_options *server;  /* borrowed, as is everything here */
        const struct tenant_configs *configs; /* NULL: only the default tenant, whatever requests name */
        struct debuginfo_spaces *spaces;      /* NULL: stores without symbols */
};

enum status tenants_open(const struct tenants_options *options, struct tenants **ret, struct error *err) MUST_CHECK;
/** Flush what is queued, then close; NULL is allowed. */
void tenants_close(struct tenants *t);

/** What a reload of the tenants file could not change while the service runs. */
struct tenants_reload {
        unsigned added, removed; /* tenants that are in one of the files only: a restart is needed for these */
        unsigned moved;          /* whose setting "debuginfo" was changed, likewise */
};

/**
 * Apply retention rules, limits and the bounds of samples' ages of other options, to the tenants that there are.
 * One thread at a time.
 * @param server   the service's options of now; copied from.
 * @param configs  taken, also on failure; NULL when no tenants are configured, and none may be then.
 */
enum status tenants_reload(struct tenants *t, const struct server_options *server, struct tenant_configs *configs,
                           struct tenants_reload *ret, struct error *err) MUST_CHECK;

/** The stores of all tenants, the default one's first; borrowed. For what works on all of them, and no handler. */
struct profile_store *const *tenants_get_stores(const struct tenants *t);
size_t tenants_count(const struct tenants *t);
/** The name of a store's tenant; NULL when there is only the default one. */
const char *tenants_get_name(const struct tenants *t, size_t i);

/** Call visit with the retention of a tenant's samples as it is now; valid during the call. */
void tenants_visit_limits(struct tenants *t, const struct tenant *tenant,
                          void (*visit)(void *context, const struct sample_limits *limits), void *context);

/** Remove shares that are over their age. */
void tenants_expire_shares(struct tenants *t);

/** Who asks for a tenant, and for what. */
struct tenant_request {
        const char *header;     /* TENANT_HEADER; NULL: not sent; "": there are several, and a proxy's may be any */
        const char *token_says; /* tokens_get_tenant(); NULL: there are no tokens */
        enum http_tenancy tenancy;
};

/**
 * The tenant of a request; never another than its token allows.
 * @return 0, or the HTTP status to refuse it with: 400, 403, 404; err has the reason.
 */
unsigned tenants_choose(struct tenants *t, const struct tenant_request *request, struct tenant **ret,
                        struct error *err);

/**
 * Charge one request and its bytes (0: not known) to the tenant's limits, and to its share of the bodies that are being
 * ingested. Bodies of unknown size, and what others unpack to, count as they arrive: get_body_group().
 * @return 0; tenants_finish() must follow. Or the seconds until a retry.
 */
uint64_t tenants_admit(struct tenants *t, struct tenant *tenant, enum http_scope scope, uint64_t bytes,
                       struct error *err);
/** Where the memory of a body counts; NULL: only in the budget. */
struct memory_group *get_body_group(const struct tenants *t, struct tenant *tenant, enum http_scope scope);
/** At the request's end: charge the bytes received in place of those admitted. */
void tenants_finish(struct tenants *t, struct tenant *tenant, enum http_scope scope, uint64_t admitted,
                    uint64_t received);

/** The tenant of a request for what is TENANCY_OWN. */
struct tenant *get_request_tenant(const struct http_request *req);

/** Count an acknowledged batch and its samples. */
void tenant_count_batch(struct tenant *t, uint64_t samples);
/** Set the metrics of all tenants, from the statistics of their stores. */
void tenants_publish_metrics(struct tenants *t, const struct profile_store_stat *stats);

#endif
