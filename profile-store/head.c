/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "common/array.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/limits.h"
#include "common/metrics.h"
#include "profile-store/payload.h"
#include "profile-store/store_internal.h"

static struct metric torn_bytes =
        METRIC_COUNTER("cairn_queue_torn_bytes_total",
                       "Bytes of batches nobody was told about, cut off the raw queue at start.", "");
static struct metric damaged =
        METRIC_COUNTER("cairn_queue_damaged_segments_total",
                       "Raw queue segments that lost confirmed bytes, set aside at start.", "");
static struct metric unreadable = METRIC_COUNTER("cairn_queue_unreadable_batches_total",
                                                 "Batches that could not be decoded at start, set aside.", "");

static uint64_t batch_bytes(const struct batch *b)
{
        return sizeof *b + b->arena.used;
}

/* Room for one more, so that nothing can fail between the write and the batch's place in the head. */
static enum status make_room(struct profile_store *s, struct error *err)
{
        return array_reserve(&s->head, &s->head_capacity, s->head_count) ? ST_OK : error_no_memory(err);
}

static void head_push(struct profile_store *s, struct batch *b)
{
        s->head[s->head_count++] = b;
        s->head_bytes += batch_bytes(b);
}

/* ---- append --------------------------------------------------------------------- */

/* The batch's position if it is queued, UINT64_MAX if it is flushed, 0 if it is new. */
static uint64_t known_position(struct profile_store *s, const struct hash128 *batch_id)
{
        const uint64_t *queued = key_map_find(&s->queued, batch_id);
        uint64_t position = queued ? *queued : 0;

        if (!position && s->ids && batch_ids_has(s->ids, batch_id))
                position = UINT64_MAX;
        return position;
}

static enum status refuse_if_full(const struct profile_store *s, struct error *err)
{
        if (s->head_bytes < s->options.max_queued_bytes)
                return ST_OK;
        return error_set(err, ST_BUSY, "the queue is full: %llu bytes wait to be flushed; send again later",
                         (unsigned long long)s->head_bytes);
}

/* Lock is held. Takes the batch when it returns ST_OK and *position_ret is new. */
static enum status enqueue(struct profile_store *s, struct batch *b, const struct buf *payload, uint64_t *known_ret,
                           struct error *err)
{
        struct raw_record record = { .batch_id = b->batch_id,
                                     .received_unix_ns = wall_clock_ns(),
                                     .payload = payload->data,
                                     .payload_size = (uint32_t)payload->size };
        uint64_t *queued;
        enum status st;

        *known_ret = known_position(s, &b->batch_id);
        if (*known_ret)
                return ST_OK;
        st = refuse_if_full(s, err);
        if (!st)
                st = make_room(s, err);
        if (!st)
                st = key_map_put(&s->queued, &b->batch_id, 0, NULL, &queued, err);
        if (!st)
                st = raw_queue_write(s->queue, &record, err);
        if (st)
                return st;
        b->position = *queued = record.position;
        head_push(s, b);
        if (s->head_bytes >= s->options.flush_bytes)
                pthread_cond_signal(&s->wake);
        return ST_OK;
}

static enum status check_before_work(struct profile_store *s, const struct hash128 *batch_id, uint64_t *known_ret,
                                     struct error *err)
{
        enum status st = ST_OK;

        pthread_mutex_lock(&s->lock);
        *known_ret = known_position(s, batch_id);
        if (!*known_ret)
                st = refuse_if_full(s, err);
        pthread_mutex_unlock(&s->lock);
        return st;
}

static enum status sync_position(struct profile_store *s, uint64_t position, struct error *err)
{
        struct error unused;
        enum status st;

        err = err ? err : &unused; /* its text is kept for profile_store_health() */
        st = raw_queue_sync(s->queue, position, err);
        if (st)
                health_set_sync(s, st, err);
        return st;
}

static enum status wait_for_earlier(struct profile_store *s, uint64_t position, bool *duplicate_ret,
                                    struct error *err)
{
        enum status st = position == UINT64_MAX ? ST_OK : sync_position(s, position, err);

        if (!st && duplicate_ret)
                *duplicate_ret = true;
        return st;
}

enum status profile_store_append(struct profile_store *s, const struct profile *profile, struct hash128 batch_id,
                                 bool *duplicate_ret, struct error *err)
{
        _cleanup_buf_ struct buf payload;
        struct batch *b = NULL;
        uint64_t known, position;
        enum status st;

        buf_init(&payload, LIMIT_QUEUE_RECORD_BYTES);
        if (s->options.read_only)
                return error_set(err, ST_USAGE, "'%s' is open for reading only", s->dir);
        if (duplicate_ret)
                *duplicate_ret = false;
        st = check_before_work(s, &batch_id, &known, err);
        if (st)
                return st;
        if (known)
                return wait_for_earlier(s, known, duplicate_ret, err);
        if (!profile->samples.count)
                return ST_OK;
        st = batch_create(profile, &b, err);
        if (!st)
                st = payload_encode(profile, &payload, err);
        if (st) {
                batch_unref(b);
                return st;
        }
        b->batch_id = batch_id;
        pthread_mutex_lock(&s->lock);
        st = enqueue(s, b, &payload, &known, err);
        position = b->position;
        pthread_mutex_unlock(&s->lock);
        if (st || known) {
                batch_unref(b);
                return st ? st : wait_for_earlier(s, known, duplicate_ret, err);
        }
        return sync_position(s, position, err);
}

/* ---- replay ------------------------------------------------------------------------ */

struct replay {
        struct profile_store *s;
        struct buf flushed_ids; /* of records that are in the tables, but perhaps not in s->ids yet */
        int64_t newest_unix_ns;
};

/* The bytes are what was written, so this is our own mistake or another version's: keep them, and go on. */
static enum status set_aside(struct profile_store *s, const struct raw_record *record, struct error *err)
{
        _cleanup_free_ char *path = NULL;

        metric_add(&unreadable, 1);
        if (s->options.read_only)
                return ST_OK;
        if (asprintf(&path, "%s/queue/%020llu.unreadable", s->dir, (unsigned long long)record->position) < 0) {
                path = NULL;
                return error_no_memory(err);
        }
        return file_write_durable(path, record->payload, record->payload_size, err);
}

static enum status replay_batch(struct profile_store *s, const struct raw_record *record, struct error *err)
{
        struct profile p;
        struct batch *b;
        uint64_t *queued;
        enum status st = payload_decode(record->payload, record->payload_size, &p, err);

        if (!st) {
                st = batch_create(&p, &b, err);
                profile_deinit(&p);
        }
        if (st == ST_BAD_DATA || st == ST_TOO_BIG || st == ST_UNSUPPORTED)
                return set_aside(s, record, err);
        if (st)
                return st;
        b->batch_id = record->batch_id;
        b->position = record->position;
        st = make_room(s, err);
        if (!st)
                st = key_map_put(&s->queued, &b->batch_id, b->position, NULL, &queued, err);
        if (st) {
                batch_unref(b);
                return st;
        }
        *queued = b->position;
        head_push(s, b);
        return ST_OK;
}

static enum status replay_record(void *context, const struct raw_record *record, struct error *err)
{
        struct replay *r = context;

        r->newest_unix_ns = record->received_unix_ns;
        if (record->position <= r->s->flushed) {
                buf_append(&r->flushed_ids, &record->batch_id, sizeof record->batch_id);
                return buf_status(&r->flushed_ids, err, "batch ids");
        }
        if (known_position(r->s, &record->batch_id))
                return ST_OK;
        return replay_batch(r->s, record, err);
}

enum status head_open(struct profile_store *s, struct error *err)
{
        _cleanup_free_ char *dir = path_join(s->dir, "queue");
        _cleanup_free_ char *ids_dir = path_join(s->dir, "queue/batch-ids");
        struct replay r = { .s = s };
        enum status st = ST_OK;

        if (!dir || !ids_dir)
                return error_no_memory(err);
        buf_init(&r.flushed_ids, (size_t)LIMIT_BATCH_IDS * sizeof(struct hash128));
        if (!s->options.read_only)
                st = batch_ids_open(ids_dir, &s->ids, err);
        if (!st)
                st = raw_queue_open(dir, s->options.read_only, s->flushed, replay_record, &r, &s->queue, &s->report,
                                    err);
        metric_add(&torn_bytes, (int64_t)s->report.torn_bytes);
        metric_add(&damaged, (int64_t)s->report.damaged_segments);
        if (!st && !s->options.read_only)
                st = batch_ids_add(s->ids, (const struct hash128 *)(const void *)r.flushed_ids.data,
                                   r.flushed_ids.size / sizeof(struct hash128), r.newest_unix_ns / 1000000000, err);
        if (!st && !s->options.read_only)
                st = raw_queue_release(s->queue, s->flushed, err);
        buf_deinit(&r.flushed_ids);
        return st;
}

void head_close(struct profile_store *s)
{
        batches_unref(s->head, s->head_count);
        s->head = NULL;
        s->head_count = s->head_capacity = 0;
        s->head_bytes = 0;
        key_map_deinit(&s->queued);
        raw_queue_close(s->queue);
        batch_ids_close(s->ids);
        s->queue = NULL;
        s->ids = NULL;
}

/* ---- for scans and the flush --------------------------------------------------------- */

enum status head_take(struct profile_store *s, struct batch ***ret, size_t *count_ret, struct error *err)
{
        uint64_t synced = raw_queue_synced(s->queue);
        struct batch **batches = calloc(s->head_count + 1, sizeof *batches);
        size_t n = 0;

        if (!batches)
                return error_no_memory(err);
        while (n < s->head_count && s->head[n]->position <= synced) {
                batches[n] = batch_ref(s->head[n]);
                n++;
        }
        *ret = batches;
        *count_ret = n;
        return ST_OK;
}

void batches_unref(struct batch **batches, size_t count)
{
        for (size_t i = 0; i < count; i++)
                batch_unref(batches[i]);
        free(batches);
}

/* The map forgets by being made anew; without memory for that it keeps the old entries, as not there. */
static void forget_queued(struct profile_store *s)
{
        struct key_map left = { 0 };

        for (size_t i = 0; i < s->head_count; i++) {
                if (key_map_put(&left, &s->head[i]->batch_id, s->head[i]->position, NULL, NULL, NULL)) {
                        key_map_deinit(&left);
                        return;
                }
        }
        key_map_deinit(&s->queued);
        s->queued = left;
}

void head_drop(struct profile_store *s, uint64_t position)
{
        size_t n = 0;

        while (n < s->head_count && s->head[n]->position <= position) {
                uint64_t *queued = key_map_find(&s->queued, &s->head[n]->batch_id);

                if (queued)
                        *queued = 0;
                s->head_bytes -= batch_bytes(s->head[n]);
                batch_unref(s->head[n++]);
        }
        if (!n)
                return;
        memmove(s->head, s->head + n, (s->head_count - n) * sizeof *s->head);
        s->head_count -= n;
        forget_queued(s);
}
