/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-store/raw_queue.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "common/array.h"
#include "common/file.h"
#include "common/limits.h"
#include "profile-store/raw_queue_internal.h"

char *raw_queue_segment_path(const char *dir, uint64_t first, const char *suffix)
{
        char *ret;

        return asprintf(&ret, "%s/%020" PRIu64 ".queue%s", dir, first, suffix) < 0 ? NULL : ret;
}

enum status raw_queue_add_segment(struct raw_queue *q, struct raw_queue_segment segment, struct error *err)
{
        struct raw_queue_segment *more = reallocarray(q->segments, q->segment_count + 1, sizeof *more);

        if (!more)
                return error_no_memory(err);
        q->segments = more;
        q->segments[q->segment_count++] = segment;
        return ST_OK;
}

void raw_queue_close(struct raw_queue *q)
{
        if (!q)
                return;
        if (q->fd >= 0)
                close(q->fd);
        pthread_cond_destroy(&q->changed);
        pthread_mutex_destroy(&q->lock);
        free(q->segments);
        free(q->gaps);
        free(q->dir);
        free(q);
}

/* ---- write, sync --------------------------------------------------------- */

static enum status refuse(const struct raw_queue *q, struct error *err)
{
        return error_set(err, q->failure.code, "the raw queue accepts no batch until it has recovered: %s",
                         q->failure.text);
}

static enum status fail(struct raw_queue *q, int os_errno, const char *what, struct error *err)
{
        error_os(&q->failure, os_errno, "cannot %s the raw queue in '%s'", what, q->dir);
        pthread_cond_broadcast(&q->changed);
        return refuse(q, err);
}

/* An empty segment's name will be used again: by the next one. */
static enum status drop_if_empty(struct raw_queue *q, struct error *err)
{
        const struct raw_queue_segment *segment = &q->segments[q->segment_count - 1];
        _cleanup_free_ char *path = NULL;

        if (segment->last >= segment->first)
                return ST_OK;
        path = raw_queue_segment_path(q->dir, segment->first, "");
        if (!path)
                return error_no_memory(err);
        if (unlink(path) < 0 && errno != ENOENT)
                return error_os(err, errno, "cannot unlink '%s'", path);
        q->segment_count--;
        return ST_OK;
}

/* Locked. Syncs the current segment and closes it. */
static enum status end_segment(struct raw_queue *q, struct error *err)
{
        while (q->syncing)
                pthread_cond_wait(&q->changed, &q->lock);
        if (q->failure.code)
                return refuse(q, err);
        if (q->fd < 0)
                return ST_OK;
        if (q->synced < q->written && fdatasync(q->fd) < 0)
                return fail(q, errno, "sync", err);
        q->synced = q->written;
        pthread_cond_broadcast(&q->changed);
        close(q->fd);
        q->fd = -1;
        return drop_if_empty(q, err);
}

/* Locked. */
static enum status begin_segment(struct raw_queue *q, struct error *err)
{
        uint64_t first = q->written + 1;
        uint8_t header[RAW_SEGMENT_HEADER_BYTES];
        _cleanup_free_ char *path = raw_queue_segment_path(q->dir, first, "");
        enum status st;

        if (!path)
                return error_no_memory(err);
        raw_segment_header(first, header);
        st = file_write_durable(path, header, sizeof header, err);
        if (st)
                return st;
        q->fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
        if (q->fd < 0)
                return error_os(err, errno, "cannot open '%s'", path);
        st = raw_queue_add_segment(
                q, (struct raw_queue_segment){ .first = first, .last = first - 1, .bytes = sizeof header }, err);
        if (st) {
                close(q->fd);
                q->fd = -1;
        }
        return st;
}

static enum status write_record(struct raw_queue *q, const struct raw_record *record, struct error *err)
{
        struct raw_queue_segment *segment = &q->segments[q->segment_count - 1];
        size_t size = RAW_RECORD_HEADER_BYTES + (size_t)record->payload_size;
        uint8_t header[RAW_RECORD_HEADER_BYTES];
        enum status st;

        raw_record_header(record, header);
        st = file_write_all(q->fd, header, sizeof header, q->dir, err);
        if (!st)
                st = file_write_all(q->fd, record->payload, record->payload_size, q->dir, err);
        if (st) {
                if (ftruncate(q->fd, (off_t)segment->bytes) < 0)
                        return fail(q, errno, "cut a half-written record off", err);
                return st;
        }
        segment->bytes += size;
        segment->last = record->position;
        q->written = record->position;
        return ST_OK;
}

enum status raw_queue_write(struct raw_queue *q, struct raw_record *record, struct error *err)
{
        enum status st = ST_OK;

        if (record->payload_size > LIMIT_QUEUE_RECORD_BYTES)
                return error_set(err, ST_TOO_BIG, "a batch of %u bytes is over the raw queue's limit of %zu",
                                 record->payload_size, (size_t)LIMIT_QUEUE_RECORD_BYTES);
        pthread_mutex_lock(&q->lock);
        if (q->failure.code)
                st = refuse(q, err);
        if (!st && q->fd >= 0 && q->segments[q->segment_count - 1].bytes >= LIMIT_QUEUE_SEGMENT_BYTES)
                st = end_segment(q, err);
        if (!st && q->fd < 0)
                st = begin_segment(q, err);
        if (!st) {
                record->position = q->written + 1;
                st = write_record(q, record, err);
        }
        pthread_mutex_unlock(&q->lock);
        return st;
}

static bool is_in_gap(const struct raw_queue *q, uint64_t position)
{
        for (size_t i = 0; i < q->gap_count; i++) {
                if (position >= q->gaps[i].first && position <= q->gaps[i].last)
                        return true;
        }
        return false;
}

enum status raw_queue_sync(struct raw_queue *q, uint64_t position, struct error *err)
{
        enum status st = ST_OK;

        pthread_mutex_lock(&q->lock);
        while (q->synced < position && !q->failure.code) {
                uint64_t target = q->written;
                int fd = q->fd, failed;

                if (q->syncing) {
                        pthread_cond_wait(&q->changed, &q->lock);
                        continue;
                }
                q->syncing = true;
                pthread_mutex_unlock(&q->lock);
                failed = fdatasync(fd) < 0 ? errno : 0;
                pthread_mutex_lock(&q->lock);
                q->syncing = false;
                if (failed)
                        fail(q, failed, "sync", NULL);
                else if (target > q->synced)
                        q->synced = target;
                pthread_cond_broadcast(&q->changed);
        }
        if (q->synced < position)
                st = refuse(q, err);
        else if (is_in_gap(q, position))
                st = error_set(err, ST_OS, "the batch was given up when the raw queue in '%s' recovered from a failed "
                                           "sync; send it again", q->dir);
        pthread_mutex_unlock(&q->lock);
        return st;
}

uint64_t raw_queue_synced(struct raw_queue *q)
{
        uint64_t ret;

        pthread_mutex_lock(&q->lock);
        ret = q->synced;
        pthread_mutex_unlock(&q->lock);
        return ret;
}

/* ---- seal, release ------------------------------------------------------- */

/* Locked, after a failure: close the segment without a sync, as if it ended at the last synced position. */
static void abandon_segment(struct raw_queue *q)
{
        struct raw_queue_segment *segment;

        while (q->syncing)
                pthread_cond_wait(&q->changed, &q->lock);
        if (q->fd < 0)
                return;
        close(q->fd);
        q->fd = -1;
        segment = &q->segments[q->segment_count - 1];
        if (segment->last > q->synced)
                segment->last = q->synced;
}

enum status raw_queue_seal(struct raw_queue *q, uint64_t *position_ret, struct error *err)
{
        enum status st;

        pthread_mutex_lock(&q->lock);
        st = end_segment(q, err);
        if (q->failure.code) {
                abandon_segment(q);
                st = ST_OK;
        }
        if (!st)
                *position_ret = q->synced;
        pthread_mutex_unlock(&q->lock);
        return st;
}

enum status raw_queue_release(struct raw_queue *q, uint64_t position, struct error *err)
{
        enum status st = ST_OK;
        size_t done = 0;

        pthread_mutex_lock(&q->lock);
        while (!st && done < q->segment_count && q->segments[done].last <= position &&
               (q->fd < 0 || done + 1 < q->segment_count)) {
                _cleanup_free_ char *path = raw_queue_segment_path(q->dir, q->segments[done].first, "");

                if (!path)
                        st = error_no_memory(err);
                else if (unlink(path) < 0 && errno != ENOENT)
                        st = error_os(err, errno, "cannot unlink '%s'", path);
                else
                        done++;
        }
        if (done)
                memmove(q->segments, q->segments + done, (q->segment_count - done) * sizeof *q->segments);
        q->segment_count -= done;
        pthread_mutex_unlock(&q->lock);
        return st;
}

bool raw_queue_has_failed(struct raw_queue *q)
{
        bool ret;

        pthread_mutex_lock(&q->lock);
        ret = q->failure.code != ST_OK;
        pthread_mutex_unlock(&q->lock);
        return ret;
}

/*
 * The unlinked names are synced first: the abandoned segment must not come back
 * beside one that is written from now on.
 */
static enum status recover_locked(struct raw_queue *q, struct error *err)
{
        _cleanup_free_ char *any = path_join(q->dir, "lock");
        enum status st;

        if (!q->failure.code)
                return ST_OK;
        if (q->fd >= 0 || q->segment_count)
                return error_set(err, ST_BUSY, "%s", q->failure.text);
        if (!any || !array_reserve(&q->gaps, &q->gap_capacity, q->gap_count))
                return error_no_memory(err);
        st = file_sync_parent(any, err);
        if (st)
                return st;
        if (q->written > q->synced)
                q->gaps[q->gap_count++] = (struct raw_queue_gap){ q->synced + 1, q->written };
        q->synced = q->written;
        q->failure = (struct error){ 0 };
        return ST_OK;
}

enum status raw_queue_recover(struct raw_queue *q, struct error *err)
{
        enum status st;

        pthread_mutex_lock(&q->lock);
        st = recover_locked(q, err);
        pthread_mutex_unlock(&q->lock);
        return st;
}

enum status raw_queue_read(struct raw_queue *q, uint64_t position, struct buf *file, struct raw_record *ret,
                           struct error *err)
{
        _cleanup_free_ char *path = NULL;
        struct raw_segment s = { 0 };
        uint64_t first = 0;
        enum status st;

        pthread_mutex_lock(&q->lock);
        for (size_t i = 0; i < q->segment_count; i++) {
                if (position >= q->segments[i].first && position <= q->segments[i].last)
                        first = q->segments[i].first;
        }
        pthread_mutex_unlock(&q->lock);
        if (!first)
                return error_set(err, ST_NOT_FOUND, "no segment in '%s' has position %ju", q->dir, (uintmax_t)position);
        path = raw_queue_segment_path(q->dir, first, "");
        st = path ? file_read(path, file, err) : error_no_memory(err);
        if (!st)
                st = raw_segment_begin(&s, file->data, file->size, path, err);
        while (!st && raw_segment_next(&s, ret)) {
                if (ret->position == position)
                        return ST_OK;
        }
        return st ? st : error_set(err, ST_BAD_DATA, "'%s' does not have position %ju any more", path,
                                   (uintmax_t)position);
}

uint64_t raw_queue_bytes(struct raw_queue *q)
{
        uint64_t ret = 0;

        pthread_mutex_lock(&q->lock);
        for (size_t i = 0; i < q->segment_count; i++)
                ret += q->segments[i].bytes;
        pthread_mutex_unlock(&q->lock);
        return ret;
}
