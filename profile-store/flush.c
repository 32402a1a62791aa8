/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-store/flush.h"

#include <inttypes.h>
#include <string.h>

#include "common/clock.h"
#include "common/limits.h"
#include "common/metrics.h"
#include "profile-store/flush_rows.h"
#include "profile-store/location_rows.h"

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
};

struct flush {
        struct profile_store *s;
        struct batch **batches;
        size_t batch_count;
        uint64_t first, last; /* positions */
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
        batches_unref(f->batches, f->batch_count);
        arena_deinit(&f->arena);
        free(f->rows);
        free(f->samples);
}

/* The next file of the commit; its name is by the positions, and below its day's folder when it has one. */
static enum status next_add(struct flush *f, const int64_t *day, struct table_add **ret, struct error *err)
{
        struct table_add *more = reallocarray(f->adds, f->add_count + 1, sizeof *more);
        char name[80];

        if (!more)
                return error_no_memory(err);
        f->adds = more;
        snprintf(name, sizeof name, "part-%020" PRIu64 "-%020" PRIu64 ".parquet", f->first, f->last);
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

        change.adds = f->adds;
        change.add_count = f->add_count;
        st = tables_commit(&f->s->logs, &change, err);
        clear_adds(f);
        return st;
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

static enum status flush_locations(struct flush *f, struct error *err)
{
        struct profile_store *s = f->s;
        _cleanup_key_map_ struct key_map fresh = { 0 };
        _cleanup_free_ char *path = NULL;
        struct key_map *known;
        struct table_add *add;
        enum status st = known_locations(&s->known, s->tables, &known, err);

        if (!st)
                st = collect_locations(f, known, &fresh, err);
        if (st || !f->row_count)
                return st;
        st = location_rows_resolve(f->rows, f->row_count, s->options.symbols, &f->arena, NULL, err);
        if (st)
                return st;
        qsort(f->rows, f->row_count, sizeof *f->rows, location_row_compare);
        st = next_add(f, NULL, &add, err);
        if (st)
                return st;
        path = table_path(&s->logs, TABLE_LOCATIONS, add->name);
        st = path ? part_write_locations(path, f->rows, f->row_count, &add->written, err) : error_no_memory(err);
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
        _cleanup_free_ char *path = NULL;
        struct key_map *known;
        struct table_add *add;
        size_t count = 0;
        enum status st = stacks ? known_stacks(&f->s->known, f->s->tables, day, &known, err) : error_no_memory(err);

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
        st = next_add(f, &day, &add, err);
        if (st)
                return st;
        path = table_path(&f->s->logs, TABLE_STACKS, add->name);
        return path ? part_write_stacks(path, stacks, count, &add->written, err) : error_no_memory(err);
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

static enum status flush_samples(struct flush *f, struct error *err)
{
        struct profile_store *s = f->s;
        _cleanup_(label_columns_deinit) struct label_columns columns = { 0 };
        bool grown;
        enum status st = flush_columns(f->batches, f->batch_count, &s->tables->columns, &columns, &grown, err);

        for (size_t first = 0, end; !st && first < f->sample_count; first = end) {
                int64_t day = day_of_row(&f->samples[first]);
                _cleanup_free_ char *path = NULL;
                struct table_add *add;

                end = end_of_day(f, first);
                st = next_add(f, &day, &add, err);
                if (st)
                        break;
                path = table_path(&s->logs, TABLE_SAMPLES, add->name);
                st = path ? part_write_samples(path, &columns, f->samples + first, end - first, &add->written, err)
                          : error_no_memory(err);
        }
        if (st)
                return st;
        return commit(f,
                      (struct table_change){
                              .table = TABLE_SAMPLES, .flushed = f->last, .columns = grown ? &columns : NULL },
                      err);
}

/* ---- the whole ------------------------------------------------------------------------ */

/* Step 5. What could not be remembered stays in its segments, which are then kept. */
static enum status remember_batches(struct flush *f, struct error *err)
{
        _cleanup_free_ struct hash128 *ids = calloc(f->batch_count + 1, sizeof *ids);

        if (!ids)
                return error_no_memory(err);
        for (size_t i = 0; i < f->batch_count; i++)
                ids[i] = f->batches[i]->batch_id;
        return batch_ids_add(f->s->ids, ids, f->batch_count, wall_clock_ns() / 1000000000, err);
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

static enum status flush_taken(struct flush *f, struct error *err)
{
        struct profile_store *s = f->s;
        enum status st = flush_sort(f->batches, f->batch_count, &f->samples, &f->sample_count, err);

        if (!st)
                st = flush_locations(f, err);
        if (!st)
                st = flush_stacks(f, err);
        if (!st)
                st = flush_samples(f, err);
        if (!st)
                st = remember_batches(f, err);
        if (!st)
                st = store_show(s, err);
        s->behind = st != ST_OK;
        return st ? st : raw_queue_release(s->queue, f->last, err);
}

static enum status flush_locked(struct flush *f, struct error *err)
{
        struct profile_store *s = f->s;
        uint64_t sealed;
        enum status st = store_catch_up(s, err);

        if (!st)
                st = raw_queue_seal(s->queue, &sealed, err);
        if (st)
                return st;
        pthread_mutex_lock(&s->lock);
        f->first = s->flushed + 1;
        st = head_take(s, &f->batches, &f->batch_count, err);
        pthread_mutex_unlock(&s->lock);
        if (st || !f->batch_count)
                return st;
        f->last = f->batches[f->batch_count - 1]->position;
        f->last = f->last > sealed ? f->last : sealed;
        return flush_taken(f, err);
}

void flush_register_metrics(void)
{
        metric_register(&flushes);
        metric_register(&failures);
        for (size_t i = 0; i < SYMBOL_STATE_COUNT; i++)
                if (unresolved[i].name)
                        metric_register(&unresolved[i]);
}

enum status flush_once(struct profile_store *s, struct error *err)
{
        _cleanup_(flush_deinit) struct flush f = { .s = s };
        struct error unused;
        _cleanup_free_ struct build_id *wanted = NULL;
        size_t wanted_count = 0;
        enum status st;

        err = err ? err : &unused; /* its text is kept for profile_store_health() */
        arena_init(&f.arena, LIMIT_FLUSH_MEMORY_BYTES);
        pthread_mutex_lock(&s->writer);
        st = flush_locked(&f, err);
        pthread_mutex_unlock(&s->writer);
        health_set_flush(s, st, err);
        if (!st && s->options.wanted)
                st = wanted_ids(&f, &wanted, &wanted_count, err);
        if (!st && wanted_count)
                s->options.wanted(s->options.wanted_context, wanted, wanted_count);
        metric_add(st ? &failures : &flushes, st || f.batch_count); /* last: who sees the count finds all done */
        return st;
}
