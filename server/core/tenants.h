/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_CORE_TENANTS_H
#define CAIRN_SERVER_CORE_TENANTS_H

/**
 * @file
 * Tenants: each has its own profile store, with queue, tables, retention and limits. The memory budget is shared, as
 * are debuginfo and symbols, except for tenants with the setting `debuginfo own`. docs/internals/tenants.md
 *
 * The tenant of a request is chosen once, before its body is received (tenants_choose()). A handler gets it from
 * get_request_tenant() or grpc_call_tenant(): struct server has no profile store that could be used by mistake.
 *
 * Threads: any, except open and close.
 */
#include <stdatomic.h>

#include "http/http_server.h"
#include "profile-store/profile_store.h"
#include "server/access/tenant_config.h"
#include "server/core/debuginfo_space.h"
#include "server/core/ingest_history.h"
#include "server/core/recording_rules.h"
#include "server/core/share_store.h"
#include "server/server_options.h"

struct tenant {
        char name[TENANT_NAME_SIZE];
        struct storage *tables; /* of profiles, to serve its files; owned */
        struct profile_store *profiles;
        struct debuginfo_space *space;           /* source of its symbols: the shared space, or its own */
        struct share_store *shares;              /* shared profiles */
        struct recording_rules *recording;       /* rules for metrics */
        struct ingest_history *ingested;         /* recent ingest and its senders */
        bool acks_in_store;                      /* server_options */
        _Atomic uint64_t max_age_s, max_ahead_s; /* limits on accepted samples; 0: none */
        unsigned lane;                           /* index of the tenant, for http_set_tenant() */
        struct rate_limit_config limits;         /* protected by the lock of struct tenants */
        _Atomic uint64_t arriving_bytes;         /* declared sizes of requests being ingested */
        struct memory_group bodies;              /* memory of their bodies */
        struct tenant_metrics *metrics;          /* NULL without configured tenants */
        /* Running requests for re-symbolization, and the progress of the last one. */
        _Atomic uint64_t resymbolize_running, resymbolize_done, resymbolize_all;
};

struct tenants;

struct commit_hander;
struct peers;

struct tenants_options {
        const struct server_options *server;  /* borrowed, as are all members */
        const struct tenant_configs *configs; /* NULL: only the default tenant, whatever the header of requests */
        struct peers *peers;                  /* whose heads scans have; NULL: none */
        struct commit_hander *hander;         /* to nodes that commit for this one; NULL: it commits alone */
        struct forwarder *forwarder;          /* of a gateway; NULL: the node writes to its tables */
        struct debuginfo_spaces *spaces;      /* NULL: stores without symbols */
};

enum status tenants_open(const struct tenants_options *options, struct tenants **ret, struct error *err) MUST_CHECK;
/** Limit the time of what the stores still do before tenants_close() to server->drain_timeout_s. NULL is allowed. */
void tenants_begin_drain(struct tenants *t);
/** Set when that time is over; for s3_storage_set_stop(). */
const atomic_bool *tenants_get_drain_flag(void);
/** Flush queued batches, then close. What is left is logged and stays in the queue. NULL is allowed. */
void tenants_close(struct tenants *t);

/** Changes of the tenants file that need a restart, as numbers of tenants. */
struct tenants_reload {
        unsigned added, removed; /* only in the new or the old file */
        unsigned moved;          /* setting `debuginfo` changed */
};

/**
 * Apply retention rules, limits and bounds on sample ages of reloaded options to the existing tenants. One thread at a
 * time.
 * @param server   the reloaded options; not kept.
 * @param configs  taken, also on failure; NULL if, and only if, tenants_open() had none.
 */
enum status tenants_reload(struct tenants *t, const struct server_options *server, struct tenant_configs *configs,
                           struct tenants_reload *ret, struct error *err) MUST_CHECK;

/** The stores of all tenants, the default one's first; borrowed. For work on all stores; handlers must not use it. */
struct profile_store *const *tenants_get_stores(const struct tenants *t);
size_t tenants_count(const struct tenants *t);
/** The name of a store's tenant; NULL when no tenants are configured. */
const char *tenants_get_name(const struct tenants *t, size_t i);

/** Call visit with the current retention limits of a tenant; they are valid during the call. */
void tenants_visit_limits(struct tenants *t, const struct tenant *tenant,
                          void (*visit)(void *context, const struct sample_limits *limits), void *context);

/** Remove expired shares. */
void tenants_expire_shares(struct tenants *t);

/** Input of tenants_choose(). */
struct tenant_request {
        const char *header;       /* TENANT_HEADER; NULL: absent; "": sent more than once, so ambiguous */
        const char *token_tenant; /* from tokens_get_tenant(); NULL: the service has no tokens */
        enum http_tenancy tenancy;
};

/**
 * Choose the tenant of a request, within the limits of its token.
 * @return 0, or the HTTP status with which to refuse the request: 400, 403, 404; err has the reason.
 */
unsigned tenants_choose(struct tenants *t, const struct tenant_request *request, struct tenant **ret,
                        struct error *err);

/**
 * Charge one request and its bytes (0: unknown) to the tenant's limits, and to its share of the bodies that are being
 * ingested. Bodies of unknown size, and decompressed ones, are counted as they arrive: get_body_group().
 * @return 0: admitted, tenants_finish() must follow; else the seconds until a retry.
 */
uint64_t tenants_admit(struct tenants *t, struct tenant *tenant, enum http_scope scope, uint64_t bytes,
                       struct error *err);
/** The group to which the memory of a body is charged; NULL: only to the budget. */
struct memory_group *get_body_group(const struct tenants *t, struct tenant *tenant, enum http_scope scope);
/** At the request's end: charge the bytes received in place of those admitted. */
void tenants_finish(struct tenants *t, struct tenant *tenant, enum http_scope scope, uint64_t admitted,
                    uint64_t received);

/** The tenant of a request to a route with a tenancy. */
struct tenant *get_request_tenant(const struct http_request *req);

/** Count an acknowledged batch and its samples. */
void tenant_count_batches(struct tenant *t, uint64_t batches, uint64_t samples);
/** Set the metrics of all tenants, from the statistics of their stores. */
void tenants_publish_metrics(struct tenants *t, const struct profile_store_stat *stats);

#endif
