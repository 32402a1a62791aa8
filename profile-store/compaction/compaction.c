/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three callers share one mechanism: the thread (run_due_merges()), profile_store_compact() (run_all_merges()), and
 * removals of rows by retention and sweep (row_removal.h), which exclude merges, share their rate limit, and rewrite
 * files by merge_parts().
 *
 * A round, run_next_merge(), takes a snapshot, chooses one job (compaction_jobs.h), merges (merge.h), commits
 * (merge_commit.h), and records the outcome for the next choice: failed partitions wait, unreadable parts are
 * skipped, and refused memory halves the memory of a job (memory_shift). proceed_at_rate(), called by the merge after
 * each step, sleeps for the rate limit and is the only place where a merge gives way to other work.
 *
 * In the file: outcomes of earlier rounds; pace; one merge; removal of rows; rounds; the thread.
 * Locks, outer first: turn_of_stores, taken by the thread only; c->lock, from the choice of a merge to its commit, or
 * from begin to end of a removal; resymbolize_lock for locations, tried only; writer_lock for the commit and to look
 * up whether an input was removed. wake_lock serves the sleep of the thread.
 */
#include "profile-store/compaction/compaction.h"

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "common/clock.h"
#include "common/limits.h"
#include "common/memory/array.h"
#include "common/metrics.h"
#include "common/program/log.h"
#include "common/threads/condition.h"
#include "profile-store/compaction/compaction_jobs.h"
#include "profile-store/compaction/label_expiry.h"
#include "profile-store/compaction/location_sweep.h"
#include "profile-store/compaction/merge_commit.h"
#include "profile-store/compaction/row_removal.h"
#include "profile-store/compaction/work_lock.h"
#include "profile-store/core/table_absence.h"
#include "profile-store/core/table_follow.h"
#include "profile-store/history/function_history.h"
#include "profile-store/tables/part_read.h"

#define DEFAULT_INTERVAL_MS 10000
#define FAILURES_REPORTED 3 /* failures in a row of one partition before /readyz reports them */
#define POSTPONED_S 60
#define POSTPONED_DOUBLINGS 6
#define PAUSE_NS 20000000 /* longest sleep of the rate limit before the stop flag is checked again */
#define NS_PER_S INT64_C(1000000000)

static struct metric merges = METRIC_COUNTER("cairn_compactions_total", "Merges of small files of a table.", "");
static struct metric failures = METRIC_COUNTER("cairn_compaction_failures_total", "Merges that failed.", "");
static struct metric merged_files =
        METRIC_COUNTER("cairn_compaction_merged_files_total", "Files that a merge replaced.", "");
static struct metric skipped_files =
        METRIC_COUNTER("cairn_compaction_skipped_files_total", "Files that merges cannot read; they are kept.", "");
static struct metric read_bytes = METRIC_COUNTER("cairn_compaction_read_bytes_total", "Bytes that merges read.", "");
static struct metric written_bytes =
        METRIC_COUNTER("cairn_compaction_written_bytes_total", "Bytes of the files that merges wrote.", "");
static struct metric backlog_files = METRIC_GAUGE("cairn_compaction_backlog_files", "Files waiting to be merged.", "");
static struct metric backlog_bytes =
        METRIC_GAUGE("cairn_compaction_backlog_bytes", "Bytes of the files waiting to be merged.", "");

/*
 * Held by a store's thread for one merge: the stores of a process take turns, so that together they stay within the
 * limits of I/O and memory of a single store. Lock order: before the lock of a store's compaction.
 */
static struct work_lock turn_of_stores = { .mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

/* A partition whose last merges failed. */
struct failed_partition {
        struct compaction_partition partition;
        unsigned failures;
        int64_t first_ns;   /* wall clock */
        int64_t retry_ns;   /* monotonic */
        uint64_t skip_call; /* the profile_store_compact() call in which it failed */
        struct error err;   /* last failure */
};

/* A part that merges skip until its file changes. */
struct unmergeable_part {
        char *path; /* "TABLE/NAME" */
        struct storage_info seen;
};

struct compaction {
        struct profile_store *s;
        struct work_lock lock; /* protects all members below; held from the choice of a merge to its commit */
        struct failed_partition *failed;
        size_t failed_count, failed_capacity;
        struct unmergeable_part *unmergeable;
        size_t unmergeable_count, unmergeable_capacity;
        unsigned memory_shift; /* memory was refused: merges are planned with the limit divided by 2^memory_shift */
        uint64_t calls;
        int64_t published_backlog_files, published_backlog_bytes; /* this store's share of the metrics */
        int64_t paid_ns; /* rate limit: monotonic time until which past reads and writes are paid for */

        pthread_mutex_t wake_lock;
        pthread_cond_t wake;
        pthread_t thread;
        bool thread_runs;
        uint64_t interval_ms;
        int64_t lease_retry_ns; /* of the thread, after a failure: monotonic time before which it does not ask */
};

/* All merges that are due, one after another, made by the thread or by a call. */
struct compaction_run {
        struct compaction *c;
        bool is_full;
        bool needs_lease;     /* of the thread: other nodes could do the same */
        bool skips_locations; /* the last merge of locations gave way to a re-symbolization: merge other tables first */
        struct compaction_result total;
        uint64_t files_due;
};

/* A merge in progress. */
struct running_merge {
        struct compaction *c;
        const struct compaction_job *job;
        const struct row_removal *removal; /* NULL: a compaction */
        bool needs_lease;
        bool was_ended; /* ended by `proceed`; not a failure */
};

/* ---- earlier failures --------------------------------------------------------------------------- */

static bool is_same_partition(const struct compaction_partition *x, const struct compaction_partition *y)
{
        return x->table == y->table && x->day == y->day;
}

static struct failed_partition *find_failed_partition(const struct compaction *c, const struct compaction_partition *p)
{
        for (size_t i = 0; i < c->failed_count; i++) {
                if (is_same_partition(&c->failed[i].partition, p))
                        return &c->failed[i];
        }
        return NULL;
}

static bool is_postponed_partition(const void *context, const struct compaction_partition *p)
{
        const struct compaction_run *run = context;
        const struct failed_partition *f = find_failed_partition(run->c, p);

        if (run->skips_locations && p->table == TABLE_LOCATIONS)
                return true;
        return f && (run->is_full ? f->skip_call == run->c->calls : monotonic_ns() < f->retry_ns);
}

/* etag is "" when the file does not exist. */
static void stat_part_file(const struct table_part *part, struct storage_info *ret)
{
        if (storage_stat(part->storage, part->key, ret, NULL))
                *ret = (struct storage_info){ 0 };
}

/* A part is tried again when its file has changed, as after a restore from a backup. */
bool compaction_leaves_part(struct compaction *c, const struct table_part *part)
{
        for (size_t i = 0; i < c->unmergeable_count; i++) {
                struct unmergeable_part *u = &c->unmergeable[i];
                struct storage_info now;

                if (strcmp(u->path, part->path) != 0)
                        continue;
                stat_part_file(part, &now);
                if (strcmp(now.etag, u->seen.etag) == 0)
                        return true;
                free(u->path);
                *u = c->unmergeable[--c->unmergeable_count];
                return false;
        }
        return false;
}

static bool is_unmergeable_part(const void *context, const struct table_part *part)
{
        return compaction_leaves_part(((const struct compaction_run *)context)->c, part);
}

static void publish_failures(struct compaction *c)
{
        const struct failed_partition *oldest = NULL;

        for (size_t i = 0; i < c->failed_count; i++) {
                if (c->failed[i].failures >= FAILURES_REPORTED && (!oldest || c->failed[i].first_ns < oldest->first_ns))
                        oldest = &c->failed[i];
        }
        health_set_compaction(c->s, oldest ? oldest->first_ns : 0, oldest ? &oldest->err : NULL);
}

static void note_failure(struct compaction *c, const struct compaction_partition *p, const struct error *err)
{
        struct failed_partition *f = find_failed_partition(c, p);
        unsigned doublings;
        char name[48];

        metric_add(&failures, 1);
        if (!f && array_reserve(&c->failed, &c->failed_capacity, c->failed_count)) {
                f = &c->failed[c->failed_count++];
                *f = (struct failed_partition){ .partition = *p, .first_ns = wall_clock_ns() };
        }
        if (!f)
                return;
        doublings = f->failures < POSTPONED_DOUBLINGS ? f->failures : POSTPONED_DOUBLINGS;
        f->failures++;
        f->retry_ns = monotonic_ns() + (POSTPONED_S * NS_PER_S << doublings);
        f->skip_call = c->calls;
        f->err = *err;
        describe_compaction_partition(p, name);
        log_error("store", "cannot compact the %s, retrying later: %s", name, err->text);
        publish_failures(c);
}

static void note_success(struct compaction *c, const struct compaction_partition *p)
{
        struct failed_partition *f = find_failed_partition(c, p);

        c->memory_shift = 0;
        if (!f)
                return;
        *f = c->failed[--c->failed_count];
        publish_failures(c);
}

/* Failures of partitions without a due merge: retention, another writer or unmergeable files made it unnecessary. */
static void forget_needless_failures(struct compaction *c, const struct tables *t, const struct compaction_view *view)
{
        size_t kept = 0;

        for (size_t i = 0; i < c->failed_count; i++) {
                if (is_compaction_due(t, view, &c->failed[i].partition))
                        c->failed[kept++] = c->failed[i];
        }
        if (kept == c->failed_count)
                return;
        c->failed_count = kept;
        publish_failures(c);
}

static enum status skip_unmergeable_part(struct compaction *c, const struct table_part *part, const struct error *why,
                                         struct error *err)
{
        char *path = strdup(part->path);

        if (!path || !array_reserve(&c->unmergeable, &c->unmergeable_capacity, c->unmergeable_count)) {
                free(path);
                return error_no_memory(err);
        }
        c->unmergeable[c->unmergeable_count].path = path;
        stat_part_file(part, &c->unmergeable[c->unmergeable_count++].seen);
        metric_add(&skipped_files, 1);
        log_error("store", "cannot merge '%s' with other files, skipping it: %s", part->path, why->text);
        return ST_OK;
}

/* ---- pace ------------------------------------------------------------------------------------- */

#define LEASE_RETRIES 4 /* in the time of a lease */

/*
 * Also renews the lease: merges may take longer than it lasts. After another failure, as of the network, it may still
 * be held, and is not asked for in each of many steps.
 */
static bool has_lost_lease(struct compaction *c)
{
        enum status st;

        if (monotonic_ns() < c->lease_retry_ns)
                return false;
        st = store_hold_lease(c->s, &c->s->maintenance_lease, NULL);
        if (st && st != ST_BUSY)
                c->lease_retry_ns = monotonic_ns() + (int64_t)c->s->options.lease_ms * 1000000 / LEASE_RETRIES;
        return st == ST_BUSY;
}

static bool must_end(const struct running_merge *r)
{
        struct profile_store *s = r->c->s;

        return atomic_load(&s->stopping) ||
               (r->removal && r->removal->proceed && !r->removal->proceed(r->removal->context)) ||
               (r->job->partition.table == TABLE_LOCATIONS && atomic_load(&s->resymbolize_waiting)) ||
               (r->needs_lease && has_lost_lease(r->c));
}

/* Called by the merge after each step. */
static enum status proceed_at_rate(void *context, uint64_t bytes, struct error *err)
{
        struct running_merge *r = context;
        struct compaction *c = r->c;
        int64_t now = monotonic_ns();

        if (c->thread_runs) { /* a store without threads has no other work to slow down */
                c->paid_ns = (c->paid_ns > now ? c->paid_ns : now) +
                             (int64_t)(bytes * (uint64_t)NS_PER_S / COMPACTION_BYTES_PER_S);
                while (!must_end(r) && (now = monotonic_ns()) < c->paid_ns) {
                        int64_t left = c->paid_ns - now;
                        const struct timespec pause = { .tv_nsec = left < PAUSE_NS ? left : PAUSE_NS };

                        nanosleep(&pause, NULL);
                }
        }
        if (!must_end(r))
                return ST_OK;
        r->was_ended = true;
        return error_set(err, ST_BUSY, "the merge was interrupted by other work");
}

/* ---- one merge ------------------------------------------------------------------------------------ */

/* Outputs exist beside the inputs until the grace period ends; the reserve is kept for incoming samples. */
static enum status check_free_space(const struct profile_store *s, const struct compaction_job *job, struct error *err)
{
        if (storage_get_free_bytes(s->storage) >= job->bytes + 2 * LIMIT_DISK_LOW_BYTES)
                return ST_OK;
        return error_os(err, ENOSPC, "cannot merge files of %zu MiB in '%s'", (size_t)(job->bytes >> 20), s->dir);
}

static enum status merge_and_commit(struct running_merge *r, const struct tables *tables,
                                    struct compaction_result *total, size_t *failed_part_ret, struct error *err)
{
        struct profile_store *s = r->c->s;
        const struct compaction_job *job = r->job;
        const struct part_merge_request request = {
                .logs = &s->logs,
                .table = job->partition.table,
                .columns = job->partition.table == TABLE_SAMPLES ? &tables->columns : NULL,
                .parts = job->parts,
                .part_count = job->part_count,
                .output_count = compaction_count_outputs(job->bytes, &compaction_default_rules),
                .proceed = proceed_at_rate,
                .context = r,
        };
        const struct replaced_parts replaced = { .table = job->partition.table,
                                                 .parts = job->parts,
                                                 .part_count = job->part_count };
        struct merge_result merged = { 0 };
        enum status st = check_free_space(s, job, err);

        *failed_part_ret = MERGE_NO_PART;
        if (!st)
                st = merge_parts(&request, &merged, failed_part_ret, err);
        if (st)
                return st;
        st = commit_merge(s, &replaced, &merged, err);
        metric_add(&read_bytes, (int64_t)merged.bytes_read);
        metric_add(&written_bytes, (int64_t)merged.bytes_written);
        if (!st) {
                metric_add(&merged_files, (int64_t)job->part_count);
                total->files_before += job->part_count;
                total->files_after += merged.add_count;
                total->bytes_read += merged.bytes_read;
                total->bytes_written += merged.bytes_written;
                total->merges++;
                metric_add(&merges, 1); /* last: tests wait for this counter */
        }
        merge_result_deinit(&merged);
        return st;
}

/* The loaded tables may be stale: another writer may have removed a file without keeping it for its grace period. */
static bool is_removed_part(struct profile_store *s, enum table table, const struct table_part *part)
{
        bool ret;

        pthread_mutex_lock(&s->writer_lock);
        s->behind = true;
        ret = !store_reconcile(s, NULL) && !find_live_part(s->tables, table, part->name);
        pthread_mutex_unlock(&s->writer_lock);
        return ret;
}

/* ST_OK when the next round will plan differently: without the part, or with less memory. */
static enum status handle_failed_merge(struct compaction *c, const struct compaction_job *job, enum status st,
                                       size_t failed_part, struct compaction_result *total, struct error *err)
{
        const struct error why = *err;
        bool is_memory = st == ST_BUSY || st == ST_TOO_BIG || st == ST_NO_MEMORY;

        if (st == ST_NOT_FOUND)
                return ST_OK;
        if (is_memory && job->part_count > 2) {
                c->memory_shift++;
                return ST_OK;
        }
        if (failed_part != MERGE_NO_PART && part_is_unreadable(st, err)) {
                if (st == ST_OS && is_removed_part(c->s, job->partition.table, job->parts[failed_part]))
                        return ST_OK;
                st = skip_unmergeable_part(c, job->parts[failed_part], &why, err);
                total->skipped_files += !st;
                return st;
        }
        return st;
}

static enum status run_job(struct running_merge *r, const struct tables *tables, struct compaction_result *total,
                           struct error *err)
{
        struct profile_store *s = r->c->s;
        const struct compaction_job *job = r->job;
        bool is_locations = job->partition.table == TABLE_LOCATIONS;
        size_t failed_part;
        enum status st;

        if (is_locations && pthread_mutex_trylock(&s->resymbolize_lock)) {
                r->was_ended = true;
                return ST_BUSY;
        }
        st = merge_and_commit(r, tables, total, &failed_part, err);
        if (is_locations)
                pthread_mutex_unlock(&s->resymbolize_lock);
        if (!st)
                note_success(r->c, &job->partition);
        else if (!r->was_ended)
                st = handle_failed_merge(r->c, job, st, failed_part, total, err);
        if (st && !r->was_ended) {
                note_failure(r->c, &job->partition, err);
                total->failed_partitions++;
        }
        return st;
}

/* ---- removal of rows ---- */

/* A removal that waits for a merge to end. */
struct waiting_removal {
        struct compaction *c;
        bool (*proceed)(void *context);
        void *context;
};

static bool may_wait_for_merge(void *context)
{
        const struct waiting_removal *w = context;

        return !atomic_load(&w->c->s->stopping) && (!w->proceed || w->proceed(w->context));
}

enum status compaction_begin_removal(struct compaction *c, bool (*proceed)(void *context), void *context,
                                     struct error *err)
{
        struct waiting_removal w = { c, proceed, context };

        if (work_lock_acquire(&c->lock, may_wait_for_merge, &w))
                return ST_OK;
        return error_set(err, ST_BUSY, "interrupted while waiting for a merge");
}

void compaction_end_removal(struct compaction *c)
{
        work_lock_release(&c->lock);
}

enum status compaction_note_unreadable(struct compaction *c, enum table table, const struct table_part *part,
                                       enum status st, struct error *err)
{
        const struct error why = *err;

        if (!part_is_unreadable(st, err))
                return st;
        if (st == ST_OS && is_removed_part(c->s, table, part))
                return ST_NOT_FOUND;
        return skip_unmergeable_part(c, part, &why, err);
}

enum status compaction_proceed(struct compaction *c, const struct row_removal *removal, uint64_t bytes,
                               struct error *err)
{
        const struct compaction_job job = { .partition = { removal->table, removal->day } };
        struct running_merge r = { .c = c, .job = &job, .removal = removal };

        return proceed_at_rate(&r, bytes, err);
}

enum status compaction_write_kept_rows(struct compaction *c, const struct tables *tables,
                                       const struct row_removal *removal, struct merge_result *ret, struct error *err)
{
        struct compaction_job job = { .partition = { removal->table, removal->day },
                                      .parts = removal->parts,
                                      .part_count = removal->part_count };
        struct running_merge r = { .c = c, .job = &job, .removal = removal };
        const struct part_merge_request request = {
                .logs = &c->s->logs,
                .table = removal->table,
                .columns = removal->table == TABLE_SAMPLES ? &tables->columns : NULL,
                .parts = job.parts,
                .part_count = job.part_count,
                .output_count = 1,
                .proceed = proceed_at_rate,
                .context = &r,
                .select_dropped = removal->select,
                .drop_context = removal->context,
        };
        size_t failed_part;
        enum status st;

        for (size_t i = 0; i < job.part_count; i++)
                job.bytes += job.parts[i]->bytes;
        st = check_free_space(c->s, &job, err);
        if (st)
                return st;
        st = merge_parts(&request, ret, &failed_part, err);
        metric_add(&read_bytes, (int64_t)ret->bytes_read);
        metric_add(&written_bytes, (int64_t)ret->bytes_written);
        return st && failed_part != MERGE_NO_PART
                       ? compaction_note_unreadable(c, removal->table, job.parts[failed_part], st, err)
                       : st;
}

enum status compaction_remove_rows(struct compaction *c, const struct tables *tables, const struct row_removal *removal,
                                   struct merge_result *ret, struct error *err)
{
        const struct replaced_parts replaced = { .table = TABLE_SAMPLES,
                                                 .parts = removal->parts,
                                                 .part_count = removal->part_count,
                                                 .loses_rows = true,
                                                 .done_rules = removal->done_rules };
        struct merge_result merged = { 0 };
        enum status st = ST_OK;

        if (removal->select) {
                st = compaction_write_kept_rows(c, tables, removal, &merged, err);
                if (st || !merged.rows_read) /* an unreadable file, skipped from now on */
                        return st;
        }
        st = commit_merge(c->s, &replaced, &merged, err);
        if (st)
                merge_result_deinit(&merged);
        else
                *ret = merged;
        return st;
}

/* ---- rounds --------------------------------------------------------------------------------------- */

static struct tables *ref_current_tables(struct profile_store *s)
{
        struct tables *t;

        pthread_mutex_lock(&s->lock);
        t = tables_ref(s->tables);
        pthread_mutex_unlock(&s->lock);
        return t;
}

static struct compaction_rules make_rules(const struct compaction *c)
{
        struct compaction_rules rules = compaction_default_rules;
        uint64_t ceiling = memory_use_ceiling(MEMORY_COMPACTION) / 4 * 3;

        rules.job_memory = ceiling < rules.job_memory ? ceiling : rules.job_memory;
        rules.job_memory >>= c->memory_shift < 32 ? c->memory_shift : 32;
        return rules;
}

enum round { ROUND_MERGED, ROUND_NOTHING_DUE, ROUND_GAVE_WAY, ROUND_FAILED, ROUND_WITHOUT_PLAN };

/* Update the metrics, which sum up all stores. Caller holds c->lock. */
static void publish_backlog(struct compaction *c, int64_t files, int64_t bytes)
{
        metric_add(&backlog_files, files - c->published_backlog_files);
        metric_add(&backlog_bytes, bytes - c->published_backlog_bytes);
        c->published_backlog_files = files;
        c->published_backlog_bytes = bytes;
}

/* Run one merge; a partition that failed is postponed. Caller holds c->lock. */
static enum round run_next_merge(struct compaction_run *run, struct error *err)
{
        struct compaction *c = run->c;
        const struct compaction_rules rules = make_rules(c);
        const struct compaction_view view = { .rules = &rules,
                                              .is_full = run->is_full,
                                              .now_s = wall_clock_ns() / NS_PER_S,
                                              .is_postponed = is_postponed_partition,
                                              .is_unmergeable = is_unmergeable_part,
                                              .context = run };
        struct tables *tables = ref_current_tables(c->s);
        struct compaction_job job;
        struct running_merge r = { .c = c, .job = &job, .needs_lease = run->needs_lease };
        uint64_t bytes_due;
        enum status st = choose_compaction_job(tables, &view, &job, &run->files_due, &bytes_due, err);
        enum round ret = st == ST_NOT_FOUND ? ROUND_NOTHING_DUE : ROUND_WITHOUT_PLAN;

        publish_backlog(c, (int64_t)run->files_due, (int64_t)bytes_due);
        forget_needless_failures(c, tables, &view);
        if (!st) {
                st = run_job(&r, tables, &run->total, err);
                ret = !st ? ROUND_MERGED : r.was_ended ? ROUND_GAVE_WAY : ROUND_FAILED;
                run->skips_locations |= r.was_ended && job.partition.table == TABLE_LOCATIONS;
                compaction_job_deinit(&job);
        }
        tables_unref(tables);
        return ret;
}

static bool is_store_open(void *context)
{
        return !atomic_load(&((struct compaction *)context)->s->stopping);
}

static void run_due_merges(struct compaction *c, bool skips_locations)
{
        struct compaction_run run = { .c = c, .needs_lease = true, .skips_locations = skips_locations };
        enum round round = ROUND_MERGED;

        while (round != ROUND_NOTHING_DUE && round != ROUND_WITHOUT_PLAN && is_store_open(c) && !has_lost_lease(c)) {
                struct error err = { 0 };

                if (!work_lock_acquire(&turn_of_stores, is_store_open, c))
                        break;
                if (work_lock_acquire(&c->lock, is_store_open, c)) {
                        round = run_next_merge(&run, &err);
                        work_lock_release(&c->lock);
                }
                work_lock_release(&turn_of_stores);
        }
}

/* Wait until the work that a merge gave way to is probably done. */
static void pause_compaction(void)
{
        const struct timespec pause = { .tv_nsec = PAUSE_NS };

        nanosleep(&pause, NULL);
}

struct compaction_call {
        struct compaction_run run;
        profile_store_compact_progress *progress;
        void *context;
        struct error failure; /* first failure */
};

/* Also called while another thread merges. */
static bool may_go_on_compacting(void *context)
{
        struct compaction_call *call = context;

        if (!is_store_open(call->run.c)) {
                error_set(&call->failure, ST_BUSY, "the store is being closed");
                return false;
        }
        if (!call->progress || call->progress(call->context, &call->run.total, call->run.files_due))
                return true;
        error_set(&call->failure, ST_BUSY, "the compaction was interrupted before all files were merged");
        return false;
}

static bool may_begin_round(struct compaction_call *call)
{
        if (is_store_open(call->run.c))
                return work_lock_acquire(&call->run.c->lock, may_go_on_compacting, call);
        error_set(&call->failure, ST_BUSY, "the store is being closed");
        return false;
}

static void run_all_merges(struct compaction_call *call)
{
        struct compaction_run *run = &call->run;
        enum round round = ROUND_MERGED;

        while (round != ROUND_NOTHING_DUE && round != ROUND_WITHOUT_PLAN) {
                struct error why = { 0 };

                if (!may_begin_round(call))
                        break;
                round = run_next_merge(run, &why);
                work_lock_release(&run->c->lock);
                if (why.code && (round == ROUND_FAILED || round == ROUND_WITHOUT_PLAN) && !call->failure.code)
                        call->failure = why;
                if (round == ROUND_NOTHING_DUE && run->skips_locations) {
                        run->skips_locations = false; /* only locations are left */
                        round = ROUND_GAVE_WAY;
                        pause_compaction();
                }
                if ((round == ROUND_MERGED || round == ROUND_GAVE_WAY) && !may_go_on_compacting(call))
                        break;
        }
}

static void update_history(struct compaction_call *call)
{
        struct error why = { 0 };

        if (is_store_open(call->run.c) && profile_store_update_history(call->run.c->s, &why) && !call->failure.code)
                call->failure = why;
}

enum status profile_store_compact(struct profile_store *s, profile_store_compact_progress *progress, void *context,
                                  struct compaction_result *ret, struct error *err)
{
        struct compaction *c = s->compaction;
        struct compaction_call call = { .run = { .c = c, .is_full = true }, .progress = progress, .context = context };
        enum status st;

        if (s->options.read_only)
                return error_set(err, ST_USAGE, "'%s' is open for reading only", s->dir);
        st = store_check_tables(s, err);
        if (st)
                return st;
        if (may_begin_round(&call)) {
                c->calls++;
                work_lock_release(&c->lock);
                run_all_merges(&call);
                update_history(&call);
        }
        if (ret)
                *ret = call.run.total;
        if (call.failure.code && err)
                *err = call.failure;
        return call.failure.code;
}

void compaction_measure_backlog(const struct tables *t, uint64_t *files_ret, uint64_t *bytes_ret)
{
        const struct compaction_view view = { .rules = &compaction_default_rules, .now_s = wall_clock_ns() / NS_PER_S };
        struct compaction_job job;

        if (!choose_compaction_job(t, &view, &job, files_ret, bytes_ret, NULL))
                compaction_job_deinit(&job);
}

/* ---- thread --------------------------------------------------------------------------------------- */

/* Ingest, flushes and queries take precedence. Failures are ignored: only the priority depends on these calls. */
static void lower_priority(void)
{
        const int who_process = 1, best_effort_lowest = 2 << 13 | 7;

        (void)setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), 10);
        (void)syscall(SYS_ioprio_set, who_process, 0, best_effort_lowest);
}

static bool expire_next_day(struct compaction *c, struct label_pass *labels)
{
        bool goes_on;

        if (!label_expiry_has_rules(c->s) || !work_lock_acquire(&turn_of_stores, is_store_open, c))
                return false;
        goes_on = label_expiry_run_next(c->s, labels);
        work_lock_release(&turn_of_stores);
        return goes_on;
}

/* The turn of a sweep, which may take hours. */
struct sweep_turn {
        struct compaction *c;
        bool is_held;
};

/* Let this store and others merge. */
static bool give_turn_to_merges(void *context)
{
        struct sweep_turn *t = context;

        work_lock_release(&turn_of_stores);
        run_due_merges(t->c, true);
        t->is_held = work_lock_acquire(&turn_of_stores, is_store_open, t->c);
        return t->is_held;
}

static void sweep_locations_in_turn(struct compaction *c)
{
        struct sweep_turn turn = { c, false };

        if (!atomic_load(&c->s->sweep_due))
                return;
        turn.is_held = work_lock_acquire(&turn_of_stores, is_store_open, c);
        if (turn.is_held)
                location_sweep_run_if_due(
                        c->s, &(struct sweep_request){ .pause = give_turn_to_merges, .context = &turn }, false, NULL);
        if (turn.is_held)
                work_lock_release(&turn_of_stores);
}

static void *run_compaction_thread(void *context)
{
        struct compaction *c = context;
        struct label_pass labels = { 0 };

        prctl(PR_SET_NAME, "cairn-compact");
        lower_priority();
        while (!atomic_load(&c->s->stopping)) {
                int64_t until = monotonic_ns() + (int64_t)c->interval_ms * 1000000;

                pthread_mutex_lock(&c->wake_lock);
                while (!atomic_load(&c->s->stopping) && condition_wait_until(&c->wake, &c->wake_lock, until))
                        ;
                pthread_mutex_unlock(&c->wake_lock);
                if (store_hold_lease(c->s, &c->s->maintenance_lease, NULL))
                        continue;
                do
                        run_due_merges(c, false);
                while (expire_next_day(c, &labels) && !store_hold_lease(c->s, &c->s->maintenance_lease, NULL));
                sweep_locations_in_turn(c);
                function_history_run_due(c->s);
        }
        return NULL;
}

static uint64_t choose_interval(const struct profile_store_options *o)
{
        if (o->compact_interval_ms)
                return o->compact_interval_ms;
        if (o->flush_interval_ms == UINT64_MAX || o->has_no_maintenance)
                return UINT64_MAX;
        return o->flush_interval_ms < DEFAULT_INTERVAL_MS ? o->flush_interval_ms : DEFAULT_INTERVAL_MS;
}

enum status compaction_start(struct profile_store *s, struct error *err)
{
        struct metric *const all[] = { &merges,     &failures,      &merged_files,  &skipped_files,
                                       &read_bytes, &written_bytes, &backlog_files, &backlog_bytes };
        struct compaction *c = calloc(1, sizeof *c);
        int failed;

        if (!c)
                return error_no_memory(err);
        c->s = s;
        c->interval_ms = choose_interval(&s->options);
        work_lock_init(&c->lock);
        pthread_mutex_init(&c->wake_lock, NULL);
        pthread_cond_init(&c->wake, NULL);
        s->compaction = c;
        for (size_t i = 0; i < sizeof all / sizeof *all; i++)
                metric_register(all[i]);
        function_history_register_metrics();
        if (c->interval_ms == UINT64_MAX)
                return ST_OK;
        c->thread_runs = true; /* before the thread reads it */
        failed = pthread_create(&c->thread, NULL, run_compaction_thread, c);
        if (failed) {
                c->thread_runs = false;
                return error_os(err, failed, "cannot start the compaction thread");
        }
        return ST_OK;
}

void compaction_stop(struct compaction *c)
{
        if (!c)
                return;
        if (c->thread_runs) {
                pthread_mutex_lock(&c->wake_lock);
                pthread_cond_signal(&c->wake);
                pthread_mutex_unlock(&c->wake_lock);
                pthread_join(c->thread, NULL);
        }
        publish_backlog(c, 0, 0);
        for (size_t i = 0; i < c->unmergeable_count; i++)
                free(c->unmergeable[i].path);
        free(c->unmergeable);
        free(c->failed);
        pthread_cond_destroy(&c->wake);
        pthread_mutex_destroy(&c->wake_lock);
        work_lock_deinit(&c->lock);
        free(c);
}
