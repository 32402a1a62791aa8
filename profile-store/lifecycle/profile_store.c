/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store as a whole: health, statistics, the flush thread, open and close, and the change from one state of the
 * tables to the next.
 *
 * Three ways to open: a writer locks queue/lock, loads the tables, replays the queue (head_open()) and starts the
 * threads of flush, maintenance and compaction; a reader has none of these: store_reload(), at the start of each
 * scan, follows queue and tables of the writer. A replica has tables in an object store: store_follow_for_scan()
 * follows them.
 *
 * Locks: health_lock for the health only; s->lock for head and tables, briefly; store_reload() requires s->lock.
 * profile_store_close() joins the threads without a lock.
 */
#include "profile-store/profile_store.h"

#include <fcntl.h>
#include <malloc.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>

#include "common/clock.h"
#include "common/files/file.h"
#include "common/limits.h"
#include "common/stable_clock.h"
#include "common/threads/condition.h"
#include "profile-store/compaction/compaction.h"
#include "profile-store/core/commit_group.h"
#include "profile-store/core/flush.h"
#include "profile-store/core/kept_heads.h"
#include "profile-store/history/function_history.h"
#include "profile-store/rows/location_rows.h"
#include "profile-store/lifecycle/maintenance.h"
#include "profile-store/tables/node_identity.h"
#include "profile-store/tables/part_read.h"
#include "profile-store/core/profile_store_internal.h"
#include "profile-store/core/table_absence.h"
#include "profile-store/core/table_follow.h"
#include "profile-store/tables/location_cache.h"
#include "profile-store/scan/stack_cache.h"
#include "profile-store/tables/table_storage.h"
#include "profile-store/tables/table_vacuum.h"
#include "storage/s3/s3_location.h"

/* ---- health ---- */

static bool record_failure(int64_t *since, char *text, size_t size, enum status st, const struct error *err)
{
        if (!st) {
                *since = 0;
                text[0] = 0;
                return false;
        }
        snprintf(text, size, "%s", err->text);
        if (*since)
                return false;
        *since = wall_clock_ns();
        return true;
}

bool health_set_flush(struct profile_store *s, enum status st, const struct error *err)
{
        struct profile_store_health *h = &s->health;
        bool first;

        pthread_mutex_lock(&s->health_lock);
        first = record_failure(&h->flush_failing_since, h->flush_failure, sizeof h->flush_failure, st, err);
        pthread_mutex_unlock(&s->health_lock);
        return first;
}

bool health_set_sync(struct profile_store *s, enum status st, const struct error *err)
{
        struct profile_store_health *h = &s->health;
        bool first;

        pthread_mutex_lock(&s->health_lock);
        first = record_failure(&h->sync_failing_since, h->sync_failure, sizeof h->sync_failure, st, err);
        pthread_mutex_unlock(&s->health_lock);
        return first;
}

void health_set_compaction(struct profile_store *s, int64_t since_ns, const struct error *err)
{
        struct profile_store_health *h = &s->health;

        pthread_mutex_lock(&s->health_lock);
        h->compaction_failing_since = since_ns;
        snprintf(h->compaction_failure, sizeof h->compaction_failure, "%s", since_ns ? err->text : "");
        pthread_mutex_unlock(&s->health_lock);
}

void health_set_label_expiry(struct profile_store *s, enum status st, const struct error *err)
{
        struct profile_store_health *h = &s->health;

        pthread_mutex_lock(&s->health_lock);
        record_failure(&h->label_expiry_failing_since, h->label_expiry_failure, sizeof h->label_expiry_failure, st,
                       err);
        pthread_mutex_unlock(&s->health_lock);
}

void health_set_maintained(struct profile_store *s, enum status st, const struct error *err)
{
        struct profile_store_health *h = &s->health;

        pthread_mutex_lock(&s->health_lock);
        record_failure(&h->unmaintained_since, h->unmaintained, sizeof h->unmaintained, st, err);
        pthread_mutex_unlock(&s->health_lock);
}

bool health_set_follow(struct profile_store *s, enum status st, const struct error *err)
{
        struct profile_store_health *h = &s->health;
        bool first;

        pthread_mutex_lock(&s->health_lock);
        first = record_failure(&h->follow_failing_since, h->follow_failure, sizeof h->follow_failure, st, err);
        pthread_mutex_unlock(&s->health_lock);
        return first;
}

void health_add_quarantined(struct profile_store *s, int64_t batches, int64_t bytes, const char *reason)
{
        struct profile_store_health *h = &s->health;

        pthread_mutex_lock(&s->health_lock);
        h->quarantined_batches += (uint64_t)batches;
        h->quarantined_bytes += (uint64_t)bytes;
        if (reason)
                snprintf(h->quarantine_reason, sizeof h->quarantine_reason, "%s", reason);
        pthread_mutex_unlock(&s->health_lock);
}

void profile_store_get_health(struct profile_store *s, struct profile_store_health *ret)
{
        pthread_mutex_lock(&s->health_lock);
        *ret = s->health;
        pthread_mutex_unlock(&s->health_lock);
        ret->queued_batches = atomic_load(&s->head_count);
        ret->queued_bytes = atomic_load(&s->head_bytes);
        ret->queue_limit_bytes = s->options.max_queued_bytes;
        ret->queue_full = ret->queued_bytes >= ret->queue_limit_bytes;
}

/* ---- statistics ---- */

static bool is_state_with_frames(const struct parquet_bytes *state)
{
        static const enum symbol_state with_frames[] = { SYMBOL_RESOLVED, SYMBOL_SENDER };

        for (size_t i = 0; i < sizeof with_frames / sizeof *with_frames; i++) {
                const char *name = symbol_state_name(with_frames[i]);

                if (state->size == strlen(name) && memcmp(state->data, name, state->size) == 0)
                        return true;
        }
        return false;
}

static enum status count_part_unresolved(const struct table_part *part, int64_t *ret, struct error *err)
{
        _cleanup_part_file_ struct part_file f;
        int64_t n = 0;
        enum status st = part_file_open(part, &f, err);

        for (uint32_t g = 0; !st && g < part_file_count_groups(&f); g++) {
                _cleanup_parquet_column_ struct parquet_column c = { 0 };

                st = part_file_read_column(&f, g, "state", PARQUET_STRING, &c, err);
                for (uint64_t i = 0; !st && i < c.row_count; i++)
                        n += c.codes[i] == PARQUET_NULL_CODE || !is_state_with_frames(&c.dict[c.codes[i]]);
        }
        if (!st)
                *ret = n;
        return st;
}

static enum status count_unresolved_locations(const struct tables *t, uint64_t *ret, struct error *err)
{
        uint64_t n = 0;

        for (size_t i = 0; i < t->part_count[TABLE_LOCATIONS]; i++) {
                struct table_part *part = t->parts[TABLE_LOCATIONS][i];
                int64_t known = atomic_load(&part->unresolved);

                if (known < 0) {
                        struct error why = { 0 };
                        enum status st = count_part_unresolved(part, &known, &why);

                        if (part_is_unreadable(st, &why)) {
                                known = (int64_t)part->rows; /* damaged: no frames can be read */
                        } else if (st) {
                                if (err)
                                        *err = why;
                                return st;
                        } else {
                                atomic_store(&part->unresolved, known);
                        }
                }
                n += (uint64_t)known;
        }
        *ret = n;
        return ST_OK;
}

static void widen_time_range(int64_t *oldest, int64_t *newest, int64_t from, int64_t to)
{
        *oldest = from < *oldest ? from : *oldest;
        *newest = to > *newest ? to : *newest;
}

/* The log rounds bounds outwards to milliseconds, so they may overflow as nanoseconds. */
static int64_t convert_us_to_ns(int64_t us)
{
        int64_t ns;

        return __builtin_mul_overflow(us, 1000, &ns) ? (us < 0 ? INT64_MIN : INT64_MAX) : ns;
}

#define US_PER_DAY INT64_C(86400000000)

static void sum_table_parts(const struct tables *t, enum table table, struct profile_store_table_stat *ret)
{
        int64_t oldest = INT64_MAX, newest = INT64_MIN;

        ret->files = t->part_count[table];
        for (size_t i = 0; i < t->part_count[table]; i++) {
                const struct table_part *p = t->parts[table][i];

                ret->rows += p->rows;
                ret->bytes += p->bytes;
                if (table_part_has_times(p))
                        widen_time_range(&oldest, &newest, p->min_us, p->max_us);
                else if (table == TABLE_STACKS && p->has_day)
                        widen_time_range(&oldest, &newest, p->day * US_PER_DAY, (p->day + 1) * US_PER_DAY - 1);
        }
        if (oldest <= newest) {
                ret->oldest_unix_ns = convert_us_to_ns(oldest);
                ret->newest_unix_ns = convert_us_to_ns(newest);
        }
}

enum status profile_store_stat(struct profile_store *s, struct profile_store_stat *ret, struct error *err)
{
        struct profile_store_stat stat = { 0 };
        int64_t oldest = INT64_MAX, newest = INT64_MIN;
        struct tables *t;
        enum status st;

        profile_store_get_health(s, &stat.health);
        pthread_mutex_lock(&s->lock);
        t = tables_ref(s->tables);
        stat.queued_bytes = s->head_bytes;
        stat.queued_batches = s->head_count;
        stat.queue_disk_bytes =
                s->queue ? raw_queue_count_bytes(s->queue) : 0; /* NULL for a reader whose last reload failed */
        stat.failed_flushes = s->failed_flushes;
        stat.damaged_lookups = (uint64_t)location_rows_count_damaged();
        stat.torn_bytes = s->report.torn_bytes;
        stat.damaged_segments = s->report.damaged_segments;
        memcpy(stat.last_failure, s->last_failure.text, sizeof stat.last_failure);
        for (size_t i = 0; i < s->head_count; i++)
                widen_time_range(&oldest, &newest, s->head[i]->oldest_us, s->head[i]->newest_us);
        pthread_mutex_unlock(&s->lock);
        sum_table_parts(t, TABLE_SAMPLES, &stat.samples);
        sum_table_parts(t, TABLE_STACKS, &stat.stacks);
        sum_table_parts(t, TABLE_LOCATIONS, &stat.locations);
        sum_table_parts(t, TABLE_HISTORY, &stat.history);
        stat.sample_rows = stat.samples.rows;
        stat.sample_files = stat.samples.files;
        stat.stack_rows = stat.stacks.rows;
        stat.stack_files = stat.stacks.files;
        stat.location_rows = stat.locations.rows;
        stat.location_files = stat.locations.files;
        stat.bytes = stat.samples.bytes + stat.stacks.bytes + stat.locations.bytes + stat.history.bytes;
        for (size_t i = 0; i < t->part_count[TABLE_SAMPLES]; i++) {
                const struct table_part *p = t->parts[TABLE_SAMPLES][i];

                if (table_part_has_times(p))
                        widen_time_range(&oldest, &newest, p->min_us, p->max_us);
        }
        if (oldest <= newest) {
                stat.oldest_unix_ns = convert_us_to_ns(oldest);
                stat.newest_unix_ns = convert_us_to_ns(newest);
        }
        compaction_measure_backlog(t, &stat.compaction_backlog_files, &stat.compaction_backlog_bytes);
        st = count_unresolved_locations(t, &stat.unresolved_locations, err);
        tables_unref(t);
        if (!st)
                *ret = stat;
        return st;
}

#define DEFAULT_FLUSH_BYTES MiB(64)
#define DEFAULT_FLUSH_INTERVAL_MS 10000
#define DEFAULT_COMMIT_INTERVAL_MS 2000
#define DEFAULT_MAX_QUEUED_BYTES MiB(512)
#define DEFAULT_RESYMBOLIZE_ROWS 1000000
#define ABSENT_RETRY_MS 10000 /* queries lack the tables, so do not wait for a long interval of flushes */
#define TRIM_BYTES MiB(32)

/* ---- the flush thread --------------------------------------------------------------------- */

/* 0: not due */
static int64_t find_earliest(int64_t end, int64_t flush_due, int64_t group_due)
{
        if (flush_due && flush_due < end)
                end = flush_due;
        return group_due && group_due < end ? group_due : end;
}

/* Wait for the end of the interval or until flush_bytes are queued. True while the store is open. */
static bool wait_for_flush(struct profile_store *s, bool failed)
{
        uint64_t interval_ms = s->options.flush_interval_ms;
        int64_t end;
        bool stopping, in_time = true;

        if (has_absent_tables(s) && interval_ms > ABSENT_RETRY_MS)
                interval_ms = ABSENT_RETRY_MS;
        end = monotonic_ns() + (int64_t)interval_ms * 1000000 + commit_group_get_delay(s);
        pthread_mutex_lock(&s->lock);
        if (s->flush_waiters) /* they came during the last flush, or it failed */
                head_order_flush(s);
        /* After a failure, wait for the whole interval, however much is queued. */
        while (!s->stopping && !s->sync_failed && in_time && (failed || s->head_bytes < s->options.flush_bytes))
                in_time =
                        condition_wait_until(&s->wake, &s->lock, find_earliest(end, s->flush_due_ns, s->group_due_ns));
        s->flush_due_ns = s->group_due_ns = 0;
        s->sync_failed = false;
        stopping = s->stopping;
        pthread_mutex_unlock(&s->lock);
        return !stopping;
}

static uint64_t get_queued_bytes(struct profile_store *s)
{
        uint64_t ret;

        pthread_mutex_lock(&s->lock);
        ret = s->head_bytes;
        pthread_mutex_unlock(&s->lock);
        return ret;
}

static void *run_flush_thread(void *context)
{
        struct profile_store *s = context;
        bool failed = false;

        prctl(PR_SET_NAME, "cairn-flush");
        while (wait_for_flush(s, failed)) {
                uint64_t before = get_queued_bytes(s);
                struct error err = { 0 };

                failed = store_flush(s, &err) != ST_OK;
                if (before >= TRIM_BYTES) /* the batches of a burst were allocated from the heaps of many threads */
                        (void)malloc_trim(0);
                if (!failed) {
                        store_check_maintained(s);
                        continue;
                }
                pthread_mutex_lock(&s->lock);
                s->failed_flushes++;
                s->last_failure = err;
                pthread_mutex_unlock(&s->lock);
        }
        return NULL;
}

/* ---- open, close -------------------------------------------------------------------------- */

static enum status lock_store_dir(struct profile_store *s, struct error *err)
{
        _cleanup_free_ char *path = path_join(s->dir, "queue/lock");
        _cleanup_free_ char *dir = path_join(s->dir, "queue");
        enum status st = path && dir ? file_make_dirs(dir, err) : error_no_memory(err);

        if (st)
                return st;
        s->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
        if (s->lock_fd < 0)
                return error_os(err, errno, "cannot open '%s'", path);
        if (flock(s->lock_fd, LOCK_EX | LOCK_NB) < 0)
                return errno == EWOULDBLOCK
                               ? error_set(err, ST_BUSY, "another process writes '%s'; stop it or use --server", s->dir)
                               : error_os(err, errno, "cannot lock '%s'", path);
        return ST_OK;
}

static void set_options(struct profile_store *s, const struct profile_store_options *options)
{
        size_t n = options && options->size < sizeof s->options ? options->size : sizeof s->options;

        if (options)
                memcpy(&s->options, options, n);
        if (!s->options.flush_bytes)
                s->options.flush_bytes = DEFAULT_FLUSH_BYTES;
        if (!s->options.flush_interval_ms)
                s->options.flush_interval_ms = DEFAULT_FLUSH_INTERVAL_MS;
        if (!s->options.commit_interval_ms)
                s->options.commit_interval_ms = DEFAULT_COMMIT_INTERVAL_MS;
        if (!s->options.max_queued_bytes)
                s->options.max_queued_bytes = DEFAULT_MAX_QUEUED_BYTES;
        if (!s->options.lease_ms)
                s->options.lease_ms = DEFAULT_LEASE_MS;
        if (!s->options.part_rows)
                s->options.part_rows = UINT64_MAX;
        if (!s->options.resymbolize_rows)
                s->options.resymbolize_rows = DEFAULT_RESYMBOLIZE_ROWS;
}

/*
 * Clean up when opening. Without a flush thread, delete files only if a grace period is given: a service keeps removed
 * files for its own configured time, which a command that opens its directory does not know. Maintenance repeats this
 * and reports failures; in an object store, whose requests would delay the start, only maintenance does it.
 */
static void vacuum_at_open(struct profile_store *s)
{
        bool has_thread = s->options.flush_interval_ms != UINT64_MAX;

        if (has_thread ? is_s3_url(storage_root(s->storage)) : !s->options.removed_grace_ms)
                return;
        (void)!tables_vacuum_removed(&s->logs, NULL, NULL);
        (void)!tables_vacuum_orphans(&s->logs, NULL, NULL);
}

static enum status open_storage(struct profile_store *s, struct error *err)
{
        s->storage = s->options.tables;
        return s->storage ? ST_OK : open_table_storage(s->dir, &s->storage, err);
}

static bool has_shared_storage(const struct profile_store *s)
{
        return s->options.is_shared || is_s3_url(storage_root(s->storage));
}

static enum status get_node_identity(struct profile_store *s, char ret[static NODE_ID_SIZE], struct error *err)
{
        return has_shared_storage(s) && !s->options.read_only ? node_identity_make(s->dir, ret, err)
                                                              : node_identity_read(s->dir, ret, err);
}

static enum status open_writable(struct profile_store *s, struct error *err)
{
        char node[NODE_ID_SIZE] = "";
        enum status st = lock_store_dir(s, err);

        if (!st)
                st = file_sync_filesystem(s->dir, err);
        if (!st)
                st = open_storage(s, err);
        if (!st)
                st = get_node_identity(s, node, err);
        if (!st)
                st = store_open_tables(s, node, err);
        if (st)
                return st;
        s->flushed = s->tables->flushed;
        flush_register_metrics();
        table_follow_register_metrics();
        kept_heads_register_metrics();
        store_lease_register_metrics();
        st = kept_heads_open(s, err);
        if (!st)
                st = store_open_queue(s, err);
        s->known.node = *s->logs.node ? s->logs.node : NULL;
        if (!st)
                st = commit_group_open(s, err);
        if (!st) /* what a process before this one had handed */
                s->handed = raw_queue_get_synced(s->queue);
        if (!st && *s->logs.node && !has_absent_tables(s)) /* takes the ids of batches that others committed */
                st = store_publish_tables(s, err);
        if (st)
                return st;
        if (!has_absent_tables(s) && !s->options.has_no_maintenance)
                vacuum_at_open(s);
        if (s->options.flush_interval_ms != UINT64_MAX && (!s->options.has_no_flush || s->head_count)) {
                int failed = pthread_create(&s->thread, NULL, run_flush_thread, s);

                if (failed)
                        return error_os(err, failed, "cannot start the flush thread");
                s->thread_runs = true;
        } else if (s->options.flush_interval_ms != UINT64_MAX && has_shared_tables(s)) {
                st = follower_start(s, err);
        }
        if (!st && s->options.flush_interval_ms != UINT64_MAX)
                st = maintenance_start(s, err);
        return st ? st : compaction_start(s, err);
}

/*
 * The queue is read before the tables: a batch flushed in between is in both, and is dropped from the head by its
 * position.
 */
static enum status reload_with_queue(struct profile_store *s, struct error *err)
{
        struct tables *before = s->tables;
        char node[NODE_ID_SIZE] = "";
        enum status st = s->queue ? head_refresh(s, err) : head_open(s, err);

        if (!st && !s->storage)
                st = open_storage(s, err);
        if (!st && !s->logs.storage)
                st = get_node_identity(s, node, err);
        if (!st && !s->logs.storage)
                st = table_logs_open(s->storage, node, true, 0, &s->logs, err);
        if (!st)
                st = tables_load(&s->logs, true, before, &s->tables, err);
        if (st)
                return st;
        tables_unref(before);
        s->flushed = s->tables->flushed;
        head_drop_until(s, s->flushed);
        return ST_OK;
}

/* Replayed entries are kept; if queue or tables were replaced (restore), replay from the start. */
enum status store_reload(struct profile_store *s, struct error *err)
{
        uint64_t flushed = s->flushed, replacements = s->tables ? s->tables->replacements : 0;
        bool from_start = !s->queue;
        enum status st = reload_with_queue(s, err);

        if (from_start || (!st && s->flushed >= flushed && s->tables->replacements == replacements))
                return st;
        head_close(s);
        s->flushed = 0;
        return reload_with_queue(s, err);
}

static enum status open_read_only(struct profile_store *s, struct error *err)
{
        enum status st = store_reload(s, err);

        if (st || !has_shared_storage(s))
                return st;
        s->is_replica = true;
        table_follow_register_metrics();
        kept_heads_register_metrics();
        store_note_followed(s);
        return s->options.has_follower ? follower_start(s, err) : ST_OK;
}

bool profile_store_lacks_tables(struct profile_store *s)
{
        return has_absent_tables(s);
}

static enum status report_missing_store(const char *dir, struct error *err)
{
        return error_set(err, ST_NOT_FOUND, "'%s' holds no profiles: no tables in it", dir);
}

enum status profile_store_check_exists(const char *dir, struct error *err)
{
        _cleanup_free_ char *tables = path_join(dir, "tables");

        if (!tables)
                return error_no_memory(err);
        if (access(tables, F_OK) == 0)
                return ST_OK;
        return errno == ENOENT || errno == ENOTDIR ? report_missing_store(dir, err)
                                                   : error_os(err, errno, "cannot open '%s'", tables);
}

enum status profile_store_open(const char *dir, const struct profile_store_options *options, struct profile_store **ret,
                               struct error *err)
{
        struct profile_store *s = calloc(1, sizeof *s);
        enum status st;

        if (!s)
                return error_no_memory(err);
        s->lock_fd = -1;
        set_options(s, options);
        pthread_mutex_init(&s->resymbolize_lock, NULL);
        pthread_mutex_init(&s->writer_lock, NULL);
        pthread_mutex_init(&s->lock, NULL);
        pthread_mutex_init(&s->rules_lock, NULL);
        pthread_mutex_init(&s->health_lock, NULL);
        pthread_mutex_init(&s->lease_lock, NULL);
        pthread_mutex_init(&s->peer_lock, NULL);
        s->maintenance_lease.name = "maintenance";
        s->resymbolize_lease.name = "resymbolization";
        s->fetch_lease.name = "fetches";
        pthread_cond_init(&s->wake, NULL);
        pthread_cond_init(&s->left_head, NULL);
        pthread_cond_init(&s->maintenance_wake, NULL);
        s->dir = strdup(dir);
        s->stack_cache = stack_cache_create();
        location_cache_register_metrics();
        s->limits = store_limits_create(&s->options.limits, 0);
        s->history = function_history_create();
        if (!s->dir || !s->stack_cache || !s->limits || !s->history)
                st = error_no_memory(err);
        else
                st = s->options.read_only ? open_read_only(s, err) : open_writable(s, err);
        if (st == ST_NOT_FOUND && s->options.read_only)
                st = report_missing_store(dir, err);
        if (st)
                profile_store_close(s);
        else
                *ret = s;
        return st;
}

void profile_store_stop(struct profile_store *s)
{
        pthread_mutex_lock(&s->lock);
        s->stopping = true;
        pthread_cond_signal(&s->wake);
        pthread_cond_broadcast(&s->left_head);
        pthread_mutex_unlock(&s->lock);
        commit_group_stop(s);
}

void profile_store_count_queued(struct profile_store *s, uint64_t *batches_ret, uint64_t *bytes_ret)
{
        pthread_mutex_lock(&s->lock);
        *batches_ret = s->head_count;
        *bytes_ret = s->head_bytes;
        pthread_mutex_unlock(&s->lock);
}

void profile_store_close(struct profile_store *s)
{
        if (!s)
                return;
        profile_store_stop(s);
        if (s->thread_runs)
                pthread_join(s->thread, NULL);
        maintenance_stop(s);
        compaction_stop(s->compaction);
        commit_group_close(s);
        store_end_lease(s, &s->maintenance_lease);
        store_end_lease(s, &s->fetch_lease);
        store_end_memory_claim(s);
        kept_heads_close(s);
        store_end_absence(s);
        head_close(s);
        tables_unref(s->tables);
        table_logs_close(&s->logs);
        if (s->storage != s->options.tables)
                storage_close(s->storage);
        known_rows_deinit(&s->known);
        function_history_destroy(s->history);
        stack_cache_destroy(s->stack_cache);
        store_limits_release(s->limits);
        if (s->lock_fd >= 0)
                close(s->lock_fd);
        pthread_cond_destroy(&s->maintenance_wake);
        pthread_cond_destroy(&s->wake);
        pthread_cond_destroy(&s->left_head);
        pthread_mutex_destroy(&s->lock);
        pthread_mutex_destroy(&s->rules_lock);
        pthread_mutex_destroy(&s->health_lock);
        pthread_mutex_destroy(&s->lease_lock);
        pthread_mutex_destroy(&s->peer_lock);
        pthread_mutex_destroy(&s->writer_lock);
        pthread_mutex_destroy(&s->resymbolize_lock);
        free(s->dir);
        free(s);
}

enum status profile_store_flush(struct profile_store *s, struct error *err)
{
        if (s->options.read_only)
                return error_set(err, ST_USAGE, "'%s' is open for reading only", s->dir);
        return store_flush(s, err);
}
