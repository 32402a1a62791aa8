/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tenants are a fixed array, made at startup, the default tenant first; a tenant's index is also its lane and the
 * index of its store. A reload changes rules and limits, never the array.
 *
 * Retention rules of one reading of the options form a rule set, which is reference counted: t->rules holds a
 * reference, as does each store that got its rules at a reload, so that a scan by old rules can end.
 *
 * A request passes tenants_choose(), tenants_admit(), tenants_finish(). Admission charges the declared size before the
 * body arrives: first against the tenant's share of ingest memory, then against its rate limits. The end of the
 * request corrects it to the bytes received.
 *
 * Lock: t->lock covers only the pointer to the rule set and items[].limits; what else changes is atomic, or used by
 * the reload alone.
 *
 * Order: rule sets, opening and closing, reload, choice of the tenant and admission, metrics.
 */
#include "server/core/tenants.h"

#include <assert.h>
#include <dirent.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/files/file.h"
#include "common/limits.h"
#include "common/memory/memory_budget.h"
#include "common/metrics.h"
#include "common/program/log.h"
#include "common/text/utf8.h"
#include "common/threads/condition.h"
#include "profile-store/tables/table_storage.h"
#include "server/core/commit_hander.h"
#include "server/core/forwarder.h"
#include "server/core/node_roles.h"
#include "server/core/peers.h"
#include "server/core/store_probe.h"
#include "storage/s3/s3_location.h"
#include "profile-store/tables/tables.h"

#define FLUSH_BYTES (UINT64_C(64) << 20)
#define QUEUED_BYTES (UINT64_C(512) << 20)

enum { BATCHES, SAMPLES, REFUSED, QUEUE_BYTES, SAMPLE_ROWS, TABLE_BYTES, TENANT_METRICS };

static const struct metric metric_kinds[TENANT_METRICS] = {
        [BATCHES] = METRIC_COUNTER("cairn_tenant_batches_total", "Batches acknowledged, by tenant.", ""),
        [SAMPLES] = METRIC_COUNTER("cairn_tenant_samples_total", "Samples acknowledged, by tenant.", ""),
        [REFUSED] = METRIC_COUNTER("cairn_tenant_limited_total", "Requests refused by the limits of their tenant.", ""),
        [QUEUE_BYTES] =
                METRIC_GAUGE("cairn_tenant_queue_bytes", "Bytes acknowledged and not yet in a part, by tenant.", ""),
        [SAMPLE_ROWS] = METRIC_GAUGE("cairn_tenant_sample_rows", "Rows of samples in parts, by tenant.", ""),
        [TABLE_BYTES] = METRIC_GAUGE("cairn_tenant_table_bytes", "Bytes of all live parts, by tenant.", ""),
};

struct tenant_metrics {
        char labels[TENANT_NAME_SIZE + 16];
        struct metric items[TENANT_METRICS];
};

/* Ends requests to the object store; the process closes its tenants once. */
static atomic_bool drain_is_over;

struct tenants {
        struct tenant *items;          /* the default tenant first */
        struct profile_store **stores; /* of items */
        struct rule_set *rules;        /* holds a reference */
        struct rule_set *first_rules;  /* holds one for the stores: they were opened with it */
        size_t count;
        pthread_mutex_t lock; /* protects items[].limits, and rules, which a reload replaces */
        bool are_configured, read_only;
        uint64_t drain_timeout_s;
        pthread_t drain_thread;
        pthread_mutex_t drain_lock; /* protects is_drained, and profiles of items while they are closed */
        pthread_cond_t drained;
        bool is_limited, is_drained;
        bool are_rules_mixed; /* a reload failed midway: some stores may use other rules */
        struct rate_limit *rate_limit;
        size_t arriving_max; /* limit on tenant.arriving_bytes at which further bodies are refused */
};

/* ---- retention rules ---- */

/* The rules of all tenants from one reading of the options. Reference counted: kept while a store uses any of them. */
struct rule_set {
        atomic_uint references;
        struct tenant_configs *configs;     /* owned, or NULL */
        const struct sample_rules **chosen; /* of each tenant: those of its configuration, or its service_rules */
        struct sample_rules *service_rules; /* a copy per tenant, as one thread at a time may use a rule's matchers */
        size_t count;
};

static void release_rule_set(void *context)
{
        struct rule_set *set = context;

        if (!set || atomic_fetch_sub(&set->references, 1) > 1)
                return;
        for (size_t i = 0; set->service_rules && i < set->count; i++)
                sample_rules_deinit(&set->service_rules[i]);
        tenant_configs_destroy(set->configs);
        free(set->service_rules);
        free(set->chosen);
        free(set);
}

static enum status copy_service_rules(const struct server_options *o, struct sample_rules *ret, struct error *err)
{
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < o->sample_rule_count; i++)
                st = sample_rules_add(ret, o->sample_rules[i], err);
        return st;
}

/* A tenant removed from the file keeps its rules, so that no other rules delete its data. */
static enum status make_rule_set(const struct tenants *t, const struct server_options *o,
                                 const struct tenant_configs *configs, struct rule_set **ret, struct error *err)
{
        struct rule_set *set = calloc(1, sizeof *set);
        enum status st = ST_OK;

        if (!set)
                return error_no_memory(err);
        atomic_init(&set->references, 1);
        set->count = t->count;
        set->chosen = calloc(t->count, sizeof *set->chosen);
        set->service_rules = calloc(t->count, sizeof *set->service_rules);
        if (!set->chosen || !set->service_rules)
                st = error_no_memory(err);
        for (size_t i = 0; !st && i < t->count; i++) {
                const struct tenant_config *c = i ? tenant_configs_find(configs, t->items[i].name) : NULL;

                set->chosen[i] = c && c->has_rules ? &c->rules : &set->service_rules[i];
                if (i && !c)
                        st = sample_rules_copy(&set->service_rules[i], t->rules->chosen[i], err);
                else if (!c || !c->has_rules)
                        st = copy_service_rules(o, &set->service_rules[i], err);
        }
        if (st)
                release_rule_set(set);
        else
                *ret = set;
        return st;
}

/* ---- opening ---- */

/*
 * With a small memory budget the store flushes sooner, and the queue fills before its memory reservation is refused.
 * @param divisor  fraction of the queue's memory  @param stores  number of stores that share it equally
 */
static uint64_t compute_queue_share(uint64_t max, unsigned divisor, size_t stores)
{
        uint64_t share = memory_use_ceiling(MEMORY_QUEUE) / 8 * 7 / divisor;

        return (share < max ? share : max) / stores;
}

static enum status register_tenant_metrics(struct tenant *t, struct error *err)
{
        struct tenant_metrics *m = calloc(1, sizeof *m);

        if (!m)
                return error_no_memory(err);
        snprintf(m->labels, sizeof m->labels, "tenant=\"%s\"", t->name);
        for (size_t i = 0; i < TENANT_METRICS; i++) {
                m->items[i].name = metric_kinds[i].name;
                m->items[i].help = metric_kinds[i].help;
                m->items[i].type = metric_kinds[i].type;
                m->items[i].labels = m->labels;
                metric_register(&m->items[i]);
        }
        t->metrics = m;
        return ST_OK;
}

static void unregister_tenant_metrics(struct tenant *t)
{
        if (!t->metrics)
                return;
        for (size_t i = 0; i < TENANT_METRICS; i++)
                metric_unregister(&t->metrics->items[i]);
        free(t->metrics);
}

/* Reject samples that retention would remove. */
static uint64_t compute_max_age(const struct server_options *o, const struct sample_limits *limits)
{
        assert(limits);
        return limits->age_s && (!o->max_age_s || o->max_age_s > limits->age_s) ? limits->age_s : o->max_age_s;
}

/* Tables of the default tenant are in URL/tables, those of others in URL/tenants/NAME/tables. */
static enum status choose_table_location(const struct server_options *o, const char *tenant, const char *dir,
                                         struct error *err)
{
        _cleanup_free_ char *root = o->store ? tenant_store_url(o->store, tenant) : NULL;
        _cleanup_free_ char *url = root ? path_join(root, "tables") : NULL;

        if (!o->store)
                return ST_OK;
        return url ? set_table_location(dir, url, err) : error_no_memory(err);
}

/* Tables of a gateway are empty: the position up to which its queue is forwarded is in their log. */
static enum status check_place_of_roles(const struct server_options *o, struct storage *tables, struct error *err)
{
        const bool is_gateway = o->roles & ROLE_GATEWAY, is_remote = is_s3_url(storage_root(tables));

        if (is_gateway && is_remote)
                return error_set(err, ST_USAGE,
                                 "a gateway has no tables: this data directory has them in an object store");
        if (o->roles != ROLE_ALL && !is_gateway && !o->read_only && !is_remote)
                return error_set(err, ST_USAGE,
                                 "--role needs tables in an object store (--store): a local directory has one service "
                                 "that writes it, with all roles, and others read it with --read-only");
        return ST_OK;
}

static enum status open_tenant(struct tenants *tenants, const struct tenants_options *o, size_t i,
                               const struct sample_limits *limits, struct error *err)
{
        struct debuginfo_space *space = o->spaces ? debuginfo_spaces_find(o->spaces, i) : NULL;
        struct profile_store_options options = {
                .size = sizeof options,
                .read_only = o->server->read_only,
                .has_follower = true,
                .flush_interval_ms = o->server->flush_interval_ms,
                .commit_interval_ms = o->server->commit_interval_ms,
                .removed_grace_ms = o->server->removed_grace_ms,
                .lease_ms = o->server->lease_ms,
                .limits = *limits,
                .flush_bytes = compute_queue_share(FLUSH_BYTES, 4, tenants->count),
                .max_queued_bytes = compute_queue_share(QUEUED_BYTES, 1, tenants->count),
                .symbols = space ? space->symbols : NULL,
                .missing_debuginfo = space ? debuginfo_space_request_missing : NULL,
                .missing_context = space,
                .has_no_flush = !(o->server->roles & (ROLE_INGEST | ROLE_GATEWAY)),
                .has_no_maintenance = !(o->server->roles & (ROLE_MAINTAIN | ROLE_GATEWAY)),
                .has_no_scans = !(o->server->roles & ROLE_QUERY),
                .when_away = i && profile_store_lacks_tables(tenants->stores[0]) ? TABLES_ARE_AWAY : TABLES_MAY_BE_AWAY,
                .check_tables = i == 0 ? store_probe_require : NULL,
        };
        struct tenant *t = &tenants->items[i];
        const struct share_limits shares = { o->server->share_bytes, o->server->share_age_s };
        _cleanup_free_ char *base = tenant_data_path(o->server->dir, t->name);
        _cleanup_free_ char *dir = base ? path_join(base, "profiles") : NULL;
        enum status st;

        if (!dir)
                return error_no_memory(err);
        t->lane = (unsigned)i;
        t->space = space;
        t->max_age_s = compute_max_age(o->server, limits);
        t->max_ahead_s = o->server->max_ahead_s;
        t->acks_in_store = o->server->acks_in_store;
        t->bodies.most = tenants->arriving_max;
        st = choose_table_location(o->server, t->name, dir, err);
        if (!st)
                st = open_table_storage(dir, &t->tables, err);
        if (!st)
                st = check_place_of_roles(o->server, t->tables, err);
        if (!st && o->server->acks_in_store && !is_s3_url(storage_root(t->tables)))
                st = error_set(err, ST_USAGE, "--ack=store needs tables in an object store: give --store");
        options.tables = t->tables;
        if (o->peers)
                peers_set_store_options(o->peers, i, &options);
        if (o->hander)
                commit_hander_set_store_options(o->hander, i, &options);
        if (o->forwarder)
                forwarder_set_store_options(o->forwarder, i, &options);
        if (!st)
                st = profile_store_open(dir, &options, &t->profiles, err);
        if (!st)
                tenants->stores[i] = t->profiles;
        if (!st)
                st = share_store_open(base, &shares, options.read_only, &t->shares, err);
        if (!st)
                st = recording_rules_open(base, i == 0 ? o->server->recording_rules : NULL, &t->recording, err);
        if (!st)
                st = ingest_history_create(&t->ingested, err);
        if (!st && o->configs)
                st = register_tenant_metrics(t, err);
        return st;
}

static void warn_of_unconfigured(const struct tenants_options *o)
{
        _cleanup_free_ char *dir = path_join(o->server->dir, "tenants");
        _cleanup_closedir_ DIR *d = dir ? opendir(dir) : NULL;
        struct dirent *e;

        while (d && (e = readdir(d)))
                if (e->d_name[0] != '.' && !tenant_configs_have(o->configs, e->d_name))
                        log_warn("serve",
                                 "'%s/%.40s' belongs to a tenant that is not configured: it is kept, not served", dir,
                                 PRINTABLE(e->d_name));
}

static void name_tenants(struct tenants *t, const struct tenant_configs *configs)
{
        snprintf(t->items[0].name, sizeof t->items[0].name, TENANT_DEFAULT);
        assert(configs || t->count == 1);
        for (size_t i = 1; i < t->count; i++) {
                memcpy(t->items[i].name, configs->items[i - 1].name, sizeof t->items[i].name);
                t->items[i].limits = configs->items[i - 1].limits;
        }
}

enum status tenants_open(const struct tenants_options *o, struct tenants **ret, struct error *err)
{
        struct tenants *t = calloc(1, sizeof *t);
        enum status st = ST_OK;

        if (!t)
                return error_no_memory(err);
        t->count = 1 + (o->configs ? o->configs->count : 0);
        t->are_configured = o->configs;
        t->read_only = o->server->read_only;
        t->drain_timeout_s = o->server->drain_timeout_s;
        t->arriving_max = memory_use_ceiling(MEMORY_INGEST) / 2;
        pthread_mutex_init(&t->lock, NULL);
        pthread_mutex_init(&t->drain_lock, NULL);
        pthread_cond_init(&t->drained, NULL);
        t->items = calloc(t->count, sizeof *t->items);
        t->stores = calloc(t->count, sizeof(void *));
        if (!t->items || !t->stores)
                st = error_no_memory(err);
        if (!st)
                st = rate_limit_create(&t->rate_limit, err);
        if (!st) {
                name_tenants(t, o->configs);
                st = make_rule_set(t, o->server, o->configs, &t->rules, err);
        }
        if (!st) {
                t->first_rules = t->rules;
                atomic_fetch_add(&t->first_rules->references, 1);
        }
        for (size_t i = 0; !st && i < t->count; i++)
                st = open_tenant(t, o, i, &t->rules->chosen[i]->limits, err);
        if (st) {
                tenants_close(t);
                return st;
        }
        warn_of_unconfigured(o);
        *ret = t;
        return ST_OK;
}

/*
 * The time limit of the end: a thread then makes requests to the object store, and flushes, fail. A commit whose answer
 * is lost thereby is recognized at the next start, like any.
 */
static void *run_drain_limit(void *context)
{
        struct tenants *t = context;
        int64_t until_ns = monotonic_ns() + (int64_t)t->drain_timeout_s * 1000000000;
        bool in_time = true;

        prctl(PR_SET_NAME, "drain");
        pthread_mutex_lock(&t->drain_lock);
        while (!t->is_drained && in_time)
                in_time = condition_wait_until(&t->drained, &t->drain_lock, until_ns);
        if (!t->is_drained) {
                atomic_store(&drain_is_over, true);
                for (size_t i = 0; i < t->count; i++)
                        if (t->items[i].profiles)
                                profile_store_stop(t->items[i].profiles);
        }
        pthread_mutex_unlock(&t->drain_lock);
        return NULL;
}

const atomic_bool *tenants_get_drain_flag(void)
{
        return &drain_is_over;
}

void tenants_begin_drain(struct tenants *t)
{
        if (!t || t->read_only || !t->drain_timeout_s)
                return;
        t->is_limited = pthread_create(&t->drain_thread, NULL, run_drain_limit, t) == 0;
}

static void end_drain(struct tenants *t)
{
        pthread_mutex_lock(&t->drain_lock);
        t->is_drained = true;
        pthread_cond_signal(&t->drained);
        pthread_mutex_unlock(&t->drain_lock);
        if (t->is_limited)
                pthread_join(t->drain_thread, NULL);
}

static void log_undrained(const struct tenants *t, const struct tenant *tenant, const struct error *why)
{
        uint64_t batches, bytes;

        profile_store_count_queued(tenant->profiles, &batches, &bytes);
        log_error("serve",
                  "%s%s%s%" PRIu64 " batches (%" PRIu64 " bytes of memory) stay in the queue until the next start: %s",
                  t->are_configured ? "tenant " : "", t->are_configured ? tenant->name : "",
                  t->are_configured ? ": " : "", batches, bytes, why->text);
}

static void flush_tenants(struct tenants *t)
{
        for (size_t i = 0; t->items && i < t->count; i++) {
                struct error err;

                if (t->items[i].profiles && profile_store_flush(t->items[i].profiles, &err))
                        log_undrained(t, &t->items[i], &err);
        }
}

/* The end of the time limit ends requests of the store that is being closed, too. */
static void close_tenant(struct tenants *tenants, struct tenant *t)
{
        struct profile_store *profiles;

        pthread_mutex_lock(&tenants->drain_lock);
        profiles = t->profiles;
        t->profiles = NULL;
        pthread_mutex_unlock(&tenants->drain_lock);
        profile_store_close(profiles);
        share_store_close(t->shares);
        recording_rules_close(t->recording);
        ingest_history_destroy(t->ingested);
        unregister_tenant_metrics(t);
        storage_close(t->tables);
}

void tenants_close(struct tenants *t)
{
        if (!t)
                return;
        if (!t->read_only)
                flush_tenants(t);
        for (size_t i = 0; t->items && i < t->count; i++)
                close_tenant(t, &t->items[i]);
        end_drain(t);
        release_rule_set(t->rules);
        release_rule_set(t->first_rules);
        rate_limit_destroy(t->rate_limit);
        pthread_mutex_destroy(&t->lock);
        pthread_mutex_destroy(&t->drain_lock);
        pthread_cond_destroy(&t->drained);
        free(t->stores);
        free(t->items);
        free(t);
}

/* ---- reload ---- */

static bool has_own_debuginfo(const struct tenant *tenant)
{
        return tenant->space && tenant->space->tenant;
}

static void count_tenant_changes(const struct tenants *t, const struct tenant_configs *configs,
                                 struct tenants_reload *ret)
{
        *ret = (struct tenants_reload){ 0 };
        for (size_t i = 1; i < t->count; i++) {
                const struct tenant_config *c = tenant_configs_find(configs, t->items[i].name);

                ret->removed += !c;
                ret->moved += c && c->has_own_debuginfo != has_own_debuginfo(&t->items[i]);
        }
        for (size_t c = 0; configs && c < configs->count; c++) {
                size_t i = 1;

                while (i < t->count && strcmp(t->items[i].name, configs->items[c].name) != 0)
                        i++;
                ret->added += i == t->count;
        }
}

/* Unchanged rules are not replaced, because new rules cause a scan of all old days. */
static enum status replace_tenant_rules(struct tenants *t, struct rule_set *fresh, struct error *err)
{
        enum status st = ST_OK;

        for (size_t i = 0; i < t->count && !st; i++) {
                if (!t->are_rules_mixed && sample_rules_are_equal(t->rules->chosen[i], fresh->chosen[i]))
                        continue;
                atomic_fetch_add(&fresh->references, 1);
                st = profile_store_set_limits(t->items[i].profiles, &fresh->chosen[i]->limits, release_rule_set, fresh,
                                              err);
                if (st)
                        release_rule_set(fresh);
        }
        t->are_rules_mixed = st;
        return st;
}

/* @return the previous rule set, with its reference. */
static struct rule_set *exchange_rule_set(struct tenants *t, struct rule_set *fresh)
{
        struct rule_set *old;

        pthread_mutex_lock(&t->lock);
        old = t->rules;
        t->rules = fresh;
        pthread_mutex_unlock(&t->lock);
        return old;
}

enum status tenants_reload(struct tenants *t, const struct server_options *server, struct tenant_configs *configs,
                           struct tenants_reload *ret, struct error *err)
{
        struct rule_set *fresh;
        enum status st = make_rule_set(t, server, configs, &fresh, err);

        if (st) {
                tenant_configs_destroy(configs);
                return st;
        }
        fresh->configs = configs;
        count_tenant_changes(t, configs, ret);
        st = replace_tenant_rules(t, fresh, err);
        for (size_t i = 0; i < t->count && !st; i++) {
                const struct tenant_config *c = i ? tenant_configs_find(configs, t->items[i].name) : NULL;

                atomic_store(&t->items[i].max_age_s, compute_max_age(server, &fresh->chosen[i]->limits));
                atomic_store(&t->items[i].max_ahead_s, server->max_ahead_s);
                pthread_mutex_lock(&t->lock);
                if (c)
                        t->items[i].limits = c->limits;
                pthread_mutex_unlock(&t->lock);
        }
        if (!st)
                fresh = exchange_rule_set(t, fresh);
        release_rule_set(fresh);
        return st;
}

void tenants_visit_limits(struct tenants *t, const struct tenant *tenant,
                          void (*visit)(void *context, const struct sample_limits *limits), void *context)
{
        struct rule_set *set;

        pthread_mutex_lock(&t->lock);
        set = t->rules;
        atomic_fetch_add(&set->references, 1);
        pthread_mutex_unlock(&t->lock);
        visit(context, &set->chosen[tenant->lane]->limits);
        release_rule_set(set);
}

struct profile_store *const *tenants_get_stores(const struct tenants *t)
{
        return t->stores;
}

size_t tenants_count(const struct tenants *t)
{
        return t->count;
}

const char *tenants_get_name(const struct tenants *t, size_t i)
{
        return t->are_configured ? t->items[i].name : NULL;
}

void tenants_expire_shares(struct tenants *t)
{
        for (size_t i = 0; i < t->count; i++)
                share_store_expire(t->items[i].shares);
}

/* ---- the tenant of a request ---- */

PRINTF(3, 4)
static unsigned refuse_tenant(struct error *err, unsigned code, const char *fmt, ...)
{
        va_list args;

        *err = (struct error){ .code = ST_USAGE };
        va_start(args, fmt);
        vsnprintf(err->text, sizeof err->text, fmt, args);
        va_end(args);
        return code;
}

static struct tenant *find_tenant(struct tenants *t, const char *name)
{
        for (size_t i = 0; i < t->count; i++)
                if (strcmp(t->items[i].name, name) == 0)
                        return &t->items[i];
        return NULL;
}

/* With a token that is bound to a tenant, the header may only name that tenant. */
static unsigned choose_bound_tenant(struct tenants *t, const struct tenant_request *r, const char *bound,
                                    struct tenant **ret, struct error *err)
{
        if (r->header && strcmp(r->header, bound) != 0)
                return refuse_tenant(err, 403, "the token belongs to another tenant than the one in " TENANT_HEADER);
        *ret = find_tenant(t, bound);
        return *ret ? 0 : refuse_tenant(err, 403, "the token belongs to a tenant that is not configured");
}

/* Upkeep of debuginfo concerns the whole service, except in a tenant's own debuginfo space. */
static bool is_for_whole_service(struct tenants *t, enum http_tenancy tenancy, const char *name)
{
        const struct tenant *tenant = find_tenant(t, name);

        return tenancy == TENANCY_WHOLE || (tenancy == TENANCY_UPKEEP && !(tenant && has_own_debuginfo(tenant)));
}

unsigned tenants_choose(struct tenants *t, const struct tenant_request *r, struct tenant **ret, struct error *err)
{
        const char *token_tenant = r->token_tenant;

        assert(r->tenancy != TENANCY_UNDECIDED);
        if (!t->are_configured) {
                *ret = &t->items[0];
                return 0;
        }
        if (r->header && !tenant_name_is_valid(r->header))
                return refuse_tenant(err, 400, TENANT_HEADER " is not the name of one tenant");
        if (token_tenant && !token_tenant[0])
                return choose_bound_tenant(t, r, TENANT_DEFAULT, ret, err);
        if (token_tenant && strcmp(token_tenant, "*") != 0)
                return is_for_whole_service(t, r->tenancy, token_tenant)
                               ? refuse_tenant(err, 403, "this concerns all tenants, and the token is bound to one")
                               : choose_bound_tenant(t, r, token_tenant, ret, err);
        *ret = find_tenant(t, r->header ? r->header : TENANT_DEFAULT);
        return *ret ? 0 : refuse_tenant(err, 404, "the tenant '%s' is not configured", r->header);
}

/* Assumed size of a body of unknown size, as in chunked encoding and gRPC. */
#define UNKNOWN_BODY_BYTES MiB(1)

/* Bytes to add to arriving_bytes. A body over the size limit counts as 0: it is rejected without being buffered. */
static uint64_t count_arriving(enum http_scope scope, uint64_t bytes)
{
        if (scope != SCOPE_INGEST || bytes > LIMIT_HTTP_BODY_BYTES)
                return 0;
        return bytes ? bytes : UNKNOWN_BODY_BYTES;
}

struct memory_group *get_body_group(const struct tenants *t, struct tenant *tenant, enum http_scope scope)
{
        return t->are_configured && scope == SCOPE_INGEST ? &tenant->bodies : NULL;
}

static uint64_t refuse_tenant_request(struct tenant *tenant, uint64_t wait_s, const char *why, struct error *err)
{
        wait_s = wait_s ? wait_s : 1;
        metric_add(&tenant->metrics->items[REFUSED], 1);
        error_set(err, ST_BUSY, "tenant %s %s; retry in %llu s", tenant->name, why, (unsigned long long)wait_s);
        return wait_s;
}

static struct rate_limit_config get_tenant_limits(struct tenants *t, const struct tenant *tenant)
{
        struct rate_limit_config limits;

        pthread_mutex_lock(&t->lock);
        limits = tenant->limits;
        pthread_mutex_unlock(&t->lock);
        return limits;
}

uint64_t tenants_admit(struct tenants *t, struct tenant *tenant, enum http_scope scope, uint64_t bytes,
                       struct error *err)
{
        uint64_t wait_s = 0, arriving = count_arriving(scope, bytes);
        struct rate_limit_config limits;
        enum rate_verdict verdict = RATE_FINE;

        if (!t->are_configured)
                return 0;
        if (atomic_fetch_add(&tenant->arriving_bytes, arriving) > t->arriving_max && arriving) {
                atomic_fetch_sub(&tenant->arriving_bytes, arriving);
                return refuse_tenant_request(tenant, 0, "sends more at one time than its share of the memory", err);
        }
        limits = get_tenant_limits(t, tenant);
        if (limits.requests_per_s || limits.bytes_per_day)
                verdict = rate_limit_take(t->rate_limit, tenant->lane, &limits, bytes, monotonic_ns(), &wait_s);
        if (verdict == RATE_FINE)
                return 0;
        atomic_fetch_sub(&tenant->arriving_bytes, arriving);
        return refuse_tenant_request(tenant, wait_s,
                                     verdict == RATE_BYTES ? "has sent the bytes that it may send in a day"
                                                           : "sends more requests a second than it may",
                                     err);
}

void tenants_finish(struct tenants *t, struct tenant *tenant, enum http_scope scope, uint64_t admitted,
                    uint64_t received)
{
        struct rate_limit_config limits;

        if (!t->are_configured)
                return;
        atomic_fetch_sub(&tenant->arriving_bytes, count_arriving(scope, admitted));
        limits = get_tenant_limits(t, tenant);
        if (received != admitted && limits.bytes_per_day)
                rate_limit_correct(t->rate_limit, tenant->lane, &limits, admitted, received, monotonic_ns());
}

struct tenant *get_request_tenant(const struct http_request *req)
{
        assert(http_tenant(req));
        return http_tenant(req);
}

/* ---- metrics ---- */

void tenant_count_batches(struct tenant *t, uint64_t batches, uint64_t samples)
{
        if (!t->metrics)
                return;
        metric_add(&t->metrics->items[BATCHES], (int64_t)batches);
        metric_add(&t->metrics->items[SAMPLES], (int64_t)samples);
}

void tenants_publish_metrics(struct tenants *t, const struct profile_store_stat *stats)
{
        for (size_t i = 0; t->are_configured && i < t->count; i++) {
                struct metric *m = t->items[i].metrics->items;

                metric_set(&m[QUEUE_BYTES], (int64_t)stats[i].queued_bytes);
                metric_set(&m[SAMPLE_ROWS], (int64_t)stats[i].sample_rows);
                metric_set(&m[TABLE_BYTES], (int64_t)stats[i].bytes);
        }
}
