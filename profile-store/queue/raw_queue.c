/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State: the list of segments by position, of which the last is open for writing while fd >= 0, and two positions,
 * synced <= written. A batch is acknowledged once its position is at most `synced`.
 *
 * Group commit: in raw_queue_sync() one caller runs fdatasync() without the lock for all positions written before,
 * with `syncing` set; the others wait for `changed`. Whatever closes fd waits until `syncing` is false.
 *
 * A failed sync or truncation, or a segment that cannot be created although the disk has room, sets `failure`; writes
 * are then refused until raw_queue_recover(). Recovery advances `synced` past positions that were never durable;
 * `gaps` remembers them, so that a raw_queue_sync() for one of them reports the loss.
 *
 * In the file: writing, including the start and end of segments; sync; seal, release and recovery; reading of one
 * record; open, with replay and repair of segments; refresh of a read-only queue.
 * Locks: q->lock for all of the state, held also during writes and the syncs of whole segments, but not during group
 * commits. raw_queue_open(), raw_queue_refresh() and raw_queue_close() do not take it.
 */
#include "profile-store/queue/raw_queue.h"

#include <assert.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>

#include "common/files/file.h"
#include "common/limits.h"
#include "common/memory/array.h"

/* The first record that begins in a part of a segment, so that a visit need not read the segment from its beginning. */
struct raw_queue_mark {
        uint32_t number; /* of the record in the segment, from 0 */
        uint32_t offset; /* 0: none begins there */
};
#define MARK_BYTES KiB(256)
#define MARK_COUNT (LIMIT_QUEUE_SEGMENT_BYTES / MARK_BYTES)

struct raw_queue_segment {
        uint64_t first, last; /* positions; last < first when empty */
        uint64_t bytes;
        struct raw_queue_mark marks[MARK_COUNT];
};

/* Positions that were written but never acknowledged, dropped by a recovery. */
struct raw_queue_gap {
        uint64_t first, last;
};

struct raw_queue {
        char *dir;
        pthread_mutex_t lock;
        pthread_cond_t changed;
        struct raw_queue_segment *segments; /* by position; the last one is open for writing while fd >= 0 */
        size_t segment_count, segment_capacity;
        int fd;
        uint64_t written, synced;   /* positions; both may be behind the last record */
        uint64_t recorded;          /* position of the last record, of those that are kept or were released */
        bool syncing;               /* a thread is in fdatasync() without the lock; fd must stay open */
        struct error failure;       /* if code is not ST_OK, all writes are refused */
        struct raw_queue_gap *gaps; /* one per recovery that dropped positions */
        size_t gap_count, gap_capacity;
};

/* DIR/NNNN.queueSUFFIX, owned. */
static char *make_segment_path(const char *dir, uint64_t first, const char *suffix)
{
        char *ret;

        return asprintf(&ret, "%s/%020" PRIu64 ".queue%s", dir, first, suffix) < 0 ? NULL : ret;
}

static enum status append_segment(struct raw_queue *q, const struct raw_queue_segment *segment, struct error *err)
{
        if (!array_reserve(&q->segments, &q->segment_capacity, q->segment_count))
                return error_no_memory(err);
        q->segments[q->segment_count++] = *segment;
        return ST_OK;
}

static void mark_record(struct raw_queue_segment *s, uint64_t position, uint64_t offset)
{
        const uint64_t part = offset / MARK_BYTES;

        if (part < MARK_COUNT && !s->marks[part].offset)
                s->marks[part] = (struct raw_queue_mark){ (uint32_t)(position - s->first), (uint32_t)offset };
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

static enum status report_queue_failure(const struct raw_queue *q, struct error *err)
{
        return error_set(err, q->failure.code, "the raw queue accepts no batch until it has recovered: %s",
                         q->failure.text);
}

static enum status set_queue_failure(struct raw_queue *q, int os_errno, const char *what, struct error *err)
{
        error_os(&q->failure, os_errno, "cannot %s the raw queue in '%s'", what, q->dir);
        pthread_cond_broadcast(&q->changed);
        return report_queue_failure(q, err);
}

/* The next segment reuses the name of an empty one. */
static enum status drop_empty_segment(struct raw_queue *q, struct error *err)
{
        const struct raw_queue_segment *segment = &q->segments[q->segment_count - 1];
        _cleanup_free_ char *path = NULL;

        if (segment->last >= segment->first)
                return ST_OK;
        path = make_segment_path(q->dir, segment->first, "");
        if (!path)
                return error_no_memory(err);
        if (unlink(path) < 0 && errno != ENOENT)
                return error_os(err, errno, "cannot unlink '%s'", path);
        q->segment_count--;
        return ST_OK;
}

/* Sync the current segment and close it. Caller holds the lock. */
static enum status end_queue_segment(struct raw_queue *q, struct error *err)
{
        while (q->syncing)
                pthread_cond_wait(&q->changed, &q->lock);
        if (q->failure.code)
                return report_queue_failure(q, err);
        if (q->fd < 0)
                return ST_OK;
        if (q->synced < q->written && file_sync_timed(q->fd, SYNC_QUEUE) < 0)
                return set_queue_failure(q, errno, "sync", err);
        q->synced = q->written;
        pthread_cond_broadcast(&q->changed);
        close(q->fd);
        q->fd = -1;
        return drop_empty_segment(q, err);
}

/* Caller holds the lock. */
static enum status begin_queue_segment(struct raw_queue *q, struct error *err)
{
        uint64_t first = q->written + 1;
        uint8_t header[RAW_SEGMENT_HEADER_BYTES];
        _cleanup_free_ char *path = make_segment_path(q->dir, first, "");
        enum status st;

        if (!path)
                return error_no_memory(err);
        raw_segment_encode_header(first, header);
        st = file_write_durable(path, header, sizeof header, err);
        if (st)
                return st;
        q->fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
        if (q->fd < 0)
                return error_os(err, errno, "cannot open '%s'", path);
        st = append_segment(q, &(struct raw_queue_segment){ .first = first, .last = first - 1, .bytes = sizeof header },
                            err);
        if (st) {
                close(q->fd);
                q->fd = -1;
        }
        return st;
}

/* Unless the disk is full, a failure makes the queue refuse batches until recovery. Caller holds the lock. */
static enum status begin_segment_or_fail(struct raw_queue *q, struct error *err)
{
        struct error local = { 0 };
        enum status st = begin_queue_segment(q, &local);

        if (st == ST_OS && local.os_errno != ENOSPC)
                q->failure = local;
        if (st && err)
                *err = local;
        return st;
}

static enum status write_queue_record(struct raw_queue *q, const struct raw_record *record, struct error *err)
{
        struct raw_queue_segment *segment = &q->segments[q->segment_count - 1];
        size_t size = RAW_RECORD_HEADER_BYTES + (size_t)record->payload_size;
        uint8_t header[RAW_RECORD_HEADER_BYTES];
        enum status st;

        assert(q->fd >= 0 && record->position == q->written + 1 && q->synced <= q->written);
        raw_record_encode_header(record, header);
        st = file_write_all(q->fd, header, sizeof header, q->dir, err);
        if (!st)
                st = file_write_all(q->fd, record->payload, record->payload_size, q->dir, err);
        if (st) {
                if (ftruncate(q->fd, (off_t)segment->bytes) < 0)
                        return set_queue_failure(q, errno, "truncate a partial record in", err);
                return st;
        }
        mark_record(segment, record->position, segment->bytes);
        segment->bytes += size;
        segment->last = record->position;
        q->written = q->recorded = record->position;
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
                st = report_queue_failure(q, err);
        if (!st && q->fd >= 0 && q->segments[q->segment_count - 1].bytes >= LIMIT_QUEUE_SEGMENT_BYTES)
                st = end_queue_segment(q, err);
        if (!st && q->fd < 0)
                st = begin_segment_or_fail(q, err);
        if (!st) {
                record->position = q->written + 1;
                st = write_queue_record(q, record, err);
        }
        pthread_mutex_unlock(&q->lock);
        return st;
}

static bool is_given_up(const struct raw_queue *q, uint64_t position)
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
                failed = file_sync_timed(fd, SYNC_QUEUE) < 0 ? errno : 0;
                pthread_mutex_lock(&q->lock);
                q->syncing = false;
                if (failed)
                        set_queue_failure(q, failed, "sync", NULL);
                else if (target > q->synced)
                        q->synced = target;
                pthread_cond_broadcast(&q->changed);
        }
        if (q->synced < position)
                st = report_queue_failure(q, err);
        else if (is_given_up(q, position))
                st = error_set(err, ST_OS,
                               "the batch was dropped when the raw queue in '%s' recovered from a failed "
                               "sync; send it again",
                               q->dir);
        pthread_mutex_unlock(&q->lock);
        return st;
}

/* Caller holds the lock. */
static uint64_t find_last_durable(const struct raw_queue *q)
{
        return q->recorded < q->synced ? q->recorded : q->synced;
}

uint64_t raw_queue_get_synced(struct raw_queue *q)
{
        uint64_t ret;

        pthread_mutex_lock(&q->lock);
        ret = find_last_durable(q);
        pthread_mutex_unlock(&q->lock);
        return ret;
}

/* ---- seal, release ------------------------------------------------------- */

/* After a failure: close the segment without a sync, ending it at the last synced position. Caller holds the lock. */
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
        st = end_queue_segment(q, err);
        if (q->failure.code) {
                abandon_segment(q);
                st = ST_OK;
        }
        if (!st)
                *position_ret = find_last_durable(q);
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
                _cleanup_free_ char *path = make_segment_path(q->dir, q->segments[done].first, "");

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
 * Unlinked names are synced first: the abandoned segment must not reappear beside newly written ones. Beginning a
 * segment proves that batches can be written again.
 */
static enum status recover_under_lock(struct raw_queue *q, struct error *err)
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
        q->recorded = find_last_durable(q);
        q->synced = q->written;
        st = begin_queue_segment(q, err);
        if (!st)
                q->failure = (struct error){ 0 };
        return st;
}

enum status raw_queue_recover(struct raw_queue *q, struct error *err)
{
        enum status st;

        pthread_mutex_lock(&q->lock);
        st = recover_under_lock(q, err);
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
        path = make_segment_path(q->dir, first, "");
        st = path ? file_read(path, file, err) : error_no_memory(err);
        if (!st)
                st = raw_segment_begin(&s, file->data, file->size, path, err);
        while (!st && raw_segment_next(&s, ret)) {
                if (ret->position == position)
                        return ST_OK;
        }
        return st ? st : error_set(err, ST_BAD_DATA, "'%s' no longer has position %ju", path, (uintmax_t)position);
}

/* Records of one segment that a visit reads, as they were when the lock was held: a writer may append meanwhile. */
struct visited_part {
        uint64_t segment; /* its first position */
        uint64_t first, last;
        uint64_t begin, end; /* offsets; the record of `last` ends at or before `end` */
};

/* The part of a segment with the positions in (after, until]. Caller holds the lock. */
static struct visited_part find_visited_part(const struct raw_queue_segment *s, uint64_t after, uint64_t until)
{
        struct visited_part ret = { .segment = s->first,
                                    .first = s->first,
                                    .last = s->last < until ? s->last : until,
                                    .begin = RAW_SEGMENT_HEADER_BYTES,
                                    .end = s->bytes };

        for (size_t i = 0; i < MARK_COUNT; i++) {
                const struct raw_queue_mark *m = &s->marks[i];

                if (m->offset && s->first + m->number <= after + 1) {
                        ret.first = s->first + m->number;
                        ret.begin = m->offset;
                } else if (m->offset && s->first + m->number > ret.last) {
                        ret.end = m->offset;
                        break;
                }
        }
        return ret;
}

/* The part with the first position above `after`. @return false: there is none up to `until`. */
static bool find_next_visited_part(struct raw_queue *q, uint64_t after, uint64_t until, struct visited_part *ret)
{
        bool found = false;

        pthread_mutex_lock(&q->lock);
        for (size_t i = 0; !found && i < q->segment_count; i++) {
                const struct raw_queue_segment *s = &q->segments[i];

                if (s->last <= after || s->last < s->first)
                        continue;
                if (s->first > until)
                        break;
                *ret = find_visited_part(s, after, until);
                found = true;
        }
        pthread_mutex_unlock(&q->lock);
        return found;
}

/* @return false: the segment was unlinked, which is no failure. */
static enum status read_visited_part(const char *path, const struct visited_part *part, struct buf *to,
                                     bool *is_there_ret, struct error *err)
{
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
        enum status st;

        *is_there_ret = fd >= 0;
        if (fd < 0)
                return errno == ENOENT ? ST_OK : error_os(err, errno, "cannot open '%s'", path);
        st = buf_reserve(to, part->end - part->begin) ? ST_OK : buf_status(to, err, path);
        while (!st && to->size < part->end - part->begin) {
                ssize_t n = pread(fd, to->data + to->size, part->end - part->begin - to->size,
                                  (off_t)(part->begin + to->size));

                if (n < 0 && errno != EINTR)
                        st = error_os(err, errno, "cannot read '%s'", path);
                else if (n == 0)
                        break; /* reported with its first record that is missing */
                else if (n > 0)
                        to->size += (size_t)n;
        }
        return st;
}

static enum status visit_part(const struct raw_queue *q, const struct visited_part *part, uint64_t after,
                              raw_queue_visitor *visit, void *context, bool *end_ret, struct error *err)
{
        _cleanup_free_ char *path = make_segment_path(q->dir, part->segment, "");
        _cleanup_buf_ struct buf bytes;
        struct raw_segment s;
        struct raw_record record = { 0 };
        bool is_there = false;
        enum status st;

        buf_init_budget(&bytes, LIMIT_QUEUE_SEGMENT_FILE_BYTES, MEMORY_ANSWERS);
        if (!path)
                return error_no_memory(err);
        st = read_visited_part(path, part, &bytes, &is_there, err);
        if (st || !is_there)
                return st;
        raw_segment_continue(&s, bytes.data, bytes.size, part->first);
        while (!st && !*end_ret && s.next_position <= part->last && raw_segment_next(&s, &record))
                if (record.position > after)
                        st = visit(context, &record, end_ret, err);
        if (!st && !*end_ret && s.next_position <= part->last)
                return error_set(err, ST_BAD_DATA, "'%s' no longer has position %ju", path, (uintmax_t)s.next_position);
        return st;
}

enum status raw_queue_visit(struct raw_queue *q, uint64_t after, uint64_t until, raw_queue_visitor *visit,
                            void *context, struct error *err)
{
        struct visited_part part;
        bool is_end = false;
        enum status st = ST_OK;

        while (!st && !is_end && after < until && find_next_visited_part(q, after, until, &part)) {
                st = visit_part(q, &part, after, visit, context, &is_end, err);
                after = part.last;
        }
        return st;
}

uint64_t raw_queue_count_bytes(struct raw_queue *q)
{
        uint64_t ret = 0;

        pthread_mutex_lock(&q->lock);
        for (size_t i = 0; i < q->segment_count; i++)
                ret += q->segments[i].bytes;
        pthread_mutex_unlock(&q->lock);
        return ret;
}

/* ---- open and replay ---- */

static int compare_first_positions(const void *a, const void *b)
{
        const struct raw_queue_segment *x = a, *y = b;

        return (x->first > y->first) - (x->first < y->first);
}

static bool parse_segment_name(const char *name, uint64_t *ret)
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

static enum status list_queue_segments(struct raw_queue *q, bool read_only, struct error *err)
{
        _cleanup_closedir_ DIR *d = opendir(q->dir);
        struct dirent *e;

        if (!d)
                return errno == ENOENT && read_only ? ST_OK : error_os(err, errno, "cannot list '%s'", q->dir);
        while ((e = readdir(d))) {
                struct raw_queue_segment s = { 0 };

                if (parse_segment_name(e->d_name, &s.first)) {
                        enum status st = append_segment(q, &s, err);

                        if (st)
                                return st;
                } else if (!read_only && strncmp(e->d_name, ".tmp-", 5) == 0) {
                        unlinkat(dirfd(d), e->d_name, 0);
                }
        }
        if (q->segment_count)
                qsort(q->segments, q->segment_count, sizeof *q->segments, compare_first_positions);
        return ST_OK;
}

static enum status save_damaged_tail(const char *path, const void *tail, size_t n, struct error *err)
{
        _cleanup_free_ char *aside = NULL;

        if (asprintf(&aside, "%s.damaged", path) < 0)
                return error_no_memory(err);
        return file_write_durable(aside, tail, n, err);
}

/*
 * Intact records that were not synced when the process died are replayed. They are made durable first: if a sender
 * repeats one, the answer is "duplicate".
 */
static enum status sync_segment(const char *path, uint64_t size, bool torn, struct error *err)
{
        _cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);

        if (fd < 0 || (torn && ftruncate(fd, (off_t)size) < 0))
                return error_os(err, errno, "cannot cut the torn tail of '%s'", path);
        return file_sync_timed(fd, SYNC_QUEUE) < 0 ? error_os(err, errno, "cannot sync '%s'", path) : ST_OK;
}

struct opening {
        struct raw_queue *q;
        bool read_only;
        uint64_t known; /* records up to this position were replayed earlier */
        raw_queue_replay *replay;
        void *context;
        struct raw_queue_report report;
};

/* Replay one segment. *keep_ret is set when it has records. */
static enum status replay_segment(struct opening *o, struct raw_queue_segment *segment, bool is_last, bool *keep_ret,
                                  struct error *err)
{
        _cleanup_free_ char *path = make_segment_path(o->q->dir, segment->first, "");
        _cleanup_buf_ struct buf bytes;
        struct raw_segment s = { 0 };
        struct raw_record record;
        size_t record_begin;
        enum status st;

        buf_init(&bytes, LIMIT_QUEUE_SEGMENT_FILE_BYTES);
        if (!path)
                return error_no_memory(err);
        st = file_read(path, &bytes, err);
        if (st == ST_NOT_FOUND && o->read_only)
                return ST_OK; /* flushed and unlinked since the folder was listed */
        if (st)
                return st;
        st = raw_segment_begin(&s, bytes.data, bytes.size, path, err);
        if (st == ST_BAD_DATA)
                s.valid_end = 0;
        else if (st)
                return st;
        else if (s.next_position != segment->first)
                return error_set(err, ST_BAD_DATA,
                                 "'%s' begins at position %" PRIu64
                                 " according to its header; restore its original name",
                                 path, s.next_position);
        while (!st && (record_begin = s.valid_end, raw_segment_next(&s, &record))) {
                mark_record(segment, record.position, record_begin);
                if (record.position > o->known)
                        st = o->replay(o->context, &record, err);
                if (st)
                        return st;
                segment->last = record.position;
                o->q->written = record.position > o->q->written ? record.position : o->q->written;
                *keep_ret = true;
        }
        segment->bytes = s.valid_end;
        if (s.valid_end == bytes.size && *keep_ret)
                return o->read_only ? ST_OK : sync_segment(path, s.valid_end, false, err);
        if (!is_last || !s.valid_end)
                o->report.damaged_segments++;
        else
                o->report.torn_bytes += bytes.size - s.valid_end;
        if (o->read_only)
                return ST_OK;
        if (!is_last || !s.valid_end) {
                st = save_damaged_tail(path, bytes.data + s.valid_end, bytes.size - s.valid_end, err);
                if (st)
                        return st;
        }
        if (*keep_ret)
                return sync_segment(path, s.valid_end, true, err);
        return unlink(path) < 0 ? error_os(err, errno, "cannot unlink '%s'", path) : ST_OK;
}

enum status raw_queue_open(const char *dir, const struct raw_queue_options *options, struct raw_queue **ret,
                           struct raw_queue_report *report_ret, struct error *err)
{
        struct raw_queue *q = calloc(1, sizeof *q);
        struct opening o = {
                .q = q, .read_only = options->read_only, .replay = options->replay, .context = options->context
        };
        size_t kept = 0;
        enum status st = ST_OK;

        if (!q)
                return error_no_memory(err);
        q->fd = -1;
        q->written = options->flushed;
        pthread_mutex_init(&q->lock, NULL);
        pthread_cond_init(&q->changed, NULL);
        q->dir = strdup(dir);
        if (!q->dir)
                st = error_no_memory(err);
        if (!st && !o.read_only)
                st = file_make_dirs(dir, err);
        if (!st)
                st = list_queue_segments(q, o.read_only, err);
        for (size_t i = 0; !st && i < q->segment_count; i++) {
                bool keep = false;

                st = replay_segment(&o, &q->segments[i], i + 1 == q->segment_count, &keep, err);
                if (!st && keep)
                        q->segments[kept++] = q->segments[i];
        }
        if (st) {
                raw_queue_close(q);
                return st;
        }
        q->segment_count = kept;
        q->synced = q->recorded = q->written;
        q->written += q->written ? options->gap : 0;
        if (report_ret)
                *report_ret = o.report;
        *ret = q;
        return ST_OK;
}

/* Read a segment again if it has changed. known: its state at the last read; NULL: never read. */
static enum status refresh_segment(struct opening *o, struct raw_queue_segment *segment,
                                   const struct raw_queue_segment *known, bool *keep_ret, struct error *err)
{
        _cleanup_free_ char *path = make_segment_path(o->q->dir, segment->first, "");
        struct stat st;

        if (!path)
                return error_no_memory(err);
        if (stat(path, &st) < 0)
                return errno == ENOENT ? ST_OK : error_os(err, errno, "cannot read '%s'", path);
        if (known && (uint64_t)st.st_size < known->bytes)
                return error_set(err, ST_BAD_DATA, "'%s' is shorter than before", path);
        if (known && (uint64_t)st.st_size == known->bytes) {
                *segment = *known;
                *keep_ret = true;
                return ST_OK;
        }
        return replay_segment(o, segment, true, keep_ret, err);
}

enum status raw_queue_refresh(struct raw_queue *q, raw_queue_replay *replay, void *context, struct error *err)
{
        struct opening o = { .q = q, .read_only = true, .known = q->written, .replay = replay, .context = context };
        _cleanup_free_ struct raw_queue_segment *before = q->segments;
        size_t before_count = q->segment_count, kept = 0, at = 0;
        enum status st;

        q->segments = NULL;
        q->segment_count = q->segment_capacity = 0;
        st = list_queue_segments(q, true, err);
        for (size_t i = 0; !st && i < q->segment_count; i++) {
                struct raw_queue_segment *segment = &q->segments[i];
                bool keep = false;

                while (at < before_count && before[at].first < segment->first)
                        at++;
                if (at < before_count && before[at].first == segment->first)
                        st = refresh_segment(&o, segment, &before[at], &keep, err);
                else if (segment->first <= o.known)
                        st = error_set(err, ST_BAD_DATA, "positions of the queue in '%s' were reused", q->dir);
                else
                        st = refresh_segment(&o, segment, NULL, &keep, err);
                if (!st && keep)
                        q->segments[kept++] = *segment;
        }
        q->segment_count = kept;
        q->synced = q->recorded = q->written;
        return st;
}
