/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-store/flush.h"

#include <inttypes.h>
#include <string.h>

#include "common/clock.h"
#include "common/stable_clock.h"
#include "common/limits.h"
#include "common/metrics.h"
#include "profile-store/flush_rows.h"
#include "profile-store/location_rows.h"
#include "profile-store/quarantine.h"

static struct metric flushes = METRIC_COUNTER("cairn_flushes_total", "Flushes that wrote something.", "");
static struct metric failures =
        METRIC_COUNTER("cairn_flush_failures_total", "Flushes that failed and are repeated.", "");
#define UNRESOLVED(r) METRIC_COUNTER("cairn_unresolved_frames_total", "New locations that stayed raw when they were flushed.", r)
static struct metric unresolved[SYMBOL_STATE_COUNT] = {
        [SYMBOL_NO_BUILD_ID] = UNRESOLVED("reason=\"no_build_id\""),
        [SYMBOL_NO_DEBUGINFO] = UNRESOLVED("reason=\"no_debuginfo\""),
        [SYMBOL_PENDING] = UNRESOLVED("reason=\"pending\""),
        [SYMBOL_FAILED] = UNRESOLVED("reason=\"failed\""),
        [SYMBOL_OUTSIDE] = UNRESOLVED("reason=\"outside\""),
        [SYMBOL_NO_ADDRESS] = UNRESOLVED("reason=\"no_address\""),
        [SYMBOL_STRIPPED] = UNRESOLVED("reason=\"stripped\""),
        [SYMBOL_UNCOVERED] = UNRESOLVED("reason=\"uncovered\""),
        [SYMBOL_NOT_IN_OBJECT] = UNRESOLVED("reason=\"not_in_object\""),
        [SYMBOL_TOO_LARGE] = UNRESOLVED("reason=\"too_large\""),
};

static struct metric quarantined = METRIC_COUNTER("cairn_quarantined_batches_total",
                                                  "Batches that could not be flushed on their own and were set aside.", "");

#define NO_MEMORY_ATTEMPTS 3 /* of one batch alone, each in a flush of its own, before it counts as too large */

/* One commit to each table, of consecutive batches. */
struct flush {
        struct profile_store *s;
        struct batch *const *batches;
        size_t batch_count;
        uint64_t first, last; /* positions */
        bool blames_batches;  /* what fails now depends on the batches, not on disk or tables */
        bool committing;      /* a commit was tried: the logs may be ahead of s->tables */
        struct arena arena;
        struct location_row *rows; /* new locations */
        size_t row_count;
        struct sample_row *samples; /* sorted by day, then in the order of a part */
        size_t sample_count;
        struct table_add *adds; /* of the commit being made */
        size_t add_count;
};

static void clear_adds(struct flush *f)
{
        for (size_t i = 0; i < f->add_count; i++)
                table_add_deinit(&f->adds[i]);
        free(f->adds);
        f->adds = NULL;
        f->add_count = 0;
}

static void flush_deinit(struct flush *f)
{
        clear_adds(f);
        arena_deinit(&f->arena);
        free(f->rows);
        free(f->samples);
}

/*
 * The next file of the commit; its name is by the positions and its number among the files of its day, and below the
 * day's folder when it has one.
 */
static enum status next_add(struct flush *f, const int64_t *day, unsigned number, struct table_add **ret,
                            struct error *err)
{
        struct table_add *more = reallocarray(f->adds, f->add_count + 1, sizeof *more);
        char name[96], suffix[16] = "";

        if (!more)
                return error_no_memory(err);
        f->adds = more;
        if (number)
                snprintf(suffix, sizeof suffix, "-%u", number);
        snprintf(name, sizeof name, "part-%020" PRIu64 "-%020" PRIu64 "%s.parquet", f->first, f->last, suffix);
        more[f->add_count] = (struct table_add){ .name = day ? name_in_day(*day, name) : strdup(name),
                                                 .has_day = day,
                                                 .day = day ? *day : 0 };
        if (!more[f->add_count].name)
                return error_no_memory(err);
        *ret = &more[f->add_count++];
        return ST_OK;
}

static enum status commit(struct flush *f, struct table_change change, struct error *err)
{
        enum status st;

        f->committing = true;
        change.adds = f->adds;
        change.add_count = f->add_count;
        st = tables_commit(&f->s->logs, &change, err);
        clear_adds(f);
        return st;
}

/* A service that ends does not wait for more than one file: what is queued is durable. */
static enum status check_stopping(struct profile_store *s, struct error *err)
{
        return atomic_load(&s->stopping) ? error_set(err, ST_BUSY, "the store is being closed") : ST_OK;
}

/* ---- locations ---------------------------------------------------------------------- */

static enum status collect_locations(struct flush *f, const struct key_map *known, struct key_map *fresh,
                                     struct error *err)
{
        size_t room = 0;

        for (size_t i = 0; i < f->batch_count; i++)
                room += f->batches[i]->location_count;
        f->rows = calloc(room + 1, sizeof *f->rows);
        if (!f->rows)
                return error_no_memory(err);
        for (size_t i = 0; i < f->batch_count; i++) {
                for (uint32_t k = 0; k < f->batches[i]->location_count; k++) {
                        const struct batch_location *l = &f->batches[i]->locations[k];
                        struct hash128 key = key_of_u64(l->id);
                        bool added;
                        enum status st;

                        if (key_map_find(known, &key))
                                continue;
                        st = key_map_put(fresh, &key, 0, &added, NULL, err);
                        if (!st && added)
                                st = location_row_of_batch(&f->rows[f->row_count++], l, &f->arena, err);
                        if (st)
                                return st;
                }
        }
        return ST_OK;
}

static void count_unresolved(const struct flush *f)
{
        for (size_t i = 0; i < f->row_count; i++)
                if (unresolved[f->rows[i].state].name)
                        metric_add(&unresolved[f->rows[i].state], 1);
}

static enum status write_locations(struct flush *f, struct error *err)
{
        enum status st = ST_OK;

        for (size_t done = 0, n; !st && done < f->row_count; done += n) {
                _cleanup_free_ char *path = NULL;
                struct table_add *add;

                n = f->row_count - done;
                st = next_add(f, NULL, (unsigned)f->add_count, &add, err);
                if (st)
                        break;
                path = table_path(&f->s->logs, TABLE_LOCATIONS, add->name);
                st = path ? part_write_locations(path, f->rows + done, &n, f->s->options.part_rows, &add->written, err)
                          : error_no_memory(err);
        }
        return st;
}

static enum status flush_locations(struct flush *f, struct error *err)
{
        struct profile_store *s = f->s;
        _cleanup_key_map_ struct key_map fresh = { 0 };
        struct key_map *known;
        enum status st;

        f->blames_batches = false;
        st = known_locations(&s->known, s->tables, &known, err);
        f->blames_batches = !st;
        if (!st)
                st = collect_locations(f, known, &fresh, err);
        if (st || !f->row_count)
                return st;
        st = location_rows_resolve(f->rows, f->row_count, s->options.symbols, &f->arena, NULL, err);
        if (st)
                return st;
        qsort(f->rows, f->row_count, sizeof *f->rows, location_row_compare);
        st = write_locations(f, err);
        if (!st)
                st = commit(f, (struct table_change){ .table = TABLE_LOCATIONS }, err);
        if (st)
                return st;
        count_unresolved(f);
        return key_map_merge(known, &fresh, err);
}

/* ---- stacks ------------------------------------------------------------------------- */

static int by_stack_id(const void *a, const void *b)
{
        const struct batch_stack *const *x = a, *const *y = b;

        return memcmp((*x)->id.bytes, (*y)->id.bytes, sizeof(*x)->id.bytes);
}

/* The samples [first, end) are of one day; writes the stacks that the day does not have yet. */
static enum status write_day_stacks(struct flush *f, size_t first, size_t end, int64_t day, struct key_map *fresh,
                                    struct error *err)
{
        _cleanup_free_ const struct batch_stack **stacks = calloc(end - first, sizeof *stacks);
        struct key_map *known;
        size_t count = 0;
        unsigned number = 0;
        enum status st = check_stopping(f->s, err);

        if (!st && !stacks)
                st = error_no_memory(err);
        if (!st) {
                f->blames_batches = false;
                st = known_stacks(&f->s->known, f->s->tables, day, &known, err);
                f->blames_batches = !st;
        }

        for (size_t i = first; !st && i < end; i++) {
                const struct batch_stack *stack = &f->samples[i].batch->stacks[f->samples[i].sample->stack];
                bool added;

                if (key_map_find(known, &stack->id))
                        continue;
                st = key_map_put(fresh, &stack->id, 0, &added, NULL, err);
                if (!st && added)
                        stacks[count++] = stack;
        }
        if (st || !count)
                return st;
        qsort(stacks, count, sizeof *stacks, by_stack_id);
        for (size_t done = 0, n; !st && done < count; done += n) {
                _cleanup_free_ char *path = NULL;
                struct table_add *add;

                n = count - done;
                st = next_add(f, &day, number++, &add, err);
                if (st)
                        break;
                path = table_path(&f->s->logs, TABLE_STACKS, add->name);
                st = path ? part_write_stacks(path, stacks + done, &n, f->s->options.part_rows, &add->written, err)
                          : error_no_memory(err);
        }
        return st;
}

static int64_t day_of_row(const struct sample_row *row)
{
        return day_of_us(row->sample->time_us);
}

static size_t end_of_day(const struct flush *f, size_t first)
{
        size_t end = first + 1;

        while (end < f->sample_count && day_of_row(&f->samples[end]) == day_of_row(&f->samples[first]))
                end++;
        return end;
}

struct day_keys {
        int64_t day;
        struct key_map keys;
};

static void day_keys_free(struct day_keys *days, size_t count)
{
        for (size_t i = 0; i < count; i++)
                key_map_deinit(&days[i].keys);
        free(days);
}

static enum status flush_stacks(struct flush *f, struct error *err)
{
        struct day_keys *fresh = NULL;
        size_t count = 0;
        enum status st = ST_OK;

        for (size_t first = 0, end; !st && first < f->sample_count; first = end) {
                struct day_keys *more = reallocarray(fresh, count + 1, sizeof *more);

                end = end_of_day(f, first);
                if (!more) {
                        st = error_no_memory(err);
                        break;
                }
                fresh = more;
                fresh[count] = (struct day_keys){ .day = day_of_row(&f->samples[first]) };
                count++;
                st = write_day_stacks(f, first, end, fresh[count - 1].day, &fresh[count - 1].keys, err);
        }
        if (!st && f->add_count)
                st = commit(f, (struct table_change){ .table = TABLE_STACKS }, err);
        for (size_t i = 0; !st && i < count; i++) {
                struct key_map *known = known_stacks_loaded(&f->s->known, fresh[i].day);

                if (known)
                        st = key_map_merge(known, &fresh[i].keys, err);
        }
        day_keys_free(fresh, count);
        return st;
}

/* ---- samples ------------------------------------------------------------------------ */

static enum status write_day_samples(struct flush *f, const struct label_columns *columns, size_t first, size_t end,
                                     struct error *err)
{
        int64_t day = day_of_row(&f->samples[first]);
        unsigned number = 0;
        enum status st = check_stopping(f->s, err);

        for (size_t n; !st && first < end; first += n) {
                _cleanup_free_ char *path = NULL;
                struct table_add *add;

                n = end - first;
                st = next_add(f, &day, number++, &add, err);
                if (st)
                        break;
                path = table_path(&f->s->logs, TABLE_SAMPLES, add->name);
                st = path ? part_write_samples(path, columns, f->samples + first, &n, f->s->options.part_rows,
                                               &add->written, err)
                          : error_no_memory(err);
        }
        return st;
}

static enum status flush_samples(struct flush *f, struct error *err)
{
        struct profile_store *s = f->s;
        _cleanup_(label_columns_deinit) struct label_columns columns = { 0 };
        bool grown;
        enum status st = flush_columns(f->batches, f->batch_count, &s->tables->columns, &columns, &grown, err);

        for (size_t first = 0, end; !st && first < f->sample_count; first = end) {
                end = end_of_day(f, first);
                st = write_day_samples(f, &columns, first, end, err);
        }
        if (st)
                return st;
        return commit(f,
                      (struct table_change){
                              .table = TABLE_SAMPLES, .flushed = f->last, .columns = grown ? &columns : NULL },
                      err);
}

/* ---- the whole ------------------------------------------------------------------------ */

/* Step 4. What could not be remembered stays in its segments, which are then kept. */
static enum status remember_batches(struct flush *f, struct error *err)
{
        _cleanup_free_ struct hash128 *ids = calloc(f->batch_count + 1, sizeof *ids);

        if (!ids)
                return error_no_memory(err);
        for (size_t i = 0; i < f->batch_count; i++)
                ids[i] = f->batches[i]->batch_id;
        return batch_ids_add(f->s->ids, ids, f->batch_count, stable_unix_s(), err);
}

static enum status wanted_ids(struct flush *f, struct build_id **ret, size_t *count_ret, struct error *err)
{
        struct build_id *ids = calloc(f->row_count + 1, sizeof *ids);
        size_t n = 0;

        if (!ids)
                return error_no_memory(err);
        for (size_t i = 0; i < f->row_count; i++) { /* sorted by build-id */
                const struct build_id *id = &f->rows[i].shown.build_id;

                if ((f->rows[i].state == SYMBOL_NO_DEBUGINFO || f->rows[i].state == SYMBOL_STRIPPED) &&
                    (!n || !build_id_equal(&ids[n - 1], id)))
                        ids[n++] = *id;
        }
        *ret = ids;
        *count_ret = n;
        return ST_OK;
}

enum status (*flush_test_hook)(const struct batch *b, struct error *err);

/* ---- one group ------------------------------------------------------------------------ */

static enum status flush_group(struct flush *f, struct error *err)
{
        struct profile_store *s = f->s;
        enum status st;

        f->blames_batches = true;
        st = flush_sort(f->batches, f->batch_count, &f->samples, &f->sample_count, err);
        for (size_t i = 0; !st && flush_test_hook && i < f->batch_count; i++)
                st = flush_test_hook(f->batches[i], err);
        if (!st)
                st = flush_locations(f, err);
        if (!st)
                st = flush_stacks(f, err);
        if (!st)
                st = flush_samples(f, err);
        if (!st) {
                f->blames_batches = false;
                st = remember_batches(f, err);
        }
        if (!st)
                st = store_show(s, err);
        s->behind = st && f->committing;
        return st ? st : raw_queue_release(s->queue, f->last, err);
}

static bool is_environment(enum status st)
{
        return st == ST_OS || st == ST_BUSY;
}

static uint64_t count_days(const struct batch *b, struct key_map *days)
{
        for (uint32_t i = 0; i < b->sample_count; i++) {
                struct hash128 key = key_of_u64((uint64_t)day_of_us(b->samples[i].time_us));

                if (key_map_put(days, &key, 0, NULL, NULL, NULL))
                        return UINT64_MAX; /* no memory: the group ends here */
        }
        return days->count;
}

/* How many of the batches, at least one, go into one commit. */
static size_t size_group(struct batch *const *batches, size_t count)
{
        _cleanup_key_map_ struct key_map days = { 0 };
        uint64_t bytes = 0;
        size_t n;

        for (n = 0; n < count; n++) {
                bytes += batches[n]->arena.used;
                if (bytes > LIMIT_FLUSH_BATCH_BYTES || count_days(batches[n], &days) > LIMIT_FLUSH_DATES)
                        break;
        }
        return n ? n : 1;
}

/* ---- quarantine ------------------------------------------------------------------------- */

static enum status remember_one(struct profile_store *s, const struct hash128 *id, struct error *err)
{
        return batch_ids_add(s->ids, id, 1, stable_unix_s(), err);
}

/*
 * The file is durable first: from then on replay passes over the record. The empty commit gives the record's position
 * up, so that its segment can be unlinked.
 */
static enum status quarantine_batch(struct profile_store *s, const struct batch *b, const char *reason,
                                    struct error *err)
{
        _cleanup_buf_ struct buf file;
        struct raw_record record;
        enum status st;

        buf_init(&file, LIMIT_QUEUE_SEGMENT_FILE_BYTES);
        st = raw_queue_read(s->queue, b->position, &file, &record, err);
        if (!st)
                st = quarantine_add(s->dir, &record, reason, err);
        if (st)
                return st;
        health_set_quarantine(s, quarantine_count(s->dir), reason);
        s->behind = true;
        st = remember_one(s, &b->batch_id, err);
        if (!st)
                st = tables_commit(&s->logs, &(struct table_change){ .table = TABLE_SAMPLES, .flushed = b->position }, err);
        if (!st)
                st = store_show(s, err);
        if (st)
                return st;
        s->behind = false;
        metric_add(&quarantined, 1);
        return raw_queue_release(s->queue, b->position, err);
}

/* A lone batch failed; ST_OK when it is out of the way. */
static enum status isolate_batch(struct profile_store *s, const struct batch *b, enum status why, struct error *err)
{
        struct error reason = *err;

        if (why == ST_NO_MEMORY) { /* perhaps of the machine, perhaps a limit of ours that it passes */
                s->starved_attempts = s->starved_position == b->position ? s->starved_attempts + 1 : 1;
                s->starved_position = b->position;
                if (s->starved_attempts < NO_MEMORY_ATTEMPTS)
                        return why;
        }
        return quarantine_batch(s, b, reason.text, err);
}

/* ---- all that is queued ------------------------------------------------------------------- */

struct flush_run {
        struct profile_store *s;
        struct batch **batches;
        size_t batch_count;
        uint64_t sealed; /* position up to which the queue is durable */
        struct build_id *wanted;
        size_t wanted_count;
        bool wrote;
};

static void flush_run_deinit(struct flush_run *r)
{
        batches_unref(r->batches, r->batch_count);
        free(r->wanted);
}

static enum status add_wanted(struct flush_run *r, struct flush *f, struct error *err)
{
        _cleanup_free_ struct build_id *ids = NULL;
        struct build_id *more;
        size_t count = 0;
        enum status st;

        if (!r->s->options.wanted)
                return ST_OK;
        st = wanted_ids(f, &ids, &count, err);
        if (st || !count)
                return st;
        more = reallocarray(r->wanted, r->wanted_count + count, sizeof *more);
        if (!more)
                return error_no_memory(err);
        r->wanted = more;
        memcpy(more + r->wanted_count, ids, count * sizeof *ids);
        r->wanted_count += count;
        return ST_OK;
}

/* The batches [at, at + count). */
static enum status flush_some(struct flush_run *r, size_t at, size_t count, bool *blames_batches_ret, struct error *err)
{
        _cleanup_(flush_deinit) struct flush f = { .s = r->s,
                                                   .batches = r->batches + at,
                                                   .batch_count = count,
                                                   .first = r->s->flushed + 1,
                                                   .last = r->batches[at + count - 1]->position };
        enum status st;

        if (at + count == r->batch_count && r->sealed > f.last)
                f.last = r->sealed;
        arena_init(&f.arena, LIMIT_FLUSH_MEMORY_BYTES);
        st = flush_group(&f, err);
        *blames_batches_ret = f.blames_batches && !is_environment(st);
        return st ? st : add_wanted(r, &f, err);
}

/* A group that failed is halved until it works; s->flushed moves on with each commit. */
static enum status flush_all(struct flush_run *r, struct error *err)
{
        struct profile_store *s = r->s;
        size_t at = 0, most = SIZE_MAX;

        for (;;) {
                bool blames_batches = false;
                size_t n;
                enum status st = check_stopping(s, err);

                if (!st)
                        st = store_catch_up(s, err);
                if (st)
                        return st;
                while (at < r->batch_count && r->batches[at]->position <= s->flushed)
                        at++;
                if (at == r->batch_count)
                        return ST_OK;
                n = size_group(r->batches + at, r->batch_count - at);
                n = n < most ? n : most;
                st = flush_some(r, at, n, &blames_batches, err);
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

/* The batches that no sync covered: their senders were told so, and their positions will not be used. */
static enum status take_durable(struct flush_run *r, struct error *err)
{
        struct profile_store *s = r->s;
        enum status st;

        pthread_mutex_lock(&s->lock);
        if (raw_queue_has_failed(s->queue))
                head_drop_above(s, r->sealed);
        st = head_take(s, &r->batches, &r->batch_count, err);
        pthread_mutex_unlock(&s->lock);
        return st;
}

/* All that was acknowledged is in the tables now: nothing of the file whose sync failed is needed any more. */
static enum status recover_queue(struct flush_run *r, struct error *err)
{
        struct profile_store *s = r->s;
        enum status st;

        if (!raw_queue_has_failed(s->queue))
                return ST_OK;
        st = raw_queue_release(s->queue, r->sealed, err);
        if (!st)
                st = raw_queue_recover(s->queue, err);
        if (!st)
                health_set_sync(s, ST_OK, NULL);
        return st;
}

static enum status flush_locked(struct flush_run *r, struct error *err)
{
        struct profile_store *s = r->s;
        enum status st = store_catch_up(s, err);

        if (!st)
                st = raw_queue_seal(s->queue, &r->sealed, err);
        if (!st)
                st = take_durable(r, err);
        if (!st)
                st = flush_all(r, err);
        return st ? st : recover_queue(r, err);
}

void flush_register_metrics(void)
{
        metric_register(&flushes);
        metric_register(&failures);
        metric_register(&quarantined);
        for (size_t i = 0; i < SYMBOL_STATE_COUNT; i++)
                if (unresolved[i].name)
                        metric_register(&unresolved[i]);
}

enum status flush_once(struct profile_store *s, struct error *err)
{
        _cleanup_(flush_run_deinit) struct flush_run r = { .s = s };
        struct error unused = { 0 };
        enum status st;

        err = err ? err : &unused; /* its text is kept for profile_store_health() */
        pthread_mutex_lock(&s->writer);
        st = flush_locked(&r, err);
        pthread_mutex_unlock(&s->writer);
        if (!atomic_load(&s->stopping))
                health_set_flush(s, st, err);
        if (r.wanted_count)
                s->options.wanted(s->options.wanted_context, r.wanted, r.wanted_count);
        metric_add(st ? &failures : &flushes, st || r.wrote); /* last: who sees the count finds all done */
        return st;
}
