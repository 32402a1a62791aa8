/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One call of store_flush(), with all durable batches of the head, which it commits in groups
 * (profile-store/core/flush_group.h).
 *
 * In the file: the size of a group; isolation of a batch that fails alone; flush_queued_batches(), the loop that halves
 * groups; the call, with recovery of a failed queue.
 *
 * Locks: the whole run holds s->writer_lock, and each group also flush_turn; s->lock is held to copy the batches and
 * to publish the tables. options.missing_debuginfo is called without a lock.
 */
#include "profile-store/core/flush.h"

#include <assert.h>
#include <string.h>

#include "common/memory/array.h"
#include "common/clock.h"
#include "common/stable_clock.h"
#include "common/limits.h"
#include "common/metrics.h"
#include "profile-store/core/batch_forward.h"
#include "profile-store/core/commit_group.h"
#include "profile-store/core/flush_group.h"
#include "profile-store/core/table_follow.h"
#include "profile-store/core/table_removal.h"
#include "profile-store/queue/quarantine.h"

static struct metric flushes = METRIC_COUNTER("cairn_flushes_total", "Flushes that committed at least one group.", "");
static struct histogram duration =
        HISTOGRAM("cairn_flush_duration_seconds", "Duration of flushes that committed at least one group.", "");
static struct metric failures = METRIC_COUNTER("cairn_flush_failures_total", "Failed flushes; each is repeated.", "");
static struct metric quarantined = METRIC_COUNTER("cairn_quarantined_batches_total",
                                                  "Batches that failed alone and were moved to the quarantine.", "");

#define NO_MEMORY_ATTEMPTS                                                                                             \
        3 /* consecutive flushes in which a batch alone runs out of memory before it is quarantined */

/*
 * Held shared by the flushes of all stores of the process, which share the memory of MEMORY_FLUSH. Held exclusively to
 * retry a batch that alone ran out of memory, so that it is quarantined for its own size and not for what another store
 * held. Lock order: after writer_lock. Exclusive waiters take precedence.
 */
static pthread_rwlock_t flush_turn = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;

static bool is_environment_failure(enum status st)
{
        return st == ST_OS || st == ST_BUSY;
}

static uint64_t count_batch_days(const struct batch *b, struct key_map *days)
{
        for (uint32_t i = 0; i < b->sample_count; i++) {
                struct hash128 key = make_u64_key((uint64_t)day_of_us(b->samples[i].time_us));

                if (key_map_put(days, &key, 0, NULL, NULL, NULL))
                        return UINT64_MAX; /* out of memory: the group ends before this batch */
        }
        return days->count;
}

/* Number of batches for one commit, at least 1. */
static size_t choose_group_size(struct batch *const *batches, size_t count)
{
        _cleanup_key_map_ struct key_map days = { 0 };
        uint64_t bytes = 0;
        size_t n;

        for (n = 0; n < count; n++) {
                bytes += batches[n]->arena.used;
                if (n == LIMIT_FLUSH_BATCHES || bytes > LIMIT_FLUSH_BATCH_BYTES ||
                    count_batch_days(batches[n], &days) > LIMIT_FLUSH_DATES)
                        break;
        }
        return n ? n : 1;
}

/* ---- quarantine ------------------------------------------------------------------------- */

/* Exact among other nodes: one of them may be about to commit the position for this one (core/commit_group.h). */
static enum status commit_position(struct profile_store *s, uint64_t position, struct error *err)
{
        enum status st = ST_BUSY;

        for (int i = 0; st == ST_BUSY && i < SHARED_COMMIT_ATTEMPTS; i++) {
                const struct table_change change = { .table = TABLE_SAMPLES,
                                                     .flushed = position,
                                                     .base = has_shared_tables(s) ? s->tables : NULL };

                st = tables_commit(&s->logs, &change, err);
                if (st != ST_BUSY || !has_shared_tables(s))
                        return st;
                st = store_follow_tables(s, err);
                if (st || s->flushed >= position)
                        return st;
                st = ST_BUSY;
        }
        return st;
}

/* Record by a commit without files that batches up to a position need no flush. */
static enum status advance_flushed(struct profile_store *s, uint64_t position, struct error *err)
{
        enum status st;

        s->behind = true;
        st = commit_position(s, position, err);
        if (!st)
                st = store_publish_tables(s, err);
        if (st)
                return st;
        s->behind = false;
        return head_release(s, position, err);
}

static enum status remember_batch_id(struct profile_store *s, const struct hash128 *id, struct error *err)
{
        return batch_ids_add(s->ids, id, 1, stable_unix_s(), err);
}

/*
 * Once the file is durable, replay skips the record. The empty commit advances the flushed position past the record, so
 * that its segment can be unlinked.
 */
static enum status quarantine_batch(struct profile_store *s, const struct batch *b, const char *reason,
                                    struct error *err)
{
        _cleanup_buf_ struct buf file;
        struct raw_record record;
        uint64_t bytes = 0;
        enum status st;

        buf_init(&file, LIMIT_QUEUE_SEGMENT_FILE_BYTES);
        st = raw_queue_read(s->queue, b->position, &file, &record, err);
        if (!st)
                st = quarantine_add(s->dir, &record, reason, &bytes, err);
        if (st)
                return st;
        health_add_quarantined(s, 1, (int64_t)bytes, reason);
        s->behind = true;
        st = remember_batch_id(s, &b->batch_id, err);
        if (!st)
                st = advance_flushed(s, b->position, err);
        if (!st)
                metric_add(&quarantined, 1);
        return st;
}

/* Claims are reference-counted; each store holds at most one. */
static void claim_flush_memory(struct profile_store *s)
{
        if (!s->claims_memory)
                memory_claim(MEMORY_FLUSH);
        s->claims_memory = true;
}

void store_end_memory_claim(struct profile_store *s)
{
        if (s->claims_memory)
                memory_end_claim(MEMORY_FLUSH);
        s->claims_memory = false;
}

/* Whether the batch alone ran out of memory in the last flush. */
static bool is_starved_batch(const struct profile_store *s, const struct batch *b)
{
        return s->starved_attempts && s->starved_position == b->position;
}

/*
 * Handle the failure of a single batch. ST_OK when it is quarantined. A batch that ran out of memory is retried while
 * no other store flushes and with a claim on memory that others release. It is quarantined only if it needs more than
 * the flush's ceiling, or if too little is released during all attempts.
 */
static enum status isolate_batch(struct profile_store *s, const struct batch *b, enum status why, struct error *err)
{
        struct error reason = *err;

        if (why == ST_NO_MEMORY) { /* the shortage may be temporary */
                s->starved_attempts = s->starved_position == b->position ? s->starved_attempts + 1 : 1;
                s->starved_position = b->position;
                if (s->starved_attempts < NO_MEMORY_ATTEMPTS) {
                        claim_flush_memory(s);
                        return why;
                }
        }
        store_end_memory_claim(s);
        return quarantine_batch(s, b, reason.text, err);
}

/* ---- all queued batches ------------------------------------------------------------------- */

struct flush_run {
        struct profile_store *s;
        struct batch **batches;
        size_t batch_count;
        uint64_t sealed; /* the queue is durable up to this position */
        struct wanted_object *missing;
        size_t missing_count, missing_capacity;
        bool wrote;
};

static void flush_run_deinit(struct flush_run *r)
{
        batches_unref(r->batches, r->batch_count);
        free(r->missing);
}

/* Add the objects of a group to those of the flush. Each is new to one group only. */
static enum status take_missing_objects(struct flush_run *r, const struct flush_group *g, struct error *err)
{
        if (!g->missing_count)
                return ST_OK;
        if (!array_reserve_many(&r->missing, &r->missing_capacity, r->missing_count, g->missing_count))
                return error_no_memory(err);
        memcpy(r->missing + r->missing_count, g->missing, g->missing_count * sizeof *r->missing);
        r->missing_count += g->missing_count;
        return ST_OK;
}

/* The other node has the batches before their ids are remembered here, and both before the queue forgets them. */
static enum status forward_group(struct profile_store *s, struct flush_group *g, struct error *err)
{
        enum status st = forward_batches(s, g->batches, g->batch_count, err);

        g->blames_batches = st == ST_BAD_DATA || st == ST_TOO_BIG;
        if (!st)
                st = flush_group_remember_ids(g, err);
        return st ? st : advance_flushed(s, g->last, err);
}

/* Flush the batches [at, at + count) as one group. */
static enum status flush_batch_range(struct flush_run *r, size_t at, size_t count, bool *blames_batches_ret,
                                     bool *must_restart_ret, struct error *err)
{
        _cleanup_(flush_group_deinit) struct flush_group g = { .s = r->s,
                                                               .memory.use = MEMORY_FLUSH,
                                                               .batches = r->batches + at,
                                                               .batch_count = count,
                                                               .is_alone = is_starved_batch(r->s, r->batches[at]),
                                                               .removal = r->s->tables->removal,
                                                               .first = r->s->flushed + 1,
                                                               .last = r->batches[at + count - 1]->position };
        enum status st;

        if (at + count == r->batch_count && r->sealed > g.last)
                g.last = r->sealed;
        assert(count > 0 && at + count <= r->batch_count);
        assert(g.first <= g.last);
        st = r->s->options.forward ? forward_group(r->s, &g, err) : flush_group_commit(&g, err);
        *blames_batches_ret = g.blames_batches && !is_environment_failure(st);
        *must_restart_ret = g.must_restart;
        if (!st)
                store_end_memory_claim(r->s);
        if (g.committing) {
                enum status taken = take_missing_objects(r, &g, st ? NULL : err);

                st = st ? st : taken;
        }
        return st;
}

void flush_release_locks(struct profile_store *s)
{
        pthread_rwlock_unlock(&flush_turn);
        pthread_mutex_unlock(&s->writer_lock);
}

void flush_take_locks(struct profile_store *s)
{
        pthread_mutex_lock(&s->writer_lock);
        pthread_rwlock_rdlock(&flush_turn);
}

/* All memory of the flush is released on return. */
static enum status flush_range_in_turn(struct flush_run *r, size_t at, size_t count, bool *blames_batches_ret,
                                       bool *must_restart_ret, struct error *err)
{
        enum status st;

        if (is_starved_batch(r->s, r->batches[at]))
                pthread_rwlock_wrlock(&flush_turn);
        else
                pthread_rwlock_rdlock(&flush_turn);
        st = flush_batch_range(r, at, count, blames_batches_ret, must_restart_ret, err);
        pthread_rwlock_unlock(&flush_turn);
        return st;
}

/* Batches that another node committed are only skipped: the next commit covers their positions. */
static void drop_committed_batches(struct flush_run *r, size_t at)
{
        size_t kept = at;

        for (size_t i = at; i < r->batch_count; i++) {
                if (is_batch_committed(r->s, r->batches[i]))
                        batch_unref(r->batches[i]);
                else
                        r->batches[kept++] = r->batches[i];
        }
        r->batch_count = kept;
}

/* Positions of batches that others committed are recorded; another node may have done that for this one. */
static enum status end_shared_flush(struct flush_run *r, struct error *err)
{
        struct profile_store *s = r->s;

        if (!has_shared_tables(s))
                return ST_OK;
        return r->sealed > s->flushed ? advance_flushed(s, r->sealed, err) : head_release(s, s->flushed, err);
}

/* A failed group is halved until it succeeds; s->flushed advances with each commit. */
static enum status flush_queued_batches(struct flush_run *r, struct error *err)
{
        struct profile_store *s = r->s;
        size_t at = 0, most = SIZE_MAX;
        bool is_current = true; /* the tables have just been read, so that an object store need not be asked again */

        for (int restarts = 0;;) {
                bool blames_batches = false, must_restart = false;
                size_t n;
                enum status st = flush_check_stopping(s, err);

                if (!st && !is_current)
                        st = store_reconcile(s, err);
                if (!st)
                        st = removal_stop_others(s, err);
                if (st)
                        return st;
                while (at < r->batch_count && r->batches[at]->position <= s->flushed)
                        at++;
                if (has_shared_tables(s))
                        drop_committed_batches(r, at);
                if (at == r->batch_count)
                        return end_shared_flush(r, err);
                n = choose_group_size(r->batches + at, r->batch_count - at);
                n = is_starved_batch(s, r->batches[at]) ? 1 : n < most ? n : most;
                st = flush_range_in_turn(r, at, n, &blames_batches, &must_restart, err);
                is_current = !st && s->flushed >= r->batches[r->batch_count - 1]->position;
                if (must_restart && ++restarts < SHARED_COMMIT_ATTEMPTS)
                        continue;
                if (!st) {
                        r->wrote = true;
                        most = most > SIZE_MAX / 2 ? SIZE_MAX : most * 2;
                } else if (blames_batches && n > 1) {
                        most = n / 2;
                } else if (blames_batches) {
                        st = isolate_batch(s, r->batches[at], st, err);
                        if (st)
                                return st;
                } else {
                        return st;
                }
        }
}

/* Batches after the last synced position were never acknowledged, and their positions are not reused. */
static enum status take_durable_batches(struct flush_run *r, struct error *err)
{
        struct profile_store *s = r->s;
        enum status st;

        pthread_mutex_lock(&s->lock);
        if (raw_queue_has_failed(s->queue))
                head_drop_after(s, r->sealed);
        st = head_copy_durable(s, &r->batches, &r->batch_count, err);
        pthread_mutex_unlock(&s->lock);
        return st;
}

/* All acknowledged batches are in the tables, so the segment whose sync failed can be dropped. */
static enum status recover_queue(struct flush_run *r, struct error *err)
{
        struct profile_store *s = r->s;
        enum status st;

        if (!raw_queue_has_failed(s->queue))
                return ST_OK;
        st = head_release(s, r->sealed, err);
        if (!st)
                st = raw_queue_recover(s->queue, err);
        if (!st)
                health_set_sync(s, ST_OK, NULL);
        return st;
}

static enum status flush_under_lock(struct flush_run *r, struct error *err)
{
        struct profile_store *s = r->s;
        enum status st = store_reconcile(s, err);

        if (!st)
                st = raw_queue_seal(s->queue, &r->sealed, err);
        if (!st)
                st = take_durable_batches(r, err);
        if (!st)
                st = flush_queued_batches(r, err);
        return st ? st : recover_queue(r, err);
}

void flush_register_metrics(void)
{
        metric_register(&flushes);
        metric_register(&duration.metric);
        metric_register(&failures);
        metric_register(&quarantined);
        flush_group_register_metrics();
}

enum status store_flush(struct profile_store *s, struct error *err)
{
        _cleanup_(flush_run_deinit) struct flush_run r = { .s = s };
        struct error unused = { 0 };
        int64_t began_ns;
        enum status st;

        err = err ? err : &unused; /* its text is kept for profile_store_get_health() */
        pthread_mutex_lock(&s->writer_lock);
        commit_group_begin_flush(s);
        began_ns = monotonic_ns();
        st = flush_under_lock(&r, err);
        commit_group_end_flush(s, st, err);
        pthread_mutex_unlock(&s->writer_lock);
        if (!st && r.wrote)
                histogram_observe(&duration, monotonic_ns() - began_ns);
        if (!atomic_load(&s->stopping))
                health_set_flush(s, st, err);
        if (r.missing_count)
                s->options.missing_debuginfo(s->options.missing_context, r.missing, r.missing_count);
        metric_add(st ? &failures : &flushes, st || r.wrote); /* last: tests wait for this counter */
        return st;
}
