/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-store/store.h"

#include <fcntl.h>
#include <malloc.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>

#include "common/clock.h"
#include "common/stable_clock.h"
#include "common/condition.h"
#include "common/file.h"
#include "common/limits.h"
#include "profile-store/flush.h"
#include "profile-store/store_internal.h"

#define DEFAULT_FLUSH_BYTES MiB(64)
#define DEFAULT_FLUSH_INTERVAL_MS 10000
#define DEFAULT_MAX_QUEUED_BYTES MiB(512)
#define DEFAULT_HEAL_ROWS 1000000
#define TRIM_BYTES MiB(32)

/* ---- the flush thread --------------------------------------------------------------------- */

/* Waits for the interval's end or for size; true while the store is open. */
static bool wait_for_work(struct profile_store *s, bool failed)
{
        int64_t end = monotonic_ns() + (int64_t)s->options.flush_interval_ms * 1000000;
        bool stopping, in_time = true;

        pthread_mutex_lock(&s->lock);
        /* After a failure size is no reason to hurry: the disk that failed a moment ago is given its interval. */
        while (!s->stopping && !s->sync_failed && in_time && (failed || s->head_bytes < s->options.flush_bytes))
                in_time = condition_wait_until(&s->wake, &s->lock, end);
        s->sync_failed = false;
        stopping = s->stopping;
        pthread_mutex_unlock(&s->lock);
        return !stopping;
}

static uint64_t queued_bytes(struct profile_store *s)
{
        uint64_t ret;

        pthread_mutex_lock(&s->lock);
        ret = s->head_bytes;
        pthread_mutex_unlock(&s->lock);
        return ret;
}

static void *flush_thread(void *context)
{
        struct profile_store *s = context;
        bool failed = false;

        prctl(PR_SET_NAME, "cairn-flush");
        while (wait_for_work(s, failed)) {
                uint64_t before = queued_bytes(s);
                struct error err = { 0 };

                failed = flush_once(s, &err) != ST_OK;
                if (before >= TRIM_BYTES) /* a burst's batches were made on many threads, whose heaps would keep them */
                        (void)malloc_trim(0);
                if (!failed)
                        continue;
                pthread_mutex_lock(&s->lock);
                s->failed_flushes++;
                s->last_failure = err;
                pthread_mutex_unlock(&s->lock);
        }
        return NULL;
}

/* ---- open, close -------------------------------------------------------------------------- */

static enum status take_lock(struct profile_store *s, struct error *err)
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
                               ? error_set(err, ST_BUSY, "another process writes '%s'; stop it or use --server",
                                           s->dir)
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
        if (!s->options.max_queued_bytes)
                s->options.max_queued_bytes = DEFAULT_MAX_QUEUED_BYTES;
        if (!s->options.part_rows)
                s->options.part_rows = UINT64_MAX;
        if (!s->options.heal_rows)
                s->options.heal_rows = DEFAULT_HEAL_ROWS;
}

static enum status open_to_write(struct profile_store *s, struct error *err)
{
        enum status st = take_lock(s, err);

        if (!st)
                st = file_sync_filesystem(s->dir, err);
        if (!st)
                st = table_logs_open(s->dir, false, &s->logs, err);
        if (!st)
                st = tables_load(&s->logs, false, NULL, &s->tables, err);
        if (st)
                return st;
        s->flushed = s->tables->flushed;
        flush_register_metrics();
        st = head_open(s, err);
        if (!st)
                st = tables_clean(&s->logs, s->tables, err);
        if (!st && s->options.flush_interval_ms != UINT64_MAX) {
                int failed = pthread_create(&s->thread, NULL, flush_thread, s);

                if (failed)
                        return error_os(err, failed, "cannot start the flush thread");
                s->thread_runs = true;
        }
        return st;
}

/*
 * The queue is read before the tables: what a writer flushes in between is
 * then in both, and left out of the head by its position; never in neither.
 */
enum status store_reload(struct profile_store *s, struct error *err)
{
        struct tables *before = s->tables;
        enum status st;

        head_close(s);
        s->flushed = 0;
        st = head_open(s, err);
        if (!st && !s->logs.dir)
                st = table_logs_open(s->dir, true, &s->logs, err);
        if (!st)
                st = tables_load(&s->logs, true, before, &s->tables, err);
        if (st)
                return st;
        tables_unref(before);
        s->flushed = s->tables->flushed;
        head_drop(s, s->flushed);
        return ST_OK;
}

enum status store_show(struct profile_store *s, struct error *err)
{
        struct tables *now, *before = s->tables;
        enum status st = tables_load(&s->logs, false, before, &now, err);

        if (st)
                return st;
        pthread_mutex_lock(&s->lock);
        s->tables = now;
        s->flushed = now->flushed;
        head_drop(s, now->flushed);
        pthread_mutex_unlock(&s->lock);
        tables_unref(before);
        return ST_OK;
}

/* A flush that committed its samples may have failed before it noted whose they are. */
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

/* What is read back may not be durable yet: the failure may have been that of a sync. */
enum status store_catch_up(struct profile_store *s, struct error *err)
{
        struct tables *now;
        enum status st;

        if (!s->behind)
                return ST_OK;
        known_rows_deinit(&s->known);
        st = file_sync_filesystem(s->dir, err);
        if (!st)
                st = tables_load(&s->logs, true, s->tables, &now, err);
        if (st)
                return st;
        st = remember_flushed(s, now->flushed, err);
        tables_unref(now);
        if (!st)
                st = store_show(s, err);
        if (!st)
                s->behind = false;
        return st;
}

enum status profile_store_open(const char *dir, const struct profile_store_options *options,
                               struct profile_store **ret, struct error *err)
{
        struct profile_store *s = calloc(1, sizeof *s);
        enum status st;

        if (!s)
                return error_no_memory(err);
        s->lock_fd = -1;
        set_options(s, options);
        pthread_mutex_init(&s->healer, NULL);
        pthread_mutex_init(&s->writer, NULL);
        pthread_mutex_init(&s->lock, NULL);
        pthread_mutex_init(&s->health_lock, NULL);
        pthread_cond_init(&s->wake, NULL);
        s->dir = strdup(dir);
        if (!s->dir)
                st = error_no_memory(err);
        else
                st = s->options.read_only ? store_reload(s, err) : open_to_write(s, err);
        if (st == ST_NOT_FOUND && s->options.read_only)
                error_set(err, st, "'%s' holds no profiles: no tables in it", dir);
        if (st)
                profile_store_close(s);
        else
                *ret = s;
        return st;
}

void profile_store_close(struct profile_store *s)
{
        if (!s)
                return;
        if (s->thread_runs) {
                pthread_mutex_lock(&s->lock);
                s->stopping = true;
                pthread_cond_signal(&s->wake);
                pthread_mutex_unlock(&s->lock);
                pthread_join(s->thread, NULL);
        }
        head_close(s);
        tables_unref(s->tables);
        table_logs_close(&s->logs);
        known_rows_deinit(&s->known);
        if (s->lock_fd >= 0)
                close(s->lock_fd);
        pthread_cond_destroy(&s->wake);
        pthread_mutex_destroy(&s->lock);
        pthread_mutex_destroy(&s->health_lock);
        pthread_mutex_destroy(&s->writer);
        pthread_mutex_destroy(&s->healer);
        free(s->dir);
        free(s);
}

enum status profile_store_flush(struct profile_store *s, struct error *err)
{
        if (s->options.read_only)
                return error_set(err, ST_USAGE, "'%s' is open for reading only", s->dir);
        return flush_once(s, err);
}
