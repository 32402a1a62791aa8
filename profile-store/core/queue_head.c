/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The head: batches in memory between the raw queue and the tables, in order of their positions.
 *
 * A batch enters by append_profile(): it is built and encoded without a lock, enqueue_batch() writes it to the queue
 * and appends it under s->lock, so that both have the same order, and the sync follows without the lock. At open,
 * replay_record() rebuilds the head from the queue; of records that are flushed or in the quarantine only the ids are
 * used. A batch leaves by head_drop_until() after its flush or quarantine, or by head_drop_after() when it never
 * became durable.
 *
 * Duplicates: s->queued has the batch ids of the head, s->ids those of flushed batches. A duplicate of a queued batch
 * returns ST_OK only after the first copy is durable.
 *
 * In the file: append, also of the batches of a gateway; replay; retry and removal of quarantined batches; functions
 * for scans and flushes.
 *
 * Locks: s->lock protects head and queued. head_open() and head_refresh() run with it (store_reload()), or before
 * other threads have the store. profile_store_discard() takes s->writer_lock.
 */
#include <assert.h>
#include <string.h>

#include "common/clock.h"
#include "common/files/file.h"
#include "common/limits.h"
#include "common/memory/array.h"
#include "common/metrics.h"
#include "common/stable_clock.h"
#include "common/threads/condition.h"
#include "profile-formats/profile_accept.h"
#include "profile-store/core/profile_store_internal.h"
#include "profile-store/core/table_absence.h"
#include "profile-store/queue/head_page.h"
#include "profile-store/queue/payload.h"

static struct metric torn_bytes = METRIC_COUNTER(
        "cairn_queue_torn_bytes_total", "Bytes of unacknowledged batches, truncated from the raw queue at start.", "");
static struct metric damaged = METRIC_COUNTER("cairn_queue_damaged_segments_total",
                                              "Raw queue segments that lost confirmed bytes, set aside at start.", "");
static struct metric unreadable = METRIC_COUNTER("cairn_queue_unreadable_batches_total",
                                                 "Batches that could not be decoded at start, set aside.", "");

/* Reserve the slot first: after the write to the queue nothing may fail. */
static enum status reserve_head_slot(struct profile_store *s, struct error *err)
{
        return array_reserve(&s->head, &s->head_capacity, s->head_count) ? ST_OK : error_no_memory(err);
}

static void append_to_head(struct profile_store *s, struct batch *b)
{
        assert(s->head_count < s->head_capacity);
        assert(!s->head_count || s->head[s->head_count - 1]->position < b->position);
        batch_check(b);
        s->head[s->head_count++] = b;
        s->head_bytes += batch_get_bytes(b);
}

/* ---- append --------------------------------------------------------------------- */

/* Position of the batch if it is queued, UINT64_MAX if it is flushed, 0 if it is new. */
static uint64_t find_known_position(struct profile_store *s, const struct hash128 *batch_id)
{
        const uint64_t *queued = key_map_find(&s->queued, batch_id);
        uint64_t position = queued ? *queued : 0;

        if (!position && s->ids && batch_ids_contain(s->ids, batch_id))
                position = UINT64_MAX;
        return position;
}

static enum status check_queue_room(const struct profile_store *s, struct error *err)
{
        if (s->head_bytes < s->options.max_queued_bytes)
                return ST_OK;
        return error_set(err, ST_BUSY, "the queue is full: %llu bytes wait to be flushed; send again later",
                         (unsigned long long)s->head_bytes);
}

/* Takes the batch on ST_OK with *known_ret 0. Caller holds s->lock. */
static enum status enqueue_batch(struct profile_store *s, struct batch *b, const uint8_t *payload, size_t payload_size,
                                 uint64_t *known_ret, struct error *err)
{
        struct raw_record record = { .batch_id = b->batch_id,
                                     .received_unix_ns = wall_clock_ns(),
                                     .payload = payload,
                                     .payload_size = (uint32_t)payload_size };
        uint64_t *queued;
        enum status st;

        *known_ret = find_known_position(s, &b->batch_id);
        if (*known_ret)
                return ST_OK;
        st = check_queue_room(s, err);
        if (!st)
                st = reserve_head_slot(s, err);
        if (!st)
                st = key_map_put(&s->queued, &b->batch_id, 0, NULL, &queued, err);
        if (!st)
                st = raw_queue_write(s->queue, &record, err);
        if (st)
                return st;
        b->position = *queued = record.position;
        append_to_head(s, b);
        if (s->head_bytes >= s->options.flush_bytes)
                pthread_cond_signal(&s->wake);
        return ST_OK;
}

/*
 * Write a batch to the queue. It is durable after sync_position(*position_ret), also one that was known before.
 * @param b             taken
 * @param position_ret  UINT64_MAX: it is flushed already
 */
static enum status queue_batch(struct profile_store *s, struct batch *b, const uint8_t *payload, size_t payload_size,
                               uint64_t *position_ret, bool *duplicate_ret, struct error *err)
{
        uint64_t known = 0;
        enum status st;

        pthread_mutex_lock(&s->lock);
        st = enqueue_batch(s, b, payload, payload_size, &known, err);
        *position_ret = known ? known : b->position;
        pthread_mutex_unlock(&s->lock);
        *duplicate_ret = !st && known;
        if (st || known)
                batch_unref(b);
        return st;
}

static enum status check_admission(struct profile_store *s, const struct hash128 *batch_id, uint64_t *known_ret,
                                   struct error *err)
{
        enum status st = ST_OK;

        pthread_mutex_lock(&s->lock);
        *known_ret = find_known_position(s, batch_id);
        if (!*known_ret)
                st = check_queue_room(s, err);
        pthread_mutex_unlock(&s->lock);
        return st;
}

/* After a failed write or sync, wake the flush thread to recover at once; it then retries at its interval. */
static void note_queue_failure(struct profile_store *s, enum status st, const struct error *err)
{
        if (!raw_queue_has_failed(s->queue) || !health_set_sync(s, st, err))
                return;
        pthread_mutex_lock(&s->lock);
        s->sync_failed = true;
        pthread_cond_signal(&s->wake);
        pthread_mutex_unlock(&s->lock);
}

static enum status sync_position(struct profile_store *s, uint64_t position, struct error *err)
{
        enum status st = raw_queue_sync(s->queue, position, err);

        if (st)
                note_queue_failure(s, st, err);
        return st;
}

/* @param position  UINT64_MAX: it is flushed */
static enum status wait_for_durable_batch(struct profile_store *s, uint64_t position, struct error *err)
{
        return position == UINT64_MAX ? ST_OK : sync_position(s, position, err);
}

static enum status append_profile(struct profile_store *s, const struct profile *profile, uint32_t sender,
                                  struct hash128 batch_id, bool *duplicate_ret, struct error *err)
{
        _cleanup_buf_ struct buf payload;
        struct batch *b = NULL;
        uint64_t position;
        bool duplicate = false;
        enum status st;

        buf_init(&payload, LIMIT_QUEUE_RECORD_BYTES);
        duplicate_ret = duplicate_ret ? duplicate_ret : &duplicate;
        *duplicate_ret = false;
        st = check_admission(s, &batch_id, &position, err);
        if (!st && position) {
                st = wait_for_durable_batch(s, position, err);
                *duplicate_ret = !st;
                return st;
        }
        if (st || !profile->samples.count)
                return st;
        st = batch_create(profile, &b, err);
        if (!st)
                st = payload_encode(profile, &payload, err);
        if (st) {
                batch_unref(b);
                return st;
        }
        b->batch_id = batch_id;
        for (uint32_t i = 0; i < b->location_count; i++)
                b->locations[i].sender = sender;
        st = queue_batch(s, b, payload.data, payload.size, &position, duplicate_ret, err);
        if (st)
                note_queue_failure(s, st, err);
        return st ? st : wait_for_durable_batch(s, position, err);
}

enum status profile_store_append(struct profile_store *s, const struct profile *profile, struct hash128 batch_id,
                                 bool *duplicate_ret, struct error *err)
{
        return profile_store_append_from(s, profile, 0, batch_id, duplicate_ret, err);
}

enum status profile_store_append_from(struct profile_store *s, const struct profile *profile, uint32_t sender,
                                      struct hash128 batch_id, bool *duplicate_ret, struct error *err)
{
        struct error unused = { 0 };
        enum status st;

        err = err ? err : &unused; /* its text is kept for profile_store_get_health() */
        if (s->options.read_only)
                return error_set(err, ST_USAGE, "'%s' is open for reading only", s->dir);
        st = profile_check_labels(profile, err);
        return st ? st : append_profile(s, profile, sender, batch_id, duplicate_ret, err);
}

/* ---- the batches of a gateway ------------------------------------------------------ */

static enum status decode_forwarded_batch(const struct raw_record *record, struct batch **ret, struct error *err)
{
        struct profile p;
        enum status st = payload_decode(record->payload, record->payload_size, &p, err);

        if (st)
                return st;
        st = profile_check_labels(&p, err);
        if (!st)
                st = batch_create(&p, ret, err);
        profile_deinit(&p);
        return st;
}

/* @param position_ret  as of queue_batch() */
static enum status queue_forwarded_batch(struct profile_store *s, const struct raw_record *record,
                                         uint64_t *position_ret, struct forwarded_batches *sums, struct error *err)
{
        struct batch *b = NULL;
        uint64_t samples;
        bool duplicate = true;
        enum status st = check_admission(s, &record->batch_id, position_ret, err);

        if (!st && !*position_ret)
                st = decode_forwarded_batch(record, &b, err);
        if (!st && !*position_ret) {
                b->batch_id = record->batch_id;
                samples = b->sample_count;
                st = queue_batch(s, b, record->payload, record->payload_size, position_ret, &duplicate, err);
                sums->samples += duplicate ? 0 : samples;
        }
        sums->batches += !st;
        sums->duplicates += !st && duplicate;
        return st;
}

enum status profile_store_append_page(struct profile_store *s, const void *page, size_t n,
                                      struct forwarded_batches *ret, struct error *err)
{
        struct forwarded_batches sums = { 0 };
        struct head_page_reader r;
        struct raw_record record;
        uint64_t position, last = 0;
        bool found = true;
        enum status st = head_page_read(&r, page, n, err);

        while (!st && found) {
                st = head_page_next(&r, &record, &found, err);
                if (!st && found)
                        st = queue_forwarded_batch(s, &record, &position, &sums, err);
                if (!st && found && position != UINT64_MAX && position > last)
                        last = position;
        }
        if (st)
                note_queue_failure(s, st, err);
        if (!st && last)
                st = sync_position(s, last, err);
        if (!st)
                *ret = sums;
        return st;
}

/* ---- waiting for a flush ----------------------------------------------------------- */

/* @param position_ret  of the batch; untouched when it is not in the head. Caller holds s->lock. */
static bool is_batch_in_head(struct profile_store *s, const struct hash128 *batch_id, uint64_t *position_ret)
{
        const uint64_t *position = key_map_find(&s->queued, batch_id);

        if (!position || !*position)
                return false;
        *position_ret = *position;
        return true;
}

void head_order_flush(struct profile_store *s)
{
        if (!s->flush_due_ns)
                s->flush_due_ns = monotonic_ns() + (int64_t)s->options.commit_interval_ms * 1000000;
        pthread_cond_signal(&s->wake);
}

enum status profile_store_wait_flushed(struct profile_store *s, struct hash128 batch_id, uint64_t timeout_ms,
                                       struct error *err)
{
        int64_t until = monotonic_ns() + (int64_t)timeout_ms * 1000000;
        uint64_t position = 0;
        bool is_left, in_time = true;

        pthread_mutex_lock(&s->lock);
        s->flush_waiters++;
        while ((is_left = is_batch_in_head(s, &batch_id, &position)) && in_time && !s->stopping) {
                head_order_flush(s);
                in_time = condition_wait_until(&s->left_head, &s->lock, until);
        }
        s->flush_waiters--;
        pthread_mutex_unlock(&s->lock);
        if (!is_left && position && quarantine_contains(s->dir, position, &batch_id))
                return error_set(err, ST_BAD_DATA,
                                 "the batch cannot be written to the tables, so it was set aside on this machine "
                                 "(quarantine)");
        if (!is_left)
                return ST_OK;
        return error_set(err, ST_TIMEOUT,
                         "the object store has not taken the batch within %llu s; it stays queued here, so send it "
                         "again with the same id",
                         (unsigned long long)timeout_ms / 1000);
}

/* ---- replay ------------------------------------------------------------------------ */

struct replay {
        struct profile_store *s;
        struct buf flushed_ids; /* ids of flushed records that s->ids may lack */
        int64_t newest_unix_ns;
};

static enum status collect_flushed_id(struct replay *r, const struct raw_record *record, struct error *err)
{
        buf_append(&r->flushed_ids, &record->batch_id, sizeof record->batch_id);
        return buf_status(&r->flushed_ids, err, "batch ids");
}

/* The checksums match, so a faulty or different version wrote the payload: quarantine it and continue. */
static enum status quarantine_unreadable(struct replay *r, const struct raw_record *record, const struct error *why,
                                         struct error *err)
{
        enum status st;

        metric_add(&unreadable, 1);
        if (r->s->options.read_only)
                return ST_OK;
        st = quarantine_add(r->s->dir, record, why->text, NULL, err);
        health_add_quarantined(r->s, 0, 0, why->text); /* counted after the replay */
        return st ? st : collect_flushed_id(r, record, err);
}

static enum status replay_batch(struct replay *r, const struct raw_record *record, struct error *err)
{
        struct profile_store *s = r->s;
        struct error why;
        struct profile p;
        struct batch *b;
        uint64_t *queued;
        enum status st = payload_decode(record->payload, record->payload_size, &p, &why);

        if (!st) {
                st = batch_create(&p, &b, &why);
                profile_deinit(&p);
        }
        if (st && memory_budget_refused_recently()) /* nothing else runs yet that could release memory */
                return error_prefix(err, ST_NO_MEMORY,
                                    "cannot load the queue of acknowledged batches; start with a larger --memory");
        if (st == ST_BAD_DATA || st == ST_TOO_BIG || st == ST_UNSUPPORTED)
                return quarantine_unreadable(r, record, &why, err);
        if (st) {
                *err = why;
                return st;
        }
        b->batch_id = record->batch_id;
        b->position = record->position;
        st = reserve_head_slot(s, err);
        if (!st)
                st = key_map_put(&s->queued, &b->batch_id, b->position, NULL, &queued, err);
        if (st) {
                batch_unref(b);
                return st;
        }
        *queued = b->position;
        append_to_head(s, b);
        return ST_OK;
}

static enum status replay_record(void *context, const struct raw_record *record, struct error *err)
{
        struct replay *r = context;

        r->newest_unix_ns = record->received_unix_ns;
        if (record->position <= r->s->flushed || quarantine_contains(r->s->dir, record->position, &record->batch_id))
                return collect_flushed_id(r, record, err);
        if (find_known_position(r->s, &record->batch_id))
                return ST_OK;
        return replay_batch(r, record, err);
}

/* Remove the quarantine files of batches that were queued again before a crash. */
static enum status finish_retries(struct profile_store *s, struct error *err)
{
        _cleanup_free_ struct quarantine_item *items = NULL;
        size_t count = 0;
        enum status st = quarantine_list_names(s->dir, &items, &count, err);

        for (size_t i = 0; !st && i < count; i++) {
                struct hash128 id = quarantine_retry_id(&items[i].batch_id);

                if (find_known_position(s, &id))
                        st = quarantine_remove(s->dir, &items[i], err);
        }
        return st;
}

static void recount_quarantine(struct profile_store *s)
{
        struct quarantine_totals totals = quarantine_count(s->dir);

        s->health.quarantined_batches = s->health.quarantined_bytes = 0;
        health_add_quarantined(s, (int64_t)totals.batches, (int64_t)totals.bytes, NULL);
}

enum status head_release(struct profile_store *s, uint64_t position, struct error *err)
{
        enum status st = batch_ids_add(s->ids, NULL, 0, stable_unix_s(), err);

        return st ? st : raw_queue_release(s->queue, position, err);
}

/* On a full disk the store opens all the same, and the queue keeps the batches until their ids are written. */
static enum status release_flushed_batches(struct profile_store *s, const struct replay *r, struct error *err)
{
        const struct hash128 *ids = (const void *)r->flushed_ids.data;
        size_t count = r->flushed_ids.size / sizeof *ids;
        int64_t unix_s = r->newest_unix_ns / 1000000000;
        enum status st = batch_ids_add_or_keep(s->ids, ids, count, unix_s, err);

        return st || !batch_ids_are_written(s->ids) ? st : raw_queue_release(s->queue, s->flushed, err);
}

enum status head_open(struct profile_store *s, struct error *err)
{
        _cleanup_free_ char *dir = path_join(s->dir, "queue");
        _cleanup_free_ char *ids_dir = path_join(s->dir, "queue/batch-ids");
        struct replay r = { .s = s };
        const struct raw_queue_options options = {
                .read_only = s->options.read_only,
                .flushed = s->flushed,
                .gap = has_absent_tables(s) ? QUEUE_POSITION_GAP : 0,
                .replay = replay_record,
                .context = &r,
        };
        enum status st = ST_OK;

        if (!dir || !ids_dir)
                return error_no_memory(err);
        buf_init(&r.flushed_ids, (size_t)LIMIT_BATCH_IDS * sizeof(struct hash128));
        if (!s->options.read_only)
                st = batch_ids_open(ids_dir, &s->ids, err);
        if (!st)
                st = raw_queue_open(dir, &options, &s->queue, &s->report, err);
        metric_add(&torn_bytes, (int64_t)s->report.torn_bytes);
        metric_add(&damaged, (int64_t)s->report.damaged_segments);
        if (!st && !s->options.read_only)
                st = release_flushed_batches(s, &r, err);
        buf_deinit(&r.flushed_ids);
        if (!st && !s->options.read_only)
                st = finish_retries(s, err);
        recount_quarantine(s);
        return st;
}

enum status head_refresh(struct profile_store *s, struct error *err)
{
        struct replay r = { .s = s };
        enum status st;

        buf_init(&r.flushed_ids, (size_t)LIMIT_BATCH_IDS * sizeof(struct hash128));
        st = raw_queue_refresh(s->queue, replay_record, &r, err);
        buf_deinit(&r.flushed_ids);
        recount_quarantine(s);
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

/* ---- quarantine ------------------------------------------------------------------------ */

enum status profile_store_requeue(struct profile_store *s, const struct quarantine_item *item, struct error *err)
{
        struct profile p;
        struct error unused = { 0 };
        enum status st;

        err = err ? err : &unused;
        if (s->options.read_only)
                return error_set(err, ST_USAGE, "'%s' is open for reading only", s->dir);
        st = quarantine_decode(s->dir, item, &p, err);
        if (st)
                return st;
        st = append_profile(s, &p, 0, quarantine_retry_id(&item->batch_id), NULL, err);
        profile_deinit(&p);
        return st ? st : profile_store_discard(s, item, err);
}

enum status profile_store_discard(struct profile_store *s, const struct quarantine_item *item, struct error *err)
{
        enum status st;

        if (s->options.read_only)
                return error_set(err, ST_USAGE, "'%s' is open for reading only", s->dir);
        pthread_mutex_lock(&s->writer_lock);
        st = quarantine_remove(s->dir, item, err);
        if (!st)
                health_add_quarantined(s, -1, -(int64_t)item->bytes, NULL);
        pthread_mutex_unlock(&s->writer_lock);
        return st;
}

/* ---- used by scans and the flush ------------------------------------------------------ */

enum status head_copy_durable(struct profile_store *s, struct batch ***ret, size_t *count_ret, struct error *err)
{
        uint64_t synced = raw_queue_get_synced(s->queue);
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

/* Rebuild the map without removed batches. If memory runs out, stale entries stay, with position 0. */
static void rebuild_queued_ids(struct profile_store *s)
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
        pthread_cond_broadcast(&s->left_head);
}

void head_drop_after(struct profile_store *s, uint64_t position)
{
        size_t kept = s->head_count;

        while (kept && s->head[kept - 1]->position > position) {
                struct batch *b = s->head[--kept];
                uint64_t *queued = key_map_find(&s->queued, &b->batch_id);

                if (queued)
                        *queued = 0;
                s->head_bytes -= batch_get_bytes(b);
                batch_unref(b);
        }
        s->head_count = kept;
        rebuild_queued_ids(s);
}

void head_drop_until(struct profile_store *s, uint64_t position)
{
        size_t n = 0;

        while (n < s->head_count && s->head[n]->position <= position) {
                uint64_t *queued = key_map_find(&s->queued, &s->head[n]->batch_id);

                if (queued)
                        *queued = 0;
                s->head_bytes -= batch_get_bytes(s->head[n]);
                batch_unref(s->head[n++]);
        }
        if (!n)
                return;
        memmove(s->head, s->head + n, (s->head_count - n) * sizeof *s->head);
        s->head_count -= n;
        rebuild_queued_ids(s);
}

size_t head_drop_batches(struct profile_store *s, const struct hash128 *ids, size_t id_count)
{
        size_t found = 0, kept = 0;

        for (size_t i = 0; i < id_count; i++) {
                uint64_t *queued = key_map_find(&s->queued, &ids[i]);

                found += queued && *queued;
                if (queued)
                        *queued = 0;
        }
        for (size_t i = 0; found && i < s->head_count; i++) {
                struct batch *b = s->head[i];

                if (*key_map_find(&s->queued, &b->batch_id)) {
                        s->head[kept++] = b;
                        continue;
                }
                s->head_bytes -= batch_get_bytes(b);
                batch_unref(b);
        }
        if (found) {
                s->head_count = kept;
                rebuild_queued_ids(s);
        }
        return found;
}
