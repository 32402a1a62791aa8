/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Item 0 is the shared space, the others belong to one tenant each; of_tenant maps a tenant's number to its item. The
 * set of spaces is fixed at startup, and items do not move.
 *
 * A space starts in two steps, because the profile stores are opened in between: _open() opens objects and index,
 * _start() receives the stores and starts the threads. Flushes of the stores may request objects already between the
 * steps; _open() therefore takes federation_lock of all spaces, and _start() releases it.
 *
 * The callbacks at the beginning connect the parts: a missing object is requested from --scan and upstreams, a fetched
 * one is queued for indexing, an indexed one notifies garbage collection. They run in the threads of these parts,
 * hence gc_thread is atomic. Parts that produce work are stopped before those that receive it; the indexer and garbage
 * collection refer to each other, so garbage collection is stopped before the indexer and destroyed after it.
 *
 * Order: callbacks, opening, starting, stopping and closing, access while running.
 */
#include "server/core/debuginfo_space.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/files/distribution.h"
#include "common/files/file.h"
#include "common/files/lmdb_check.h"
#include "common/limits.h"
#include "common/metrics.h"
#include "common/program/log.h"
#include "common/text/number_text.h"
#include "debuginfo-store/federation/fetch.h"
#include "debuginfo-store/stored_tables.h"
#include "server/core/node_roles.h"
#include "server/core/tenants.h"

struct debuginfo_spaces {
        struct debuginfo_spaces_options options;
        struct debuginfo_space *items; /* the shared one first; items do not move */
        size_t count;
        size_t of_tenant[1 + LIMIT_TENANTS]; /* index in items of each tenant's space */
        size_t tenant_count;
        bool are_held; /* federation_lock of all items is held, until debuginfo_spaces_start() */
};

/* Whether the node has one of these roles. */
static bool has_space_role(const struct debuginfo_space *s, unsigned roles)
{
        return s->options->roles & roles;
}

/* ---- callbacks between the parts ---- */

/* Once per start. Caller holds federation_lock. */
static void advise_upstream(struct debuginfo_space *s)
{
        if (s->is_upstream_advised || atomic_load(s->stopping))
                return;
        s->is_upstream_advised = true;
        log_info("federation",
                 "samples have frames without names or lines: --upstream %s fetches what the distribution's packages "
                 "have; 'cairn debuginfo missing' lists all objects",
                 get_distribution_debuginfod());
}

static struct metric left_fetches = METRIC_COUNTER(
        "cairn_federation_left_total",
        "Build-ids whose background fetch was left to the node that fetches for all on the same object store.", "");

/* Whether this node requests objects of the tables, which all nodes find in them. Caller holds federation_lock. */
static bool leads_fetches(struct debuginfo_space *s, size_t count)
{
        if (!s->store_count || profile_store_leads_fetches(s->stores[0]))
                return true;
        metric_add(&left_fetches, (int64_t)count);
        return false;
}

/* @param is_known_to_all  other nodes request them, too. */
static void request_missing_objects(struct debuginfo_space *s, const struct wanted_object *objects, size_t count,
                                    bool is_known_to_all)
{
        _cleanup_free_ struct wanted_object *rest = NULL;

        pthread_mutex_lock(&s->federation_lock);
        if (s->scan_demand.scan && s->indexer && !atomic_load(s->stopping))
                rest = calloc(count + 1, sizeof *rest);
        if (rest) {
                scan_demand_index_objects(&s->scan_demand, objects, count, rest, &count);
                objects = rest;
        }
        if (s->federation && count && (!is_known_to_all || leads_fetches(s, count)))
                federation_request(s->federation, objects, count, OBJECT_DEBUGINFO);
        else if (!s->federation && count && has_space_role(s, ROLE_DEBUGINFOD))
                advise_upstream(s);
        pthread_mutex_unlock(&s->federation_lock);
}

void debuginfo_space_request_missing(void *space, const struct wanted_object *objects, size_t count)
{
        request_missing_objects(space, objects, count, true);
}

/* Only the node that indexes an object learns of its companions. */
static void request_missing_companion(void *context, const struct build_id *id)
{
        const struct wanted_object object = { .id = *id };

        request_missing_objects(context, &object, 1, false);
}

static enum status open_scanned_object(void *context, const struct build_id *id, enum object_kind kind, int *fd_ret,
                                       struct error *err)
{
        struct debuginfo_space *s = context;

        return scan_demand_open_object(&s->scan_demand, id, kind, fd_ret, err);
}

static bool has_scanned_debuginfo(void *context, const struct build_id *id)
{
        struct debuginfo_space *s = context;

        return scan_demand_has_debuginfo(&s->scan_demand, id);
}

static void on_object_fetched(void *context, const struct stored_object *object)
{
        struct debuginfo_space *s = context;
        struct gc_thread *gc = atomic_load(&s->gc_thread);
        char hex[BUILD_ID_HEX_MAX];

        log_info("federation", "%s: %s of %llu bytes fetched from an upstream%s%s",
                 build_id_hex(&object->build_id, hex), object_kind_name(object->kind),
                 (unsigned long long)object->size_bytes, s->tenant ? " for tenant " : "", s->tenant ? s->tenant : "");
        if (s->indexer)
                indexer_enqueue(s->indexer, &object->build_id, object->kind);
        if (gc)
                gc_thread_count_arrival(gc, object->stored_bytes);
}

static void on_fetch_failed(void *context, const struct build_id *id, const struct error *why)
{
        char hex[BUILD_ID_HEX_MAX];

        (void)context;
        log_warn("federation", "%s: %s, retrying later", build_id_hex(id, hex), why->text);
}

static void on_upstream_changed(void *context, const struct upstream_status *u)
{
        struct debuginfo_space *s = context;

        if (u->state == UPSTREAM_OPEN && s->store_count)
                profile_store_leave_fetches(s->stores[0]);
        if (u->state == UPSTREAM_CLOSED)
                log_info("federation", "upstream %s responds again", u->url);
        else
                log_warn("federation",
                         "upstream %s failed %s and is skipped for %llu s; last error: %s. If 'curl -I %s/metrics' "
                         "fails on this machine too, remove it from --upstream or fix the network",
                         u->url, COUNTED(u->failures, "time", "times in a row"), (unsigned long long)u->retry_in_s,
                         u->last_error, u->url);
}

static void on_object_indexed(void *context)
{
        struct debuginfo_space *s = context;
        struct gc_thread *gc = atomic_load(&s->gc_thread);

        if (gc)
                gc_thread_notify_indexed(gc);
}

static void on_symbols_superseded(void *context, const struct stored_object *symbols)
{
        struct debuginfo_space *s = context;
        struct gc_thread *gc = atomic_load(&s->gc_thread);

        if (gc)
                gc_thread_remove_superseded(gc, symbols);
}

/* ---- opening ---- */

/* A read-only service may serve tables without debuginfo, for example from a copy. */
static enum status ignore_missing_store(const struct debuginfo_space *s, enum status st, const struct error *err)
{
        if (st != ST_NOT_FOUND || !s->options->read_only)
                return st;
        log_warn("serve", "%s; answering without it", err->text);
        return ST_OK;
}

/* Keep a damaged index under another name, and start over: it is rebuilt from the stored objects. */
static enum status put_index_aside(const char *index, const struct error *why, struct error *err)
{
        _cleanup_free_ char *path = path_join(index, "data.mdb"), *aside = path_join(index, "data.mdb.damaged"),
                            *lock = path_join(index, "lock.mdb");

        if (!path || !aside || !lock)
                return error_no_memory(err);
        log_error("index", "%s. It is kept as '%s', and the index is rebuilt from the stored objects; check the disk",
                  why->text, aside);
        if (rename(path, aside) < 0)
                return error_os(err, errno, "cannot rename '%s' to '%s'", path, aside);
        if (unlink(lock) < 0 && errno != ENOENT)
                return error_os(err, errno, "cannot remove '%s'", lock);
        return file_sync_parent(path, err);
}

static enum status open_space_index(struct debuginfo_space *s, struct error *err)
{
        _cleanup_free_ char *index = path_join(s->base, "index");
        bool read_only = s->options->read_only;
        enum status st;

        if (!index)
                return error_no_memory(err);
        st = read_only ? lmdb_check_snapshot(index, err) : lmdb_check_env(index, err);
        if (st == ST_BAD_DATA && read_only) {
                log_error("index", "%s; answering without it", err->text);
                return ST_OK;
        }
        if (st == ST_BAD_DATA)
                st = put_index_aside(index, err, err);
        if (st)
                return st;
        st = ignore_missing_store(s, symbol_index_open(index, read_only, &s->symbols, err), err);
        if (st != ST_UNSUPPORTED)
                return st;
        if (read_only) {
                log_warn("index", "%s; answering without it", err->text);
                return ST_OK;
        }
        st = symbol_index_open_or_reset(index, &s->symbols, err);
        if (!st)
                log_info("index", "older format; rebuilding it from the stored objects");
        return st;
}

/* The records of the objects cannot be rebuilt: names, labels and links came with the uploads. */
static enum status check_object_records(const struct debuginfo_space *s, const char *objects, struct error *err)
{
        _cleanup_free_ char *meta = path_join(objects, "meta");
        struct error why;
        enum status st;

        if (!meta)
                return error_no_memory(err);
        st = s->options->read_only ? lmdb_check_snapshot(meta, err) : lmdb_check_env(meta, err);
        if (st != ST_BAD_DATA)
                return st;
        why = *err;
        log_error("debuginfo",
                  "to start without the stored objects: mv '%s' '%s.damaged'. Then they can be uploaded again, see "
                  "\"Damaged databases\" in docs/operations.md",
                  objects, objects);
        return error_set(err, ST_BAD_DATA,
                         "%.130s. Restore '%.50s' from a backup, or move it away and upload the objects again",
                         why.text, objects);
}

static enum status choose_object_address(const struct debuginfo_space *s, const char *objects, struct error *err)
{
        const char *store = s->options->store;
        _cleanup_free_ char *url = store ? tenant_store_url(store, s->tenant) : NULL;

        if (!store)
                return ST_OK;
        return url ? debuginfo_store_set_address(objects, url, err) : error_no_memory(err);
}

static enum status open_space(struct debuginfo_space *s, struct error *err)
{
        _cleanup_free_ char *objects = NULL;
        enum status st;

        s->base = tenant_data_path(s->options->dir, s->tenant);
        objects = s->base ? path_join(s->base, "debuginfo") : NULL;
        s->symbol_texts = text_cache_create();
        if (!objects || !s->symbol_texts)
                return error_no_memory(err);
        if (!has_space_role(s, ROLE_SYMBOLIZE | ROLE_DEBUGINFOD))
                return ST_OK;
        st = s->tenant && (!s->options->read_only || s->options->store) ? file_make_dirs(s->base, err) : ST_OK;
        if (!st)
                st = choose_object_address(s, objects, err);
        if (!st)
                st = check_object_records(s, objects, err);
        if (!st && has_space_role(s, ROLE_SYMBOLIZE))
                st = open_space_index(s, err);
        if (!st && s->options->read_only && s->options->store)
                return debuginfo_store_open_replica(objects, &s->objects, err);
        return st ? st
                  : ignore_missing_store(s, debuginfo_store_open(objects, s->options->read_only, &s->objects, err),
                                         err);
}

static void init_space(struct debuginfo_space *s, const struct debuginfo_spaces_options *o, const char *tenant)
{
        s->tenant = tenant;
        s->options = o->server;
        s->scratch_dir = o->scratch_dir;
        s->stopping = o->stopping;
        pthread_mutex_init(&s->federation_lock, NULL);
        pthread_mutex_init(&s->upload_hints.lock, NULL);
        published_filter_init(&s->published_filter);
        pthread_mutex_lock(&s->federation_lock); /* a flush that requests objects waits until federation is set */
}

/* A tenant that no longer has its own debuginfo uses the shared space; its old data is kept. */
static void warn_of_unused_space(const struct server_options *o, const char *tenant)
{
        _cleanup_free_ char *base = tenant_data_path(o->dir, tenant);
        _cleanup_free_ char *index = base ? path_join(base, "index") : NULL;

        if (index && access(index, F_OK) == 0)
                log_warn("serve",
                         "'%s' has debuginfo of tenant %s, whose setting is not 'debuginfo own': it is kept, not used",
                         base, tenant);
}

static void assign_spaces(struct debuginfo_spaces *all, const struct debuginfo_spaces_options *o)
{
        size_t tenants = o->configs ? o->configs->count : 0;

        init_space(&all->items[all->count++], o, NULL);
        all->tenant_count = 1 + tenants;
        for (size_t i = 0; i < tenants; i++) {
                const struct tenant_config *c = &o->configs->items[i];

                if (!c->has_own_debuginfo) {
                        warn_of_unused_space(o->server, c->name);
                        continue;
                }
                all->of_tenant[1 + i] = all->count;
                init_space(&all->items[all->count++], o, c->name);
        }
        all->are_held = true;
}

enum status debuginfo_spaces_open(const struct debuginfo_spaces_options *o, struct debuginfo_spaces **ret,
                                  struct error *err)
{
        struct debuginfo_spaces *all = calloc(1, sizeof *all);
        enum status st = ST_OK;

        if (all)
                all->items = calloc(1 + (o->configs ? o->configs->count : 0), sizeof *all->items);
        if (!all || !all->items) {
                free(all);
                return error_no_memory(err);
        }
        all->options = *o;
        assign_spaces(all, o);
        *ret = all;
        for (size_t i = 0; !st && i < all->count; i++) {
                st = open_space(&all->items[i], err);
                if (st && all->items[i].tenant)
                        st = error_prefix(err, st, "tenant %s", all->items[i].tenant);
        }
        return st;
}

/* ---- starting ---- */

static enum status open_scanned_trees(struct debuginfo_space *s, struct error *err)
{
        _cleanup_free_ char *dir = path_join(s->options->dir, "scan");
        struct package_scan_options o = { .dirs = s->options->scan_dirs,
                                          .dir_count = s->options->scan_dir_count,
                                          .dir = dir,
                                          .scratch_dir = s->scratch_dir,
                                          .interval_s = s->options->scan_interval_s,
                                          .cache_bytes = s->options->scan_cache_bytes,
                                          .fork_server = s->options->fork_server };

        s->scan_demand.symbols = s->symbols;
        s->scan_demand.stopping = s->stopping;
        if (!o.dir_count || s->tenant)
                return ST_OK;
        return dir ? scan_demand_open_trees(&s->scan_demand, &o, err) : error_no_memory(err);
}

static enum status start_pipeline(struct debuginfo_space *s, const struct debuginfo_spaces_options *all,
                                  struct error *err)
{
        _cleanup_free_ char *queue = path_join(s->base, "resymbolize-queue");
        _cleanup_free_ char *companions = path_join(s->base, "missing-companions");
        struct indexer_options o = { .objects = s->objects,
                                     .symbols = s->symbols,
                                     .scratch_dir = s->scratch_dir,
                                     .companions_path = companions,
                                     .wanted = request_missing_companion,
                                     .done = on_object_indexed,
                                     .superseded = on_symbols_superseded,
                                     .open_other = open_scanned_object,
                                     .has_other = has_scanned_debuginfo,
                                     .context = s };
        struct gc_thread *gc;
        struct gc_thread_options c = { .tenant = s->tenant,
                                       .objects = s->objects,
                                       .symbols = s->symbols,
                                       .rules = s->options->retention,
                                       .rule_count = s->options->retention_count,
                                       .stores = s->stores,
                                       .store_count = s->store_count,
                                       .keep_symbols_s = s->options->keep_symbols_s,
                                       .hourly = s->tenant ? NULL : all->hourly,
                                       .context = all->context };
        enum status st = queue && companions ? unresolved_counts_start(s->stores, s->store_count, &s->counts, err)
                                             : error_no_memory(err);

        if (!st)
                st = resymbolizer_start(s->stores, s->store_count, s->counts, queue, &s->resymbolizer, err);
        o.resymbolizer = s->resymbolizer;
        if (!st)
                st = indexer_start(&o, &s->indexer, err);
        s->scan_demand.indexer = s->indexer;
        c.indexer = s->indexer;
        if (!st)
                st = gc_thread_start(&c, &gc, err);
        if (!st)
                atomic_store(&s->gc_thread, gc);
        return st;
}

static void log_upstreams(const struct federation_options *o)
{
        for (size_t i = 0; i < o->url_count; i++) {
                char url[FETCH_URL_TEXT];

                log_info("federation", "upstream %s", fetch_url_redact(o->urls[i], url));
                if (o->headers && o->headers[i] && strncmp(o->urls[i], "http://", 7) == 0)
                        log_warn("federation", "the secret header for upstream %s is sent unencrypted", url);
        }
}

static enum status start_federation(struct debuginfo_space *s, struct error *err)
{
        const struct federation_options o = { .size = sizeof o,
                                              .urls = s->options->upstreams,
                                              .headers = s->options->upstream_headers,
                                              .url_count = s->options->upstream_count,
                                              .tenant = s->tenant,
                                              .rate = (unsigned)s->options->upstream_rate,
                                              .arrived = on_object_fetched,
                                              .failed = on_fetch_failed,
                                              .upstream_changed = on_upstream_changed,
                                              .context = s };

        if (!o.url_count || s->options->read_only || !has_space_role(s, ROLE_DEBUGINFOD))
                return ST_OK;
        if (s->options->upstream_ca && access(s->options->upstream_ca, R_OK))
                return error_os(err, errno, "cannot read the certificates in '%s'", s->options->upstream_ca);
        fetch_set_authorities(s->options->upstream_ca);
        if (!s->tenant)
                log_upstreams(&o);
        metric_register(&left_fetches);
        return federation_start(s->objects, &o, &s->federation, err);
}

static enum status start_missing_retry(struct debuginfo_space *s, struct error *err)
{
        struct package_scan *scan = s->scan_demand.scan;
        enum status st = s->federation || scan
                                 ? missing_retry_start(s->stores, s->store_count, debuginfo_space_request_missing, s,
                                                       &s->missing_retry, err)
                                 : ST_OK;

        s->scan_demand.missing_retry = s->missing_retry;
        return st || !scan ? st : package_scan_start(scan, err);
}

/* Other nodes commit locations of which this node has the symbols, or can get the debuginfo. */
static enum status start_unnamed_follow(struct debuginfo_space *s, struct error *err)
{
        const struct unnamed_follow_options o = { .stores = s->stores,
                                                  .store_count = s->store_count,
                                                  .symbols = s->resymbolizer ? s->symbols : NULL,
                                                  .resymbolizer = s->resymbolizer,
                                                  .request = debuginfo_space_request_missing,
                                                  .context = s };

        if (s->options->read_only || !s->follow || (!s->resymbolizer && !s->federation))
                return ST_OK;
        return unnamed_follow_start(&o, &s->unnamed, err);
}

/* Symbol tables that other nodes stored are loaded; other objects are read. */
static void index_objects_of_others(void *context)
{
        struct debuginfo_space *s = context;
        struct error err;

        if (indexer_enqueue_unindexed(s->indexer, &err))
                log_warn("index", "cannot find which objects other nodes stored: %s", err.text);
}

static enum status start_space(struct debuginfo_space *s, const struct debuginfo_spaces_options *o, struct error *err)
{
        enum status st = open_scanned_trees(s, err);

        if (!st && !s->options->read_only && has_space_role(s, ROLE_SYMBOLIZE))
                st = start_pipeline(s, o, err);
        if (!st && s->objects &&
            (s->options->read_only ? s->options->store != NULL : debuginfo_store_keeps_tables(s->objects)))
                st = object_follow_start(s->objects, s->indexer ? index_objects_of_others : NULL, s, &s->follow, err);
        if (!st)
                st = start_federation(s, err);
        if (!st)
                st = start_missing_retry(s, err);
        return st ? st : start_unnamed_follow(s, err);
}

/* Collect the profile stores of the tenants that use the space. */
static enum status choose_space_stores(const struct debuginfo_spaces *all, size_t number,
                                       struct profile_store *const *stores, struct error *err)
{
        struct debuginfo_space *s = &all->items[number];

        s->stores = calloc(all->tenant_count, sizeof(void *));
        if (!s->stores)
                return error_no_memory(err);
        for (size_t i = 0; i < all->tenant_count; i++)
                if (all->of_tenant[i] == number)
                        s->stores[s->store_count++] = stores[i];
        return ST_OK;
}

static void release_federation_locks(struct debuginfo_spaces *all)
{
        for (size_t i = 0; all->are_held && i < all->count; i++)
                pthread_mutex_unlock(&all->items[i].federation_lock);
        all->are_held = false;
}

enum status debuginfo_spaces_start(struct debuginfo_spaces *all, struct profile_store *const *stores, struct error *err)
{
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < all->count; i++) {
                st = choose_space_stores(all, i, stores, err);
                if (!st)
                        st = start_space(&all->items[i], &all->options, err);
        }
        release_federation_locks(all);
        return st;
}

/* ---- stopping and closing ---- */

static void stop_space(struct debuginfo_space *s)
{
        struct federation *federation;

        package_scan_stop(s->scan_demand.scan);
        unnamed_follow_stop(s->unnamed);
        missing_retry_stop(s->missing_retry);
        object_follow_stop(s->follow);
        pthread_mutex_lock(&s->federation_lock);
        federation = s->federation;
        s->federation = NULL;
        pthread_mutex_unlock(&s->federation_lock);
        if (federation)
                federation_stop(federation);
        gc_thread_stop(s->gc_thread);
        indexer_stop(s->indexer);
        gc_thread_destroy(s->gc_thread);
        package_scan_destroy(s->scan_demand.scan);
        resymbolizer_stop(s->resymbolizer);
        unresolved_counts_stop(s->counts);
}

void debuginfo_spaces_stop(struct debuginfo_spaces *all)
{
        if (!all)
                return;
        release_federation_locks(all);
        for (size_t i = 0; i < all->count; i++)
                stop_space(&all->items[i]);
}

static void close_space(struct debuginfo_space *s)
{
        if (s->objects)
                debuginfo_store_close(s->objects);
        text_cache_destroy(s->symbol_texts);
        if (s->symbols)
                symbol_index_close(s->symbols);
        published_filter_deinit(&s->published_filter);
        pthread_mutex_destroy(&s->federation_lock);
        pthread_mutex_destroy(&s->upload_hints.lock);
        free(s->stores);
        free(s->base);
}

void debuginfo_spaces_close(struct debuginfo_spaces *all)
{
        if (!all)
                return;
        for (size_t i = 0; i < all->count; i++)
                close_space(&all->items[i]);
        free(all->items);
        free(all);
}

/* ---- access while running ---- */

size_t debuginfo_spaces_count(const struct debuginfo_spaces *all)
{
        return all->count;
}

struct debuginfo_space *debuginfo_spaces_find(struct debuginfo_spaces *all, size_t tenant)
{
        assert(tenant < all->tenant_count);
        return &all->items[all->of_tenant[tenant]];
}

struct package_scan *debuginfo_spaces_get_scan(const struct debuginfo_spaces *all)
{
        return all->items[0].scan_demand.scan;
}

void debuginfo_spaces_set_retention(struct debuginfo_spaces *all, const struct server_options *options)
{
        for (size_t i = 0; i < all->count; i++) {
                struct gc_thread *gc = atomic_load(&all->items[i].gc_thread);

                if (gc)
                        gc_thread_set_rules(gc, options->retention, options->retention_count);
        }
}

bool debuginfo_spaces_have_upstreams(const struct debuginfo_spaces *all)
{
        return all->items[0].federation;
}

enum status debuginfo_spaces_set_upstreams(struct debuginfo_spaces *all, const struct server_options *o,
                                           struct error *err)
{
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < all->count; i++)
                st = federation_set_upstreams(all->items[i].federation, o->upstreams, o->upstream_headers,
                                              o->upstream_count, err);
        return st;
}

bool debuginfo_spaces_are_blocked(struct debuginfo_spaces *all, struct error *ret)
{
        for (size_t i = 0; i < all->count; i++) {
                struct debuginfo_space *s = &all->items[i];

                if (!s->indexer || !indexer_is_blocked(s->indexer, ret))
                        continue;
                if (s->tenant)
                        (void)!error_prefix(ret, ret->code, "tenant %s", s->tenant);
                return true;
        }
        return false;
}

const char *get_cache_policy(const struct debuginfo_space *space)
{
        return space->tenant ? "private" : "public";
}

struct debuginfo_space *get_request_space(const struct http_request *req)
{
        return get_request_tenant(req)->space;
}

struct debuginfo_space *get_call_space(const struct grpc_call *call)
{
        const struct tenant *t = grpc_call_tenant(call);

        assert(t);
        return t->space;
}
