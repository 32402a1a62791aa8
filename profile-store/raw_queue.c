/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-store/raw_queue.h"

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <string.h>
#include <sys/uio.h>

#include "common/file.h"
#include "common/limits.h"

struct segment {
        uint64_t first, last; /* positions; last < first while it is empty */
        uint64_t bytes;
};

struct raw_queue {
        char *dir;
        pthread_mutex_t lock;
        pthread_cond_t changed;
        struct segment *segments; /* by position; the last one is written to while fd >= 0 */
        size_t segment_count;
        int fd;
        uint64_t written, synced; /* positions */
        bool syncing;             /* somebody is in fdatasync() without the lock; fd stays open */
        struct error failure;     /* code is not ST_OK: refuse everything */
};

static char *segment_path(const char *dir, uint64_t first, const char *suffix)
{
        char *ret;

        return asprintf(&ret, "%s/%020" PRIu64 ".queue%s", dir, first, suffix) < 0 ? NULL : ret;
}

static enum status add_segment(struct raw_queue *q, struct segment segment, struct error *err)
{
        struct segment *more = reallocarray(q->segments, q->segment_count + 1, sizeof *more);

        if (!more)
                return error_no_memory(err);
        q->segments = more;
        q->segments[q->segment_count++] = segment;
        return ST_OK;
}

/* ---- open ---------------------------------------------------------------- */

static int by_first(const void *a, const void *b)
{
        const struct segment *x = a, *y = b;

        return (x->first > y->first) - (x->first < y->first);
}

static bool parse_name(const char *name, uint64_t *ret)
{
        uint64_t v = 0;

        if (strlen(name) != 26 || strcmp(name + 20, ".queue") != 0)
                return false;
        for (int i = 0; i < 20; i++) {
                if (name[i] < '0' || name[i] > '9' || __builtin_mul_overflow(v, 10, &v) ||
                    __builtin_add_overflow(v, (uint64_t)(name[i] - '0'), &v))
                        return false;
        }
        *ret = v;
        return true;
}

static enum status list_segments(struct raw_queue *q, bool read_only, struct error *err)
{
        _cleanup_closedir_ DIR *d = opendir(q->dir);
        struct dirent *e;

        if (!d)
                return errno == ENOENT && read_only ? ST_OK : error_os(err, errno, "cannot list '%s'", q->dir);
        while ((e = readdir(d))) {
                struct segment s = { 0 };

                if (parse_name(e->d_name, &s.first)) {
                        enum status st = add_segment(q, s, err);

                        if (st)
                                return st;
                } else if (!read_only && strncmp(e->d_name, ".tmp-", 5) == 0) {
                        unlinkat(dirfd(d), e->d_name, 0);
                }
        }
        if (q->segment_count)
                qsort(q->segments, q->segment_count, sizeof *q->segments, by_first);
        return ST_OK;
}

static enum status set_aside(const char *path, const void *tail, size_t n, struct error *err)
{
        _cleanup_free_ char *aside = NULL;

        if (asprintf(&aside, "%s.damaged", path) < 0)
                return error_no_memory(err);
        return file_write_durable(aside, tail, n, err);
}

static enum status cut(const char *path, uint64_t size, struct error *err)
{
        _cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);

        if (fd < 0 || ftruncate(fd, (off_t)size) < 0 || fdatasync(fd) < 0)
                return error_os(err, errno, "cannot cut the torn tail of '%s'", path);
        return ST_OK;
}

struct opening {
        struct raw_queue *q;
        bool read_only;
        raw_queue_replay *replay;
        void *context;
        struct raw_queue_report report;
};

/* Reads one segment; *keep_ret says whether it holds records. */
static enum status open_segment(struct opening *o, struct segment *segment, bool is_last, bool *keep_ret,
                                struct error *err)
{
        _cleanup_free_ char *path = segment_path(o->q->dir, segment->first, "");
        _cleanup_buf_ struct buf bytes;
        struct raw_segment s = { 0 };
        struct raw_record record;
        enum status st;

        buf_init(&bytes, LIMIT_QUEUE_SEGMENT_BYTES + LIMIT_QUEUE_RECORD_BYTES);
        if (!path)
                return error_no_memory(err);
        st = file_read(path, &bytes, err);
        if (st == ST_NOT_FOUND && o->read_only)
                return ST_OK; /* flushed and unlinked since it was listed */
        if (st)
                return st;
        st = raw_segment_begin(&s, bytes.data, bytes.size, path, err);
        if (st == ST_BAD_DATA)
                s.valid_end = 0;
        else if (st)
                return st;
        else if (s.next_position != segment->first)
                return error_set(err, ST_BAD_DATA, "'%s' says it begins at position %" PRIu64
                                 "; give it its own name back", path, s.next_position);
        while (!st && raw_segment_next(&s, &record)) {
                st = o->replay(o->context, &record, err);
                if (st)
                        return st;
                segment->last = record.position;
                o->q->written = record.position > o->q->written ? record.position : o->q->written;
                *keep_ret = true;
        }
        segment->bytes = s.valid_end;
        if (s.valid_end == bytes.size && *keep_ret)
                return ST_OK;
        if (!is_last || !s.valid_end)
                o->report.damaged_segments++;
        else
                o->report.torn_bytes += bytes.size - s.valid_end;
        if (o->read_only)
                return ST_OK;
        if (!is_last || !s.valid_end) {
                st = set_aside(path, bytes.data + s.valid_end, bytes.size - s.valid_end, err);
                if (st)
                        return st;
        }
        if (*keep_ret)
                return cut(path, s.valid_end, err);
        return unlink(path) < 0 ? error_os(err, errno, "cannot unlink '%s'", path) : ST_OK;
}

enum status raw_queue_open(const char *dir, bool read_only, uint64_t flushed, raw_queue_replay *replay, void *context,
                           struct raw_queue **ret, struct raw_queue_report *report_ret, struct error *err)
{
        struct raw_queue *q = calloc(1, sizeof *q);
        struct opening o = { .q = q, .read_only = read_only, .replay = replay, .context = context };
        size_t kept = 0;
        enum status st = ST_OK;

        if (!q)
                return error_no_memory(err);
        q->fd = -1;
        q->written = flushed;
        pthread_mutex_init(&q->lock, NULL);
        pthread_cond_init(&q->changed, NULL);
        q->dir = strdup(dir);
        if (!q->dir)
                st = error_no_memory(err);
        if (!st && !read_only)
                st = file_make_dirs(dir, err);
        if (!st)
                st = list_segments(q, read_only, err);
        for (size_t i = 0; !st && i < q->segment_count; i++) {
                bool keep = false;

                st = open_segment(&o, &q->segments[i], i + 1 == q->segment_count, &keep, err);
                if (!st && keep)
                        q->segments[kept++] = q->segments[i];
        }
        if (st) {
                raw_queue_close(q);
                return st;
        }
        q->segment_count = kept;
        q->synced = q->written;
        if (report_ret)
                *report_ret = o.report;
        *ret = q;
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
        free(q->dir);
        free(q);
}

/* ---- write, sync --------------------------------------------------------- */

static enum status refuse(const struct raw_queue *q, struct error *err)
{
        return error_set(err, q->failure.code, "the raw queue takes nothing until the service is restarted: %s",
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
        const struct segment *segment = &q->segments[q->segment_count - 1];
        _cleanup_free_ char *path = NULL;

        if (segment->last >= segment->first)
                return ST_OK;
        path = segment_path(q->dir, segment->first, "");
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
        _cleanup_free_ char *path = segment_path(q->dir, first, "");
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
        st = add_segment(q, (struct segment){ .first = first, .last = first - 1, .bytes = sizeof header }, err);
        if (st) {
                close(q->fd);
                q->fd = -1;
        }
        return st;
}

static enum status write_record(struct raw_queue *q, const struct raw_record *record, struct error *err)
{
        struct segment *segment = &q->segments[q->segment_count - 1];
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

enum status raw_queue_seal(struct raw_queue *q, uint64_t *position_ret, struct error *err)
{
        enum status st;

        pthread_mutex_lock(&q->lock);
        st = end_segment(q, err);
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
                _cleanup_free_ char *path = segment_path(q->dir, q->segments[done].first, "");

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

uint64_t raw_queue_bytes(struct raw_queue *q)
{
        uint64_t ret = 0;

        pthread_mutex_lock(&q->lock);
        for (size_t i = 0; i < q->segment_count; i++)
                ret += q->segments[i].bytes;
        pthread_mutex_unlock(&q->lock);
        return ret;
}
