/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two objects: struct flush_run is one call, with all durable batches of the head; struct flush is one group of them,
 * with the files of the current commit. The samples of a group are sorted by day once; a day is then a range of
 * `samples`.
 *
 * In the file: the files of a commit; steps 1 to 4 of the header, a section for each; flush_group(), their sequence;
 * the size of a group; isolation of a batch that fails alone; flush_queued_batches(), the loop that halves groups;
 * the call, with recovery of a failed queue.
 *
 * Two flags attribute a failure. `blames_batches` is false while known rows are read from the tables and after the
 * commit of the samples: such a failure is not due to the batches, so the group is not halved; nor is it after ST_OS
 * or ST_BUSY. `committing` is set by the first attempt of a commit: after a failure s->behind is set, and
 * store_reconcile() reads from the logs what was committed.
 *
 * Locks: the whole run holds s->writer_lock, and each group also flush_turn; s->lock is held to copy the batches and
 * to publish the tables. options.missing_debuginfo is called without a lock.
 */
#include "profile-store/core/flush.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "common/memory/array.h"
#include "common/clock.h"
#include "common/stable_clock.h"
#include "common/limits.h"
#include "common/metrics.h"
#include "profile-store/core/flush_rows.h"
#include "profile-store/rows/location_rows.h"
#include "profile-store/queue/quarantine.h"

static struct metric flushes = METRIC_COUNTER("cairn_flushes_total", "Flushes that committed at least one group.", "");
static struct histogram duration =
        HISTOGRAM("cairn_flush_duration_seconds", "Duration of flushes that committed at least one group.", "");
static struct metric failures = METRIC_COUNTER("cairn_flush_failures_total", "Failed flushes; each is repeated.", "");
#define UNRESOLVED(r)                                                                                                  \
        METRIC_COUNTER("cairn_unresolved_frames_total", "New locations without frames when they were flushed.", r)
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
                                                  "Batches that failed alone and were moved to the quarantine.", "");

#define NO_MEMORY_ATTEMPTS                                                                                             \
        3 /* consecutive flushes in which a batch alone runs out of memory before it is quarantined */

/*
 * Held shared by the flushes of all stores of the process, which share the memory of MEMORY_FLUSH. Held exclusively to
 * retry a batch that alone ran out of memory, so that it is quarantined for its own size and not for what another store
 * held. Lock order: after writer_lock. Exclusive waiters take precedence.
 */
static pthread_rwlock_t flush_turn = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;

/* A group: consecutive batches that are committed together, one commit per table. */
struct flush {
        struct profile_store *s;
        struct batch *const *batches;
        size_t batch_count;
        uint64_t first, last;                           /* positions */
        bool blames_batches;                            /* a failure now is caused by the batches, not disk or tables */
        bool committing;                                /* a commit was attempted: the logs may be ahead of s->tables */
        struct memory_reservation memory;               /* of the arrays below and of called functions */
        uint64_t unresolved_counts[SYMBOL_STATE_COUNT]; /* new locations by state */
        struct wanted_object *missing;                  /* of new locations that lack debuginfo */
        size_t missing_count, missing_capacity;
        struct sample_row *samples; /* sorted by day, then in the order of a part */
        size_t sample_count;
        struct table_add *adds; /* of the current commit */
        size_t add_count, add_capacity;
};

static void clear_table_adds(struct flush *f)
{
        for (size_t i = 0; i < f->add_count; i++)
                table_add_deinit(&f->adds[i]);
        free(f->adds);
        f->adds = NULL;
        f->add_count = f->add_capacity = 0;
}

static void flush_deinit(struct flush *f)
{
        clear_table_adds(f);
        free(f->missing);
        free(f->samples);
        memory_release(&f->memory);
}

/* Refused memory is reported as ST_NO_MEMORY: the group is halved, and a single batch is retried later. */
static enum status reserve_flush_memory(struct flush *f, size_t bytes, struct error *err)
{
        return memory_reserve(&f->memory, bytes, err) ? ST_NO_MEMORY : ST_OK;
}

/*
 * Add the next file of the commit. Its name is made of the positions and its number among the files of its day; it is
 * below the day's folder if it has a day.
 */
static enum status append_table_add(struct flush *f, const int64_t *day, unsigned number, struct table_add **ret,
                                    struct error *err)
{
        char name[96], suffix[16] = "";
        struct table_add *add;

        if (!array_reserve(&f->adds, &f->add_capacity, f->add_count))
                return error_no_memory(err);
        add = &f->adds[f->add_count];
        if (number)
                snprintf(suffix, sizeof suffix, "-%u", number);
        snprintf(name, sizeof name, "part-%020" PRIu64 "-%020" PRIu64 "%s.parquet", f->first, f->last, suffix);
        *add = (struct table_add){ .name = day ? make_day_path(*day, name) : strdup(name),
                                   .has_day = day,
                                   .day = day ? *day : 0 };
        if (!add->name)
                return error_no_memory(err);
        f->add_count++;
        *ret = add;
        return ST_OK;
}

static enum status commit_adds(struct flush *f, struct table_change change, struct error *err)
{
        enum status st;

        f->committing = true;
        change.adds = f->adds;
        change.add_count = f->add_count;
        st = tables_commit(&f->s->logs, &change, err);
        clear_table_adds(f);
        return st;
}

/* Shutdown waits for at most one file: queued batches are durable. */
static enum status check_stopping(struct profile_store *s, struct error *err)
{
        return atomic_load(&s->stopping) ? error_set(err, ST_BUSY, "the store is being closed") : ST_OK;
}

/* ---- locations ---------------------------------------------------------------------- */

/* Distinct locations of the batches that the table lacks. */
struct new_locations {
        const struct batch_location **items; /* owned */
        size_t count;
        struct key_map ids; /* id to index in items, or KNOWN_ROW */
};

static void new_locations_deinit(struct new_locations *n)
{
        free(n->items);
        key_map_deinit(&n->ids);
}

static enum status collect_locations(struct flush *f, struct new_locations *n, struct error *err)
{
        size_t room = 0;
        enum status st = ST_OK;

        for (size_t i = 0; i < f->batch_count; i++)
                room += f->batches[i]->location_count;
        st = reserve_flush_memory(f, room * sizeof(void *), err);
        if (st)
                return st;
        n->items = calloc(room + 1, sizeof(void *));
        if (!n->items)
                return error_no_memory(err);
        for (size_t i = 0; i < f->batch_count; i++) {
                for (uint32_t k = 0; k < f->batches[i]->location_count; k++) {
                        const struct batch_location *l = &f->batches[i]->locations[k];
                        struct hash128 key = make_u64_key(l->id);
                        bool added;

                        st = key_map_put(&n->ids, &key, n->count, &added, NULL, err);
                        if (st)
                                return st;
                        if (added)
                                n->items[n->count++] = l;
                }
        }
        return ST_OK;
}

static void drop_known_locations(struct new_locations *n)
{
        size_t kept = 0;

        for (size_t i = 0; i < n->count; i++) {
                struct hash128 key = make_u64_key(n->items[i]->id);

                if (*key_map_find(&n->ids, &key) != KNOWN_ROW)
                        n->items[kept++] = n->items[i];
        }
        n->count = kept;
}

/* rows are sorted by build-id. Collect the objects that lack debuginfo, each once per call. */
static enum status append_missing_objects(struct flush *f, const struct location_row *rows, size_t count,
                                          struct error *err)
{
        const size_t first = f->missing_count;

        if (!f->s->options.missing_debuginfo)
                return ST_OK;
        if (!array_reserve_many(&f->missing, &f->missing_capacity, f->missing_count, count))
                return error_no_memory(err);
        for (size_t i = 0; i < count; i++) {
                const struct build_id *id = rows[i].shown.build_id;
                struct wanted_object *last = f->missing_count > first ? &f->missing[f->missing_count - 1] : NULL;

                if (!symbol_state_wants_upstream(rows[i].state, rows[i].shown.quality))
                        continue;
                if (last && build_id_equal(&last->id, id))
                        last->weight++;
                else
                        f->missing[f->missing_count++] = (struct wanted_object){ *id, rows[i].sender, 1 };
        }
        return ST_OK;
}

static enum status write_location_files(struct flush *f, struct location_row *rows, size_t count, struct error *err)
{
        const struct part_limits limits = { .max_rows = f->s->options.part_rows, .use = MEMORY_FLUSH };
        enum status st = ST_OK;

        for (size_t done = 0, n; !st && done < count; done += n) {
                _cleanup_free_ char *key = NULL;
                struct table_add *add;

                n = count - done;
                st = append_table_add(f, NULL, (unsigned)f->add_count, &add, err);
                if (st)
                        break;
                key = make_table_key(TABLE_LOCATIONS, add->name);
                st = key ? part_write_locations(f->s->storage, key, rows + done, &n, &limits, &add->written, err)
                         : error_no_memory(err);
        }
        return st;
}

/*
 * Look up a slice of locations and write it. ST_BUSY or ST_NO_MEMORY when memory was refused: a smaller slice may
 * succeed. A slice of LEAST_SLICE_ROWS needs no reservation: locations whose names do not fit into LEAST_SLICE_BYTES
 * become SYMBOL_TOO_LARGE, so the flush always makes progress.
 */
#define LEAST_SLICE_ROWS 256
#define LEAST_SLICE_BYTES MiB(4)
static enum status flush_location_slice(struct flush *f, const struct batch_location *const *locations, size_t count,
                                        struct error *err)
{
        bool is_least = count <= LEAST_SLICE_ROWS;
        _cleanup_memory_ struct memory_reservation memory = { .use = MEMORY_FLUSH };
        _cleanup_arena_ struct arena arena;
        _cleanup_free_ struct location_row *rows = NULL;
        enum status st = is_least ? ST_OK : memory_reserve(&memory, count * sizeof *rows, err);

        if (is_least)
                arena_init(&arena, LEAST_SLICE_BYTES);
        else
                arena_init_budget(&arena, LIMIT_FLUSH_MEMORY_BYTES, MEMORY_FLUSH);
        if (st)
                return ST_BUSY;
        rows = calloc(count, sizeof *rows);
        if (!rows)
                return error_no_memory(err);
        for (size_t i = 0; !st && i < count; i++)
                st = location_row_from_batch(&rows[i], locations[i], &arena, err);
        if (!st)
                st = location_rows_resolve(rows, count, f->s->options.symbols, &arena, NULL, err);
        if (st)
                return st;
        qsort(rows, count, sizeof *rows, compare_location_rows);
        st = write_location_files(f, rows, count, err);
        for (size_t i = 0; !st && i < count; i++)
                f->unresolved_counts[rows[i].state]++;
        return st ? st : append_missing_objects(f, rows, count, err);
}

static enum status flush_location_slices(struct flush *f, const struct new_locations *n, struct error *err)
{
        size_t slice = n->count;
        enum status st = ST_OK;

        for (size_t done = 0; !st && done < n->count;) {
                size_t files = f->add_count;

                slice = slice < n->count - done ? slice : n->count - done;
                st = check_stopping(f->s, err);
                if (st)
                        return st;
                st = flush_location_slice(f, n->items + done, slice, err);
                if ((st == ST_BUSY || st == ST_NO_MEMORY) && slice > LEAST_SLICE_ROWS && f->add_count == files) {
                        slice /= 2;
                        st = ST_OK;
                } else if (!st) {
                        done += slice;
                }
        }
        return st;
}

static enum status flush_locations(struct flush *f, struct error *err)
{
        struct profile_store *s = f->s;
        _cleanup_(new_locations_deinit) struct new_locations n = { .ids.memory.use = MEMORY_FLUSH };
        enum status st = collect_locations(f, &n, err);

        if (st)
                return st;
        f->blames_batches = false;
        st = known_rows_mark_locations(&s->known, s->tables, &n.ids, err);
        f->blames_batches = !st;
        if (st)
                return st;
        drop_known_locations(&n);
        if (!n.count)
                return ST_OK;
        st = flush_location_slices(f, &n, err);
        if (!st)
                st = commit_adds(f, (struct table_change){ .table = TABLE_LOCATIONS }, err);
        if (st)
                return st;
        for (size_t i = 0; i < SYMBOL_STATE_COUNT; i++) {
                if (unresolved[i].name)
                        metric_add(&unresolved[i], (int64_t)f->unresolved_counts[i]);
        }
        known_rows_add_locations(&s->known, &n.ids);
        return ST_OK;
}

/* ---- stacks ------------------------------------------------------------------------- */

static int compare_stack_ids(const void *a, const void *b)
{
        const struct batch_stack *const *x = a, *const *y = b;

        return memcmp((*x)->id.bytes, (*y)->id.bytes, sizeof(*x)->id.bytes);
}

/* The samples of one day in a group. */
struct flush_day {
        int64_t day;
        size_t first, end;     /* samples [first, end) */
        struct key_map stacks; /* ids of the stacks of these samples, to KNOWN_ROW if the day has them already */
};

/* Collect the distinct stacks of the day's samples that the table lacks. stacks: room for one per sample. */
static enum status collect_day_stacks(struct flush *f, struct flush_day *d, const struct batch_stack **stacks,
                                      size_t *count_ret, struct error *err)
{
        size_t count = 0, kept = 0;
        enum status st = ST_OK;

        for (size_t i = d->first; !st && i < d->end; i++) {
                const struct batch_stack *stack = &f->samples[i].batch->stacks[f->samples[i].sample->stack];
                bool added;

                st = key_map_put(&d->stacks, &stack->id, 0, &added, NULL, err);
                if (!st && added)
                        stacks[count++] = stack;
        }
        if (st)
                return st;
        f->blames_batches = false;
        st = known_rows_mark_stacks(&f->s->known, f->s->tables, d->day, &d->stacks, err);
        f->blames_batches = !st;
        for (size_t i = 0; !st && i < count; i++) {
                if (*key_map_find(&d->stacks, &stacks[i]->id) != KNOWN_ROW)
                        stacks[kept++] = stacks[i];
        }
        *count_ret = kept;
        return st;
}

/* Write the stacks of the day's samples that the table lacks. */
static enum status write_day_stacks(struct flush *f, struct flush_day *d, struct error *err)
{
        const struct part_limits limits = { .max_rows = f->s->options.part_rows, .use = MEMORY_FLUSH };
        _cleanup_memory_ struct memory_reservation memory = { .use = MEMORY_FLUSH };
        _cleanup_free_ const struct batch_stack **stacks = NULL;
        size_t count = 0;
        unsigned number = 0;
        enum status st = check_stopping(f->s, err);

        if (!st && memory_reserve(&memory, (d->end - d->first) * sizeof *stacks, err))
                st = ST_NO_MEMORY;
        if (!st && !(stacks = calloc(d->end - d->first, sizeof *stacks)))
                st = error_no_memory(err);
        if (!st)
                st = collect_day_stacks(f, d, stacks, &count, err);
        if (st || !count)
                return st;
        qsort(stacks, count, sizeof *stacks, compare_stack_ids);
        for (size_t done = 0, n; !st && done < count; done += n) {
                _cleanup_free_ char *key = NULL;
                struct table_add *add;

                n = count - done;
                st = append_table_add(f, &d->day, number++, &add, err);
                if (st)
                        break;
                key = make_table_key(TABLE_STACKS, add->name);
                st = key ? part_write_stacks(f->s->storage, key, stacks + done, &n, &limits, &add->written, err)
                         : error_no_memory(err);
        }
        return st;
}

static int64_t get_row_day(const struct sample_row *row)
{
        return day_of_us(row->sample->time_us);
}

static size_t find_day_end(const struct flush *f, size_t first)
{
        size_t end = first + 1;

        while (end < f->sample_count && get_row_day(&f->samples[end]) == get_row_day(&f->samples[first]))
                end++;
        return end;
}

static void free_flush_days(struct flush_day *days, size_t count)
{
        for (size_t i = 0; i < count; i++)
                key_map_deinit(&days[i].stacks);
        free(days);
}

static enum status flush_stacks(struct flush *f, struct error *err)
{
        struct flush_day *days = NULL;
        size_t count = 0, capacity = 0;
        enum status st = ST_OK;

        for (size_t first = 0, end; !st && first < f->sample_count; first = end) {
                end = find_day_end(f, first);
                if (!array_reserve(&days, &capacity, count)) {
                        st = error_no_memory(err);
                        break;
                }
                days[count] = (struct flush_day){ .day = get_row_day(&f->samples[first]),
                                                  .first = first,
                                                  .end = end,
                                                  .stacks.memory.use = MEMORY_FLUSH };
                st = write_day_stacks(f, &days[count++], err);
        }
        if (!st && f->add_count)
                st = commit_adds(f, (struct table_change){ .table = TABLE_STACKS }, err);
        for (size_t i = 0; !st && i < count; i++)
                known_rows_add_stacks(&f->s->known, days[i].day, &days[i].stacks);
        free_flush_days(days, count);
        return st;
}

/* ---- samples ------------------------------------------------------------------------ */

static enum status write_day_samples(struct flush *f, const struct label_columns *columns, size_t first, size_t end,
                                     struct error *err)
{
        int64_t day = get_row_day(&f->samples[first]);
        const struct part_limits limits = { .max_rows = f->s->options.part_rows, .use = MEMORY_FLUSH };
        unsigned number = 0;
        enum status st = check_stopping(f->s, err);

        for (size_t n; !st && first < end; first += n) {
                _cleanup_free_ char *key = NULL;
                struct table_add *add;

                n = end - first;
                st = append_table_add(f, &day, number++, &add, err);
                if (st)
                        break;
                key = make_table_key(TABLE_SAMPLES, add->name);
                st = key ? part_write_samples(f->s->storage, key, columns, f->samples + first, &n, &limits,
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
        enum status st = extend_label_columns(f->batches, f->batch_count, &s->tables->columns, &columns, &grown, err);

        for (size_t first = 0, end; !st && first < f->sample_count; first = end) {
                end = find_day_end(f, first);
                st = write_day_samples(f, &columns, first, end, err);
        }
        if (st)
                return st;
        return commit_adds(
                f,
                (struct table_change){ .table = TABLE_SAMPLES, .flushed = f->last, .columns = grown ? &columns : NULL },
                err);
}

/* ---- batch ids ------------------------------------------------------------------------ */

/* Step 4. On failure the segments are kept; their replay remembers the ids. */
static enum status remember_batch_ids(struct flush *f, struct error *err)
{
        _cleanup_free_ struct hash128 *ids = calloc(f->batch_count + 1, sizeof *ids);

        if (!ids)
                return error_no_memory(err);
        for (size_t i = 0; i < f->batch_count; i++)
                ids[i] = f->batches[i]->batch_id;
        return batch_ids_add(f->s->ids, ids, f->batch_count, stable_unix_s(), err);
}

/* ---- one group ------------------------------------------------------------------------ */

static enum status flush_group(struct flush *f, struct error *err)
{
        struct profile_store *s = f->s;
        enum status st;

        f->blames_batches = true;
        st = reserve_flush_memory(f, get_sort_bytes(f->batches, f->batch_count), err);
        if (!st)
                st = sort_flush_samples(f->batches, f->batch_count, &f->samples, &f->sample_count, err);
        for (size_t i = 0; !st && s->inject_failure && i < f->batch_count; i++)
                st = s->inject_failure(f->batches[i], err);
        if (!st)
                st = flush_locations(f, err);
        if (!st)
                st = flush_stacks(f, err);
        if (!st)
                st = flush_samples(f, err);
        if (!st) {
                f->blames_batches = false;
                st = remember_batch_ids(f, err);
        }
        if (!st)
                st = store_publish_tables(s, err);
        s->behind = st && f->committing;
        return st ? st : raw_queue_release(s->queue, f->last, err);
}

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
                if (bytes > LIMIT_FLUSH_BATCH_BYTES || count_batch_days(batches[n], &days) > LIMIT_FLUSH_DATES)
                        break;
        }
        return n ? n : 1;
}

/* ---- quarantine ------------------------------------------------------------------------- */

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
                st = tables_commit(&s->logs, &(struct table_change){ .table = TABLE_SAMPLES, .flushed = b->position },
                                   err);
        if (!st)
                st = store_publish_tables(s, err);
        if (st)
                return st;
        s->behind = false;
        metric_add(&quarantined, 1);
        return raw_queue_release(s->queue, b->position, err);
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
static enum status take_missing_objects(struct flush_run *r, const struct flush *f, struct error *err)
{
        if (!f->missing_count)
                return ST_OK;
        if (!array_reserve_many(&r->missing, &r->missing_capacity, r->missing_count, f->missing_count))
                return error_no_memory(err);
        memcpy(r->missing + r->missing_count, f->missing, f->missing_count * sizeof *r->missing);
        r->missing_count += f->missing_count;
        return ST_OK;
}

/* Flush the batches [at, at + count) as one group. */
static enum status flush_batch_range(struct flush_run *r, size_t at, size_t count, bool *blames_batches_ret,
                                     struct error *err)
{
        _cleanup_(flush_deinit) struct flush f = { .s = r->s,
                                                   .memory.use = MEMORY_FLUSH,
                                                   .batches = r->batches + at,
                                                   .batch_count = count,
                                                   .first = r->s->flushed + 1,
                                                   .last = r->batches[at + count - 1]->position };
        enum status st;

        if (at + count == r->batch_count && r->sealed > f.last)
                f.last = r->sealed;
        assert(count > 0 && at + count <= r->batch_count);
        assert(f.first <= f.last);
        st = flush_group(&f, err);
        *blames_batches_ret = f.blames_batches && !is_environment_failure(st);
        if (!st)
                store_end_memory_claim(r->s);
        if (f.committing) {
                enum status taken = take_missing_objects(r, &f, st ? NULL : err);

                st = st ? st : taken;
        }
        return st;
}

/* All memory of the flush is released on return. */
static enum status flush_range_in_turn(struct flush_run *r, size_t at, size_t count, bool *blames_batches_ret,
                                       struct error *err)
{
        enum status st;

        if (is_starved_batch(r->s, r->batches[at]))
                pthread_rwlock_wrlock(&flush_turn);
        else
                pthread_rwlock_rdlock(&flush_turn);
        st = flush_batch_range(r, at, count, blames_batches_ret, err);
        pthread_rwlock_unlock(&flush_turn);
        return st;
}

/* A failed group is halved until it succeeds; s->flushed advances with each commit. */
static enum status flush_queued_batches(struct flush_run *r, struct error *err)
{
        struct profile_store *s = r->s;
        size_t at = 0, most = SIZE_MAX;

        for (;;) {
                bool blames_batches = false;
                size_t n;
                enum status st = check_stopping(s, err);

                if (!st)
                        st = store_reconcile(s, err);
                if (st)
                        return st;
                while (at < r->batch_count && r->batches[at]->position <= s->flushed)
                        at++;
                if (at == r->batch_count)
                        return ST_OK;
                n = choose_group_size(r->batches + at, r->batch_count - at);
                n = is_starved_batch(s, r->batches[at]) ? 1 : n < most ? n : most;
                st = flush_range_in_turn(r, at, n, &blames_batches, err);
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
        st = raw_queue_release(s->queue, r->sealed, err);
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
        for (size_t i = 0; i < SYMBOL_STATE_COUNT; i++)
                if (unresolved[i].name)
                        metric_register(&unresolved[i]);
}

enum status store_flush(struct profile_store *s, struct error *err)
{
        _cleanup_(flush_run_deinit) struct flush_run r = { .s = s };
        struct error unused = { 0 };
        int64_t began_ns;
        enum status st;

        err = err ? err : &unused; /* its text is kept for profile_store_get_health() */
        pthread_mutex_lock(&s->writer_lock);
        began_ns = monotonic_ns();
        st = flush_under_lock(&r, err);
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
