/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "common/file.h"
#include "common/limits.h"
#include "profile-store/raw_queue_internal.h"

static int by_first(const void *a, const void *b)
{
        const struct raw_queue_segment *x = a, *y = b;

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
                struct raw_queue_segment s = { 0 };

                if (parse_name(e->d_name, &s.first)) {
                        enum status st = raw_queue_add_segment(q, s, err);

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

/*
 * A record that was written and not synced when the process died is as good as
 * any now: its sender may repeat it and be told that it is there. So it is made
 * durable before anybody is told anything.
 */
static enum status settle(const char *path, uint64_t size, bool torn, struct error *err)
{
        _cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);

        if (fd < 0 || (torn && ftruncate(fd, (off_t)size) < 0))
                return error_os(err, errno, "cannot cut the torn tail of '%s'", path);
        return fdatasync(fd) < 0 ? error_os(err, errno, "cannot sync '%s'", path) : ST_OK;
}

struct opening {
        struct raw_queue *q;
        bool read_only;
        raw_queue_replay *replay;
        void *context;
        struct raw_queue_report report;
};

/* Reads one segment; *keep_ret says whether it holds records. */
static enum status open_segment(struct opening *o, struct raw_queue_segment *segment, bool is_last, bool *keep_ret,
                                struct error *err)
{
        _cleanup_free_ char *path = raw_queue_segment_path(o->q->dir, segment->first, "");
        _cleanup_buf_ struct buf bytes;
        struct raw_segment s = { 0 };
        struct raw_record record;
        enum status st;

        buf_init(&bytes, LIMIT_QUEUE_SEGMENT_FILE_BYTES);
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
                return error_set(err, ST_BAD_DATA,
                                 "'%s' says it begins at position %" PRIu64 "; give it its own name back", path,
                                 s.next_position);
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
                return o->read_only ? ST_OK : settle(path, s.valid_end, false, err);
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
                return settle(path, s.valid_end, true, err);
        return unlink(path) < 0 ? error_os(err, errno, "cannot unlink '%s'", path) : ST_OK;
}

enum status raw_queue_open(const char *dir, bool read_only, uint64_t flushed, raw_queue_replay *replay,
                           void *context, struct raw_queue **ret, struct raw_queue_report *report_ret,
                           struct error *err)
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
