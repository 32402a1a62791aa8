/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/gc_thread.h"

#include <assert.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/clock.h"
#include "common/files/tenant_name.h"
#include "common/metrics.h"
#include "common/program/log.h"
#include "common/stable_clock.h"
#include "common/text/number_text.h"
#include "common/threads/condition.h"
#include "debuginfo-store/gc.h"
#include "pipeline/index_state.h"
#include "pipeline/symbol_expiry.h"

#define INTERVAL_S 3600
#define SYMBOL_EXPIRY_INTERVAL_S (24 * 3600)
#define PAUSE_S 1 /* minimum between two collections: each reads every record */

static struct metric objects =
        METRIC_GAUGE("cairn_debuginfo_objects", "Stored objects: the last count plus later additions.", "");
static struct metric bytes = METRIC_GAUGE("cairn_debuginfo_stored_bytes",
                                          "Bytes of stored objects on disk: the last count plus later additions.", "");
#define REMOVED(reason)                                                                                                \
        METRIC_COUNTER("cairn_debuginfo_removed_total", "Objects removed by garbage collection, by reason.",           \
                       "reason=\"" reason "\"")

static struct metric removed[GC_REASON_COUNT] = { REMOVED("age"), REMOVED("unused"), REMOVED("size"),
                                                  REMOVED("superseded") };
static struct metric removed_bytes =
        METRIC_COUNTER("cairn_debuginfo_removed_bytes_total", "Bytes freed on disk by garbage collection.", "");
static struct metric failures =
        METRIC_COUNTER("cairn_debuginfo_collections_failed_total", "Collections that failed.", "");

static struct metric expired_symbols = METRIC_COUNTER(
        "cairn_index_expired_objects_total",
        "Objects whose symbols were removed from the index: without a stored file and without samples.", "");

struct gc_thread {
        struct gc_thread_options options; /* options.rules is read only at start */
        pthread_mutex_t lock;
        pthread_cond_t wake;
        struct gc_rules rules; /* protected by lock, like the members below */
        bool has_new_rules;
        uint64_t enough_bytes; /* uploaded bytes that trigger the next check */
        uint64_t arrived_bytes;
        bool waits_for_index; /* the last collection kept objects that were not indexed yet */
        bool was_indexed;     /* an object was indexed since the last collection */
        bool stop;
        pthread_t thread;
        char whose[TENANT_NAME_SIZE + 16];          /* log prefix: "tenant NAME: " or empty */
        _Atomic int64_t object_count, object_bytes; /* this store's share of the metrics, which count all stores */
};

/* An object can be queued although the index already has better symbols. */
static bool is_object_needed(void *context, const struct stored_object *object)
{
        struct gc_thread *g = context;

        return index_state_is_pending(g->options.symbols, object) ||
               indexer_is_busy_with(g->options.indexer, &object->build_id);
}

struct gc_options gc_thread_collection_options(struct gc_thread *g, const struct retention_rule *rules,
                                               size_t rule_count)
{
        return (struct gc_options){ .rules = rules,
                                    .rule_count = rule_count,
                                    .sweep = true,
                                    .now_unix_s = stable_unix_s(),
                                    .needed = is_object_needed,
                                    .context = g };
}

void gc_thread_publish_metrics(struct gc_thread *g, const struct gc_result *r)
{
        metric_set_share(&objects, &g->object_count, (int64_t)r->objects);
        metric_set_share(&bytes, &g->object_bytes, (int64_t)r->bytes);
        for (unsigned i = 0; i < GC_REASON_COUNT; i++)
                metric_add(&removed[i], (int64_t)r->removed[i]);
        metric_add(&removed_bytes, (int64_t)r->removed_bytes);
}

/* Returns whether objects were kept because they are not indexed yet. */
static bool run_collection(struct gc_thread *g, bool sweep)
{
        struct gc_rules rules;
        struct gc_options o;
        struct gc_result r;
        struct error err;
        uint64_t count = 0;

        gc_thread_get_rules(g, &rules);
        o = gc_thread_collection_options(g, rules.items, rules.count);
        o.sweep = sweep;
        if (debuginfo_store_collect_garbage(g->options.objects, &o, &r, &err)) {
                metric_add(&failures, 1);
                log_error("debuginfo", "%scannot apply the retention rules: %s; retrying within the hour", g->whose,
                          err.text);
                return false;
        }
        gc_thread_publish_metrics(g, &r);
        for (unsigned i = 0; i < GC_REASON_COUNT; i++)
                count += r.removed[i];
        if (count || r.orphans)
                log_info("debuginfo",
                         "%sremoved %s of %" PRIu64 " bytes by the retention rules and %" PRIu64
                         " files without a record; %" PRIu64 " objects of %" PRIu64 " bytes stay",
                         g->whose, COUNTED(count, "object", "objects"), r.removed_bytes, r.orphans, r.objects, r.bytes);
        return r.needed;
}

static bool is_gc_running(void *context)
{
        struct gc_thread *g = context;
        bool ret;

        pthread_mutex_lock(&g->lock);
        ret = !g->stop;
        pthread_mutex_unlock(&g->lock);
        return ret;
}

static void expire_symbols(struct gc_thread *g)
{
        const struct symbol_expiry e = { .symbols = g->options.symbols,
                                         .objects = g->options.objects,
                                         .stores = g->options.stores,
                                         .store_count = g->options.store_count,
                                         .keep_s = g->options.keep_symbols_s,
                                         .proceed = is_gc_running,
                                         .context = g };
        uint64_t count;
        struct error err;
        enum status st = symbol_expiry_run(&e, stable_unix_s(), &count, &err);

        metric_add(&expired_symbols, (int64_t)count);
        if (count)
                log_info("index", "%sremoved the symbols of %s without a stored file and without samples", g->whose,
                         COUNTED(count, "object", "objects"));
        if (st)
                log_error("index", "%scannot look for symbols of unused objects: %s; retrying in a day", g->whose,
                          err.text);
}

/* Caller holds g->lock. False when the service stops. @param idle_ret whether the time ran out. */
static bool wait_for_gc_work(struct gc_thread *g, unsigned seconds, bool for_work, bool *idle_ret)
{
        int64_t until = monotonic_ns() + seconds * INT64_C(1000000000);
        bool in_time = true;

        while (!g->stop &&
               !(for_work &&
                 (g->arrived_bytes >= g->enough_bytes || (g->waits_for_index && g->was_indexed) || g->has_new_rules)) &&
               (in_time = condition_wait_until(&g->wake, &g->lock, until)))
                ;
        *idle_ret = !in_time;
        return !g->stop;
}

static void *run_gc_thread(void *arg)
{
        struct gc_thread *g = arg;
        bool waits, sweep = true;
        int64_t next_expiry_ns = 0;

        pthread_mutex_lock(&g->lock);
        do {
                g->arrived_bytes = 0;
                g->was_indexed = false;
                g->has_new_rules = false;
                pthread_mutex_unlock(&g->lock);
                if (sweep && g->options.hourly)
                        g->options.hourly(g->options.context);
                waits = run_collection(g, sweep);
                if (g->options.keep_symbols_s && monotonic_ns() >= next_expiry_ns) {
                        expire_symbols(g);
                        next_expiry_ns = monotonic_ns() + SYMBOL_EXPIRY_INTERVAL_S * INT64_C(1000000000);
                }
                pthread_mutex_lock(&g->lock);
                g->waits_for_index = waits;
        } while (wait_for_gc_work(g, PAUSE_S, false, &sweep) &&
                 wait_for_gc_work(g, INTERVAL_S, true, &sweep)); /* orphaned files are swept hourly */
        pthread_mutex_unlock(&g->lock);
        return NULL;
}

static void copy_gc_rules(struct gc_thread *g, const struct retention_rule *rules, size_t count)
{
        assert(count <= RETENTION_RULES_MAX);
        g->enough_bytes = UINT64_MAX;
        g->rules.count = count;
        for (size_t i = 0; i < count; i++) {
                g->rules.items[i] = rules[i];
                if (rules[i].size_bytes && rules[i].size_bytes / 100 < g->enough_bytes)
                        g->enough_bytes = rules[i].size_bytes / 100;
        }
}

static bool are_gc_rules_equal(const struct gc_rules *a, const struct retention_rule *rules, size_t count)
{
        bool are_equal = a->count == count;

        for (size_t i = 0; are_equal && i < count; i++)
                are_equal = retention_rules_are_equal(&a->items[i], &rules[i]);
        return are_equal;
}

void gc_thread_set_rules(struct gc_thread *g, const struct retention_rule *rules, size_t count)
{
        pthread_mutex_lock(&g->lock);
        if (!are_gc_rules_equal(&g->rules, rules, count)) {
                copy_gc_rules(g, rules, count);
                g->has_new_rules = true;
                pthread_cond_signal(&g->wake);
        }
        pthread_mutex_unlock(&g->lock);
}

void gc_thread_get_rules(struct gc_thread *g, struct gc_rules *ret)
{
        pthread_mutex_lock(&g->lock);
        *ret = g->rules;
        pthread_mutex_unlock(&g->lock);
}

enum status gc_thread_start(const struct gc_thread_options *options, struct gc_thread **ret, struct error *err)
{
        struct gc_thread *g = calloc(1, sizeof *g);
        int failed;

        if (!g)
                return error_no_memory(err);
        g->options = *options;
        if (options->tenant)
                snprintf(g->whose, sizeof g->whose, "tenant %s: ", options->tenant);
        copy_gc_rules(g, options->rules, options->rule_count);
        pthread_mutex_init(&g->lock, NULL);
        pthread_cond_init(&g->wake, NULL);
        for (unsigned i = 0; i < GC_REASON_COUNT; i++)
                metric_register(&removed[i]);
        metric_register(&expired_symbols);
        failed = pthread_create(&g->thread, NULL, run_gc_thread, g);
        if (failed) {
                pthread_cond_destroy(&g->wake);
                pthread_mutex_destroy(&g->lock);
                free(g);
                return error_os(err, failed, "cannot start a thread");
        }
        pthread_setname_np(g->thread, "gc");
        *ret = g;
        return ST_OK;
}

void gc_thread_stop(struct gc_thread *g)
{
        if (!g)
                return;
        pthread_mutex_lock(&g->lock);
        g->stop = true;
        pthread_cond_broadcast(&g->wake);
        pthread_mutex_unlock(&g->lock);
        pthread_join(g->thread, NULL);
}

void gc_thread_destroy(struct gc_thread *g)
{
        if (!g)
                return;
        metric_set_share(&objects, &g->object_count, 0);
        metric_set_share(&bytes, &g->object_bytes, 0);
        pthread_cond_destroy(&g->wake);
        pthread_mutex_destroy(&g->lock);
        free(g);
}

void gc_thread_count_arrival(struct gc_thread *g, uint64_t stored_bytes)
{
        atomic_fetch_add(&g->object_count, 1);
        atomic_fetch_add(&g->object_bytes, (int64_t)stored_bytes);
        metric_add(&objects, 1);
        metric_add(&bytes, (int64_t)stored_bytes);
        pthread_mutex_lock(&g->lock);
        g->arrived_bytes += stored_bytes;
        if (g->arrived_bytes >= g->enough_bytes)
                pthread_cond_signal(&g->wake);
        pthread_mutex_unlock(&g->lock);
}

void gc_thread_remove_superseded(struct gc_thread *g, const struct stored_object *symbols)
{
        char hex[BUILD_ID_HEX_MAX];
        struct gc_rules rules;
        struct error err;
        enum status st;

        gc_thread_get_rules(g, &rules);
        st = debuginfo_store_remove_superseded(g->options.objects, symbols, rules.items, rules.count, &err);
        if (st == ST_NOT_FOUND)
                return;
        if (st) {
                log_warn("debuginfo", "%s: cannot remove its superseded symbol file: %s, ignoring",
                         build_id_hex(&symbols->build_id, hex), err.text);
                return;
        }
        metric_add(&removed[GC_SUPERSEDED], 1);
        metric_add(&removed_bytes, (int64_t)symbols->stored_bytes);
        log_info("debuginfo", "%s: removed its symbol file: its debuginfo is indexed",
                 build_id_hex(&symbols->build_id, hex));
}

void gc_thread_notify_indexed(struct gc_thread *g)
{
        pthread_mutex_lock(&g->lock);
        g->was_indexed = true;
        if (g->waits_for_index)
                pthread_cond_signal(&g->wake);
        pthread_mutex_unlock(&g->lock);
}
