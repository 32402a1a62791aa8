/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-store/lifecycle/maintenance.h"

#include <sys/prctl.h>

#include "common/clock.h"
#include "common/files/file.h"
#include "common/metrics.h"
#include "common/program/log.h"
#include "common/threads/condition.h"
#include "profile-store/core/table_absence.h"
#include "profile-store/core/table_follow.h"
#include "profile-store/lifecycle/sample_retention.h"
#include "profile-store/tables/location_cache.h"
#include "profile-store/scan/stack_cache.h"
#include "profile-store/tables/table_vacuum.h"

static struct metric removed_files =
        METRIC_COUNTER("cairn_store_removed_files_total",
                       "Files of the tables that were unlinked after the grace period of their removal.", "");
static struct metric orphans =
        METRIC_COUNTER("cairn_store_orphans_total", "Orphaned files in the table folders that were unlinked.", "");
static struct metric failures =
        METRIC_COUNTER("cairn_store_maintenance_failures_total",
                       "Failed runs of the store's maintenance; each is repeated a minute later.", "");

static struct metric log_files =
        METRIC_COUNTER("cairn_store_log_files_total", "Old commits and checkpoints deleted from the tables' logs.", "");

/* Runs once an hour. Caller holds the writer lock. */
static enum status vacuum_orphans_and_logs(struct profile_store *s, struct table_vacuum_counts *cleaned,
                                           struct error *err)
{
        struct delta_log_cleanup logs = { 0 };
        enum status st = tables_vacuum_orphans(&s->logs, cleaned, err);
        enum status cleaned_logs = tables_clean_up_logs(&s->logs, &logs, st ? NULL : err);

        metric_add(&log_files, (int64_t)logs.files);
        return st ? st : cleaned_logs;
}

/* Caller holds the writer lock. */
static enum status vacuum_tables(struct profile_store *s, struct error *err)
{
        bool lists_folders = monotonic_ns() >= s->next_listing_ns;
        struct table_vacuum_counts cleaned = { 0 };
        enum status st = tables_vacuum_removed(&s->logs, &cleaned, err);

        if (lists_folders) {
                enum status listed = vacuum_orphans_and_logs(s, &cleaned, st ? NULL : err);

                s->next_listing_ns = monotonic_ns() + LISTING_INTERVAL_S * INT64_C(1000000000);
                st = st ? st : listed;
        }
        metric_add(&removed_files, (int64_t)cleaned.removed_files);
        metric_add(&orphans, (int64_t)cleaned.orphans);
        return st;
}

/* A failed commit may nevertheless be in the log. Caller holds the writer lock. */
static enum status set_table_properties(struct profile_store *s, struct error *err)
{
        enum status st = table_logs_set_retention(&s->logs, err);

        s->behind |= st != ST_OK;
        return st;
}

static enum status expire_samples(struct profile_store *s, struct error *err)
{
        /* Label rules are applied by the compaction thread. */
        struct store_limits *all = store_limits_acquire(s);
        const struct sample_limits days = { .age_s = all->limits.age_s,
                                            .size_bytes = all->limits.size_bytes,
                                            .history_age_s = all->limits.history_age_s };
        struct expiry removed = { 0 };
        bool has_rules = all->limits.rule_count;
        enum status st;

        store_limits_release(all);
        if (!days.age_s && !days.size_bytes && !days.history_age_s && !has_rules)
                return ST_OK;
        st = profile_store_expire(s, &(struct expiry_request){ .limits = &days }, &removed, err);
        expiry_deinit(&removed);
        return st;
}

/*
 * On a full disk every commit fails, and cleaning is what frees space: it runs even after failures. A removal must be
 * durable before its file is unlinked: store_reconcile() or else file_sync_filesystem() must have succeeded.
 */
enum status store_maintain(struct profile_store *s, struct error *err)
{
        enum status first, st;
        bool may_clean;

        if (has_absent_tables(s)) /* flushes try to read them, and say so */
                return ST_OK;
        st = store_hold_lease(s, &s->maintenance_lease, err);
        if (st == ST_BUSY) /* another node does it */
                return ST_OK;
        if (st)
                return st;
        first = expire_samples(s, err);
        pthread_mutex_lock(&s->writer_lock);
        st = store_reconcile(s, first ? NULL : err);
        may_clean = !st || !file_sync_filesystem(s->dir, NULL);
        first = first ? first : st;
        if (!st) {
                st = set_table_properties(s, first ? NULL : err);
                first = first ? first : st;
        }
        if (may_clean) {
                st = vacuum_tables(s, first ? NULL : err);
                first = first ? first : st;
        }
        pthread_mutex_unlock(&s->writer_lock);
        return first;
}

/* ---- the thread --------------------------------------------------------------------------- */

/* True while the store is open. */
static bool wait_for_maintenance(struct profile_store *s)
{
        int64_t end = monotonic_ns() + MAINTENANCE_INTERVAL_S * INT64_C(1000000000);
        bool stopping, in_time = true;

        pthread_mutex_lock(&s->lock);
        while (!s->stopping && !s->has_new_limits && in_time)
                in_time = condition_wait_until(&s->maintenance_wake, &s->lock, end);
        s->has_new_limits = false;
        stopping = s->stopping;
        pthread_mutex_unlock(&s->lock);
        return !stopping;
}

static void fill_scan_caches(struct profile_store *s)
{
        struct tables *t;

        store_fill_stack_cache(s);
        pthread_mutex_lock(&s->lock);
        t = tables_ref(s->tables);
        pthread_mutex_unlock(&s->lock);
        location_cache_fill(t, &s->stopping);
        tables_unref(t);
}

static void *run_maintenance_thread(void *context)
{
        struct profile_store *s = context;

        prctl(PR_SET_NAME, s->options.has_no_maintenance ? "cairn-fill" : "cairn-maintain");
        if (!s->options.has_no_scans)
                fill_scan_caches(s);
        while (!s->options.has_no_maintenance && wait_for_maintenance(s)) {
                struct error err = { 0 };

                if (store_maintain(s, &err)) {
                        log_error("store", "maintenance failed, retrying in %d s: %s", MAINTENANCE_INTERVAL_S,
                                  err.text);
                        metric_add(&failures, 1);
                }
        }
        return NULL;
}

enum status maintenance_start(struct profile_store *s, struct error *err)
{
        int failed;

        metric_register(&removed_files);
        metric_register(&orphans);
        metric_register(&log_files);
        metric_register(&failures);
        retention_register_metrics();
        if (s->options.has_no_maintenance && s->options.has_no_scans)
                return ST_OK;
        failed = pthread_create(&s->maintenance_thread, NULL, run_maintenance_thread, s);
        if (failed)
                return error_os(err, failed, "cannot start the maintenance thread");
        s->maintenance_runs = true;
        return ST_OK;
}

void maintenance_stop(struct profile_store *s)
{
        if (!s->maintenance_runs)
                return;
        pthread_mutex_lock(&s->lock);
        pthread_cond_signal(&s->maintenance_wake);
        pthread_mutex_unlock(&s->lock);
        pthread_join(s->maintenance_thread, NULL);
        s->maintenance_runs = false;
}
