/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-store/core/table_follow.h"
#include "profile-store/core/table_absence.h"

#include <assert.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#include "common/clock.h"
#include "common/files/file.h"
#include "common/metrics.h"
#include "common/program/log.h"
#include "common/stable_clock.h"
#include "common/threads/condition.h"
#include "profile-store/core/kept_heads.h"

static struct metric elsewhere =
        METRIC_COUNTER("cairn_batches_elsewhere_total",
                       "Batches dropped from the queue because another node had committed the same batch.", "");
static struct metric followed = METRIC_GAUGE(
        "cairn_store_followed_timestamp_seconds",
        "Unix time when the commits of other nodes were last read; each scan does so, and each flush.", "");
static struct metric follow_failures =
        METRIC_COUNTER("cairn_store_follow_failures_total",
                       "Scans that could not read the commits of other nodes, and used what was read before.", "");

void table_follow_register_metrics(void)
{
        metric_register(&elsewhere);
        metric_register(&followed);
        metric_register(&follow_failures);
}

bool is_batch_committed(struct profile_store *s, const struct batch *b)
{
        return batch_ids_contain(s->ids, &b->batch_id);
}

/* Publish a state of the tables to scans, and drop from the head what it has. Takes now. */
static void replace_tables(struct profile_store *s, struct tables *now, const struct hash128 *ids, size_t id_count)
{
        struct tables *before = s->tables;

        pthread_mutex_lock(&s->lock);
        s->tables = now;
        s->flushed = now->flushed;
        head_drop_until(s, now->flushed);
        kept_heads_drop_committed(s);
        metric_add(&elsewhere, (int64_t)head_drop_batches(s, ids, id_count));
        pthread_mutex_unlock(&s->lock);
        tables_unref(before);
}

/*
 * Ids are remembered before the lock is taken: a batch that is appended meanwhile is recognized, or is in the head and
 * dropped from it. Takes now, also on failure.
 */
static enum status publish_loaded_tables(struct profile_store *s, struct tables *now, struct error *err)
{
        _cleanup_free_ struct hash128 *ids = NULL;
        size_t id_count = 0;
        enum status st = has_shared_tables(s) ? tables_take_batch_ids(&s->logs, &ids, &id_count, err) : ST_OK;

        pthread_mutex_lock(&s->peer_lock);
        if (!st && id_count) /* the tables have them, too, so memory is enough */
                st = batch_ids_add_or_keep(s->ids, ids, id_count, stable_unix_s(), err);
        if (!st)
                replace_tables(s, now, ids, id_count);
        pthread_mutex_unlock(&s->peer_lock);
        if (!st)
                return ST_OK;
        if (has_shared_tables(s))
                tables_return_batch_ids(&s->logs);
        s->behind = true;
        tables_unref(now);
        return st;
}

enum status store_publish_tables(struct profile_store *s, struct error *err)
{
        struct tables *now;
        enum status st = tables_load(&s->logs, false, s->tables, &now, err);

        return st ? st : publish_loaded_tables(s, now, err);
}

/*
 * Only this process moves the position of its queue; after a failure of its own it does not know to where. Another node
 * may move it up to a position that was handed to it (core/commit_group.h).
 */
static enum status check_node_alone(struct profile_store *s, const struct tables *now, struct error *err)
{
        if (s->behind || now->flushed == s->flushed || (now->flushed > s->flushed && now->flushed <= s->handed))
                return ST_OK;
        return error_set(
                err, ST_USAGE,
                "the tables have batches of node %s up to %" PRIu64 ", but this process flushed up to %" PRIu64
                ": another process runs with a copy of '%s'; stop one of them and remove its queue and '%s/node'",
                s->logs.node, now->flushed, s->flushed, s->dir, s->dir);
}

void store_note_followed(struct profile_store *s)
{
        s->followed_ns = monotonic_ns();
        s->followed_unix_s = wall_clock_ns() / 1000000000;
        metric_set(&followed, s->followed_unix_s);
        health_set_follow(s, ST_OK, NULL);
}

enum status store_follow_tables(struct profile_store *s, struct error *err)
{
        struct tables *now;
        enum status st = tables_load(&s->logs, true, s->tables, &now, err);

        if (st)
                return st;
        st = check_node_alone(s, now, err);
        if (st) {
                tables_unref(now);
                return st;
        }
        st = publish_loaded_tables(s, now, err);
        if (!st)
                store_note_followed(s);
        return st;
}

/* A replica has no queue, and changes nothing. */
static enum status follow_as_replica(struct profile_store *s, struct error *err)
{
        struct tables *now;
        enum status st = tables_load(&s->logs, true, s->tables, &now, err);

        if (st)
                return st;
        replace_tables(s, now, NULL, 0);
        store_note_followed(s);
        return ST_OK;
}

static bool is_followed_for_scan(struct profile_store *s)
{
        return monotonic_ns() - s->followed_ns < FOLLOW_INTERVAL_MS * INT64_C(1000000) && kept_heads_are_followed(s);
}

/* Caller holds writer_lock. */
static bool try_to_follow(struct profile_store *s)
{
        const int64_t began_ns = monotonic_ns();
        struct error err = { 0 };
        enum status st = store_reconcile(s, &err);

        if (st && health_set_follow(s, st, &err))
                log_warn("store", "cannot read what other nodes commit, so queries have what was read before: %s",
                         err.text);
        if (!st && kept_heads_are_followed(s)) {
                s->next_follow_ns = 0;
                return true;
        }
        /* queries do not wait for a store that is away more than half of the time */
        s->next_follow_ns = st && s->has_follower ? INT64_MAX : 2 * monotonic_ns() - began_ns;
        return false;
}

bool store_follow_for_scan(struct profile_store *s)
{
        struct timespec until;
        bool is_current;

        if (!has_followed_tables(s) || is_followed_for_scan(s))
                return true;
        if (has_absent_tables(s) || monotonic_ns() < s->next_follow_ns) {
                metric_add(&follow_failures, 1);
                return false;
        }
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += FOLLOW_WAIT_MS / 1000;
        if (pthread_mutex_clocklock(&s->writer_lock, CLOCK_MONOTONIC, &until)) {
                metric_add(&follow_failures, 1);
                return false;
        }
        is_current = is_followed_for_scan(s) || try_to_follow(s);
        pthread_mutex_unlock(&s->writer_lock);
        metric_add(&follow_failures, !is_current);
        return is_current;
}

/* ---- following without scans ---- */

/* False when the store is closed. */
static bool wait_for_retry(struct profile_store *s)
{
        const int64_t until_ns = monotonic_ns() + FOLLOW_RETRY_S * INT64_C(1000000000);
        bool in_time = true, stopping;

        pthread_mutex_lock(&s->lock);
        while (!s->stopping && in_time)
                in_time = condition_wait_until(&s->wake, &s->lock, until_ns);
        stopping = s->stopping;
        pthread_mutex_unlock(&s->lock);
        return !stopping;
}

static bool is_follow_due(const struct profile_store *s)
{
        return s->next_follow_ns == INT64_MAX ||
               (s->is_replica && monotonic_ns() - s->followed_ns >= REPLICA_FOLLOW_S * INT64_C(1000000000));
}

/* No flush attempts it. */
static void find_absent_tables(struct profile_store *s)
{
        struct error err = { 0 };
        enum status st = store_find_tables(s, &err);

        health_set_flush(s, st, &err);
}

static void *run_follow_thread(void *context)
{
        struct profile_store *s = context;

        prctl(PR_SET_NAME, "cairn-follow");
        while (wait_for_retry(s)) {
                pthread_mutex_lock(&s->writer_lock);
                if (has_absent_tables(s))
                        find_absent_tables(s);
                else if (is_follow_due(s))
                        (void)!try_to_follow(s);
                pthread_mutex_unlock(&s->writer_lock);
        }
        return NULL;
}

enum status follower_start(struct profile_store *s, struct error *err)
{
        int failed;

        s->has_follower = true;
        failed = pthread_create(&s->thread, NULL, run_follow_thread, s);
        if (failed)
                return error_os(err, failed, "cannot start the thread that follows the tables");
        s->thread_runs = true;
        return ST_OK;
}

enum status store_hold_lease(struct profile_store *s, struct store_lease *l, struct error *err)
{
        enum status st = store_check_tables(s, err);

        if (st || !has_shared_tables(s))
                return st;
        pthread_mutex_lock(&s->lease_lock);
        st = store_lease_hold(l, s->storage, s->logs.node, (int64_t)s->options.lease_ms, err);
        pthread_mutex_unlock(&s->lease_lock);
        return st;
}

#define UNMAINTAINED_LEASES 5 /* the holder renews its lease several times in one; a rolling upgrade takes some */

void store_check_maintained(struct profile_store *s)
{
        const int64_t most_ms = UNMAINTAINED_LEASES * (int64_t)s->options.lease_ms, now = monotonic_ns();
        int64_t age_ms;
        struct error err;

        if (!s->options.has_no_maintenance || !has_shared_tables(s) || has_absent_tables(s) ||
            now < s->next_maintained_check_ns)
                return;
        s->next_maintained_check_ns = now + most_ms * 1000000;
        if (store_lease_get_age(&s->maintenance_lease, s->storage, &age_ms, &err)) /* as after a failed flush */
                return;
        if (age_ms == INT64_MAX)
                error_set(&err, ST_BUSY, "no node has ever maintained the tables");
        else
                error_set(&err, ST_BUSY, "no node maintains the tables since %" PRId64 " s", age_ms / 1000);
        health_set_maintained(s, age_ms < most_ms ? ST_OK : ST_BUSY, &err);
}

void store_end_lease(struct profile_store *s, struct store_lease *l)
{
        pthread_mutex_lock(&s->lease_lock);
        store_lease_end(l, s->storage);
        pthread_mutex_unlock(&s->lease_lock);
}

/* ---- after a failure ---- */

/* A flush may have failed after the commit of its samples, before their batch ids were remembered. */
static enum status remember_flushed(struct profile_store *s, uint64_t position, struct error *err)
{
        _cleanup_free_ struct hash128 *ids = NULL;
        size_t count = 0;

        pthread_mutex_lock(&s->lock);
        ids = calloc(s->head_count + 1, sizeof *ids);
        while (ids && count < s->head_count && s->head[count]->position <= position) {
                ids[count] = s->head[count]->batch_id;
                count++;
        }
        pthread_mutex_unlock(&s->lock);
        if (!ids)
                return error_no_memory(err);
        return batch_ids_add(s->ids, ids, count, stable_unix_s(), err);
}

/* The failure may have been that of a sync, so sync first: the state that is read may not be durable. */
enum status store_reconcile_after_failure(struct profile_store *s, struct error *err)
{
        struct tables *now;
        enum status st;

        known_rows_deinit(&s->known);
        st = file_sync_filesystem(s->dir, err);
        if (!st)
                st = tables_load(&s->logs, true, s->tables, &now, err);
        if (st)
                return st;
        st = remember_flushed(s, now->flushed, err);
        if (st)
                tables_unref(now);
        else
                st = publish_loaded_tables(s, now, err);
        if (!st) {
                s->behind = false;
                store_note_followed(s);
        }
        return st;
}

enum status store_reconcile(struct profile_store *s, struct error *err)
{
        if (has_absent_tables(s))
                return store_find_tables(s, err);
        if (s->behind)
                return store_reconcile_after_failure(s, err);
        if (s->is_replica)
                return follow_as_replica(s, err);
        return has_shared_tables(s) ? store_follow_tables(s, err) : ST_OK;
}
