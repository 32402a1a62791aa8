/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In the file: the files of a commit; its repetition when another node committed first; the locations, stacks, samples
 * and batch ids of a group, a section for each; flush_group_commit(), their sequence. The samples of a group are sorted
 * by day once; a day is then a range of `samples`.
 */
#include "profile-store/core/flush_group.h"

#include <inttypes.h>
#include <string.h>
#include <sys/random.h>

#include "common/memory/array.h"
#include "common/stable_clock.h"
#include "common/limits.h"
#include "common/metrics.h"
#include "profile-store/core/commit_group.h"
#include "profile-store/core/flush.h"
#include "profile-store/core/flush_rows.h"
#include "profile-store/core/table_follow.h"
#include "profile-store/rows/location_rows.h"

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

static struct metric conflicts =
        METRIC_COUNTER("cairn_commit_conflicts_total",
                       "Commits of flushes that were repeated because another node had committed first.", "");

static void clear_table_adds(struct flush_group *g)
{
        for (size_t i = 0; i < g->add_count; i++)
                table_add_deinit(&g->adds[i]);
        free(g->adds);
        g->adds = NULL;
        g->add_count = g->add_capacity = 0;
}

void flush_group_deinit(struct flush_group *g)
{
        clear_table_adds(g);
        free(g->missing);
        free(g->samples);
        memory_release(&g->memory);
}

/* Refused memory is reported as ST_NO_MEMORY: the group is halved, and a single batch is retried later. */
static enum status reserve_flush_memory(struct flush_group *g, size_t bytes, struct error *err)
{
        return memory_reserve(&g->memory, bytes, err) ? ST_NO_MEMORY : ST_OK;
}

/*
 * Names of nodes that share tables differ by the node. They also differ by the attempt: a commit whose answer was lost
 * may appear after the next attempt has replaced the files that it names, with other rows.
 */
static enum status choose_file_names(struct flush_group *g, struct error *err)
{
        uint32_t random;

        if (!has_shared_tables(g->s))
                return ST_OK;
        if (getrandom(&random, sizeof random, 0) != sizeof random)
                return error_os(err, errno, "cannot get random bytes for the names of files");
        snprintf(g->node, sizeof g->node, "%s-", g->s->logs.node);
        snprintf(g->attempt, sizeof g->attempt, "-%08" PRIx32, random);
        return ST_OK;
}

/*
 * Add the next file of the commit. Its name is made of the positions and its number among the files of its day; it is
 * below the day's folder if it has a day.
 */
static enum status append_table_add(struct flush_group *g, const int64_t *day, unsigned number, struct table_add **ret,
                                    struct error *err)
{
        char name[128], suffix[16] = "";
        struct table_add *add;

        if (!array_reserve(&g->adds, &g->add_capacity, g->add_count))
                return error_no_memory(err);
        add = &g->adds[g->add_count];
        if (number)
                snprintf(suffix, sizeof suffix, "-%u", number);
        snprintf(name, sizeof name, PART_PREFIX "%s%020" PRIu64 "-%020" PRIu64 "%s%s.parquet", g->node, g->first,
                 g->last, g->attempt, suffix);
        *add = (struct table_add){ .name = day ? make_day_path(*day, name) : strdup(name),
                                   .has_day = day,
                                   .day = day ? *day : 0 };
        if (!add->name)
                return error_no_memory(err);
        g->add_count++;
        *ret = add;
        return ST_OK;
}

static void complete_change(const struct flush_group *g, struct table_change *change)
{
        change->adds = g->adds;
        change->add_count = g->add_count;
        change->base = has_shared_tables(g->s) ? g->s->tables : NULL;
}

static enum status commit_adds(struct flush_group *g, struct table_change change, struct error *err)
{
        enum status st;

        g->committing = true;
        complete_change(g, &change);
        st = change.table == TABLE_SAMPLES ? commit_group_commit(g->s, &change, err)
                                           : tables_commit(&g->s->logs, &change, err);
        g->lost_race = st == ST_BUSY && has_shared_tables(g->s);
        return st;
}

/* Begin the group again when what it looked up, or its batches, are not as they were: the tables have been followed. */
static enum status check_group_current(struct flush_group *g, struct error *err)
{
        g->must_restart |= g->s->flushed >= g->first || g->s->tables->removal != g->removal;
        for (size_t i = 0; i < g->batch_count; i++)
                g->must_restart |= is_batch_committed(g->s, g->batches[i]);
        return g->must_restart
                       ? error_set(err, ST_BUSY, "another node committed a batch of this flush, or removes rows")
                       : ST_OK;
}

/*
 * Whether to repeat a step because another node committed to the table first. Its rows are then known, and ST_BUSY is
 * certain: nothing of this node was committed.
 */
static bool repeat_step(struct flush_group *g, int *attempts, enum status *st, struct error *err)
{
        if (*st != ST_BUSY || !g->lost_race || ++*attempts >= SHARED_COMMIT_ATTEMPTS)
                return false;
        g->lost_race = false;
        metric_add(&conflicts, 1);
        *st = store_follow_tables(g->s, err);
        if (!*st)
                *st = check_group_current(g, err);
        return !*st;
}

enum status flush_check_stopping(struct profile_store *s, struct error *err)
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

static enum status collect_locations(struct flush_group *g, struct new_locations *n, struct error *err)
{
        size_t room = 0;
        enum status st = ST_OK;

        for (size_t i = 0; i < g->batch_count; i++)
                room += g->batches[i]->location_count;
        st = reserve_flush_memory(g, room * sizeof(void *), err);
        if (st)
                return st;
        n->items = calloc(room + 1, sizeof(void *));
        if (!n->items)
                return error_no_memory(err);
        for (size_t i = 0; i < g->batch_count; i++) {
                for (uint32_t k = 0; k < g->batches[i]->location_count; k++) {
                        const struct batch_location *l = &g->batches[i]->locations[k];
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
static enum status append_missing_objects(struct flush_group *g, const struct location_row *rows, size_t count,
                                          struct error *err)
{
        const size_t first = g->missing_count;

        if (!g->s->options.missing_debuginfo)
                return ST_OK;
        if (!array_reserve_many(&g->missing, &g->missing_capacity, g->missing_count, count))
                return error_no_memory(err);
        for (size_t i = 0; i < count; i++) {
                const struct build_id *id = rows[i].shown.build_id;
                struct wanted_object *last = g->missing_count > first ? &g->missing[g->missing_count - 1] : NULL;

                if (!symbol_state_wants_upstream(rows[i].state, rows[i].shown.quality))
                        continue;
                if (last && build_id_equal(&last->id, id))
                        last->weight++;
                else
                        g->missing[g->missing_count++] = (struct wanted_object){ *id, rows[i].sender, 1 };
        }
        return ST_OK;
}

static enum status write_location_files(struct flush_group *g, struct location_row *rows, size_t count,
                                        struct error *err)
{
        const struct part_limits limits = { .max_rows = g->s->options.part_rows, .use = MEMORY_FLUSH };
        enum status st = ST_OK;

        for (size_t done = 0, n; !st && done < count; done += n) {
                _cleanup_free_ char *key = NULL;
                struct table_add *add;

                n = count - done;
                st = append_table_add(g, NULL, (unsigned)g->add_count, &add, err);
                if (st)
                        break;
                key = make_table_key(TABLE_LOCATIONS, add->name);
                st = key ? part_write_locations(g->s->storage, key, rows + done, &n, &limits, &add->written, err)
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
static enum status flush_location_slice(struct flush_group *g, const struct batch_location *const *locations,
                                        size_t count, struct error *err)
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
                st = location_rows_resolve(rows, count, g->s->options.symbols, &arena, NULL, err);
        if (st)
                return st;
        qsort(rows, count, sizeof *rows, compare_location_rows);
        st = write_location_files(g, rows, count, err);
        for (size_t i = 0; !st && i < count; i++)
                g->unresolved_counts[rows[i].state]++;
        return st ? st : append_missing_objects(g, rows, count, err);
}

static enum status flush_location_slices(struct flush_group *g, const struct new_locations *n, struct error *err)
{
        size_t slice = n->count;
        enum status st = ST_OK;

        for (size_t done = 0; !st && done < n->count;) {
                size_t files = g->add_count;

                slice = slice < n->count - done ? slice : n->count - done;
                st = flush_check_stopping(g->s, err);
                if (st)
                        return st;
                st = flush_location_slice(g, n->items + done, slice, err);
                if ((st == ST_BUSY || st == ST_NO_MEMORY) && slice > LEAST_SLICE_ROWS && g->add_count == files) {
                        slice /= 2;
                        st = ST_OK;
                } else if (!st) {
                        done += slice;
                }
        }
        return st;
}

/* One attempt: write and commit the locations that the table lacks. */
static enum status commit_new_locations(struct flush_group *g, struct new_locations *n, struct error *err)
{
        enum status st;

        clear_table_adds(g);
        g->missing_count = 0;
        memset(g->unresolved_counts, 0, sizeof g->unresolved_counts);
        g->blames_batches = false;
        st = known_rows_mark_locations(&g->s->known, g->s->tables, &n->ids, err);
        g->blames_batches = !st;
        if (st)
                return st;
        drop_known_locations(n);
        if (!n->count)
                return ST_OK;
        st = flush_location_slices(g, n, err);
        return st ? st : commit_adds(g, (struct table_change){ .table = TABLE_LOCATIONS }, err);
}

static enum status flush_locations(struct flush_group *g, struct error *err)
{
        struct profile_store *s = g->s;
        _cleanup_(new_locations_deinit) struct new_locations n = { .ids.memory.use = MEMORY_FLUSH };
        int attempts = 0;
        enum status st = collect_locations(g, &n, err);

        if (st)
                return st;
        do
                st = commit_new_locations(g, &n, err);
        while (repeat_step(g, &attempts, &st, err));
        if (st || !n.count)
                return st;
        for (size_t i = 0; i < SYMBOL_STATE_COUNT; i++) {
                if (unresolved[i].name)
                        metric_add(&unresolved[i], (int64_t)g->unresolved_counts[i]);
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
static enum status collect_day_stacks(struct flush_group *g, struct flush_day *d, const struct batch_stack **stacks,
                                      size_t *count_ret, struct error *err)
{
        size_t count = 0, kept = 0;
        enum status st = ST_OK;

        for (size_t i = d->first; !st && i < d->end; i++) {
                const struct batch_stack *stack = &g->samples[i].batch->stacks[g->samples[i].sample->stack];
                bool added;

                st = key_map_put(&d->stacks, &stack->id, 0, &added, NULL, err);
                if (!st && added)
                        stacks[count++] = stack;
        }
        if (st)
                return st;
        g->blames_batches = false;
        st = known_rows_mark_stacks(&g->s->known, g->s->tables, d->day, &d->stacks, err);
        g->blames_batches = !st;
        for (size_t i = 0; !st && i < count; i++) {
                if (*key_map_find(&d->stacks, &stacks[i]->id) != KNOWN_ROW)
                        stacks[kept++] = stacks[i];
        }
        *count_ret = kept;
        return st;
}

/* Write the stacks of the day's samples that the table lacks. */
static enum status write_day_stacks(struct flush_group *g, struct flush_day *d, struct error *err)
{
        const struct part_limits limits = { .max_rows = g->s->options.part_rows, .use = MEMORY_FLUSH };
        _cleanup_memory_ struct memory_reservation memory = { .use = MEMORY_FLUSH };
        _cleanup_free_ const struct batch_stack **stacks = NULL;
        size_t count = 0;
        unsigned number = 0;
        enum status st = flush_check_stopping(g->s, err);

        if (!st && memory_reserve(&memory, (d->end - d->first) * sizeof *stacks, err))
                st = ST_NO_MEMORY;
        if (!st && !(stacks = calloc(d->end - d->first, sizeof *stacks)))
                st = error_no_memory(err);
        if (!st)
                st = collect_day_stacks(g, d, stacks, &count, err);
        if (st || !count)
                return st;
        qsort(stacks, count, sizeof *stacks, compare_stack_ids);
        for (size_t done = 0, n; !st && done < count; done += n) {
                _cleanup_free_ char *key = NULL;
                struct table_add *add;

                n = count - done;
                st = append_table_add(g, &d->day, number++, &add, err);
                if (st)
                        break;
                key = make_table_key(TABLE_STACKS, add->name);
                st = key ? part_write_stacks(g->s->storage, key, stacks + done, &n, &limits, &add->written, err)
                         : error_no_memory(err);
        }
        return st;
}

static int64_t get_row_day(const struct sample_row *row)
{
        return day_of_us(row->sample->time_us);
}

static size_t find_day_end(const struct flush_group *g, size_t first)
{
        size_t end = first + 1;

        while (end < g->sample_count && get_row_day(&g->samples[end]) == get_row_day(&g->samples[first]))
                end++;
        return end;
}

static void free_flush_days(struct flush_day *days, size_t count)
{
        for (size_t i = 0; i < count; i++)
                key_map_deinit(&days[i].stacks);
        free(days);
}

/* One attempt: write and commit the stacks that their days lack. */
static enum status commit_new_stacks(struct flush_group *g, struct error *err)
{
        struct flush_day *days = NULL;
        size_t count = 0, capacity = 0;
        enum status st = ST_OK;

        clear_table_adds(g);
        for (size_t first = 0, end; !st && first < g->sample_count; first = end) {
                end = find_day_end(g, first);
                if (!array_reserve(&days, &capacity, count)) {
                        st = error_no_memory(err);
                        break;
                }
                days[count] = (struct flush_day){ .day = get_row_day(&g->samples[first]),
                                                  .first = first,
                                                  .end = end,
                                                  .stacks.memory.use = MEMORY_FLUSH };
                st = write_day_stacks(g, &days[count++], err);
        }
        if (!st && g->add_count)
                st = commit_adds(g, (struct table_change){ .table = TABLE_STACKS }, err);
        for (size_t i = 0; !st && i < count; i++)
                known_rows_add_stacks(&g->s->known, days[i].day, &days[i].stacks);
        free_flush_days(days, count);
        return st;
}

static enum status flush_stacks(struct flush_group *g, struct error *err)
{
        int attempts = 0;
        enum status st;

        do
                st = commit_new_stacks(g, err);
        while (repeat_step(g, &attempts, &st, err));
        return st;
}

/* ---- samples ------------------------------------------------------------------------ */

static enum status copy_batch_ids(const struct flush_group *g, struct hash128 **ret, struct error *err)
{
        struct hash128 *ids = calloc(g->batch_count + 1, sizeof *ids);

        if (!ids)
                return error_no_memory(err);
        for (size_t i = 0; i < g->batch_count; i++)
                ids[i] = g->batches[i]->batch_id;
        *ret = ids;
        return ST_OK;
}

static enum status write_day_samples(struct flush_group *g, const struct label_columns *columns, size_t first,
                                     size_t end, struct error *err)
{
        int64_t day = get_row_day(&g->samples[first]);
        const struct part_limits limits = { .max_rows = g->s->options.part_rows, .use = MEMORY_FLUSH };
        unsigned number = 0;
        enum status st = flush_check_stopping(g->s, err);

        for (size_t n; !st && first < end; first += n) {
                _cleanup_free_ char *key = NULL;
                struct table_add *add;

                n = end - first;
                st = append_table_add(g, &day, number++, &add, err);
                if (st)
                        break;
                key = make_table_key(TABLE_SAMPLES, add->name);
                st = key ? part_write_samples(g->s->storage, key, columns, g->samples + first, &n, &limits,
                                              &add->written, err)
                         : error_no_memory(err);
        }
        return st;
}

/* Files of an earlier attempt stay valid while the table has the same columns. */
static enum status write_samples(struct flush_group *g, const struct label_columns *columns, struct error *err)
{
        enum status st = ST_OK;

        clear_table_adds(g);
        for (size_t first = 0, end; !st && first < g->sample_count; first = end) {
                end = find_day_end(g, first);
                st = write_day_samples(g, columns, first, end, err);
        }
        return st;
}

/*
 * Let the node that makes commits for others make this one. The locks are released meanwhile, and with them the rows
 * and their memory: should the files have to be written again, the group begins again.
 * @return ST_OK with is_done when the log has the commit; without it, commit the files now.
 */
static enum status hand_samples(struct flush_group *g, struct table_change change, bool *is_done_ret, struct error *err)
{
        struct profile_store *s = g->s;
        _cleanup_buf_ struct buf text;
        struct handed_commit base;
        enum hand_result result;
        enum status st;

        buf_init(&text, LIMIT_HANDED_COMMIT_BYTES);
        complete_change(g, &change);
        if (g->is_alone || !g->add_count || g->add_count > LIMIT_HANDED_FILES || !commit_group_has_holder(s) ||
            tables_write_commit(&s->logs, &change, &text, NULL))
                return ST_OK;
        g->committing = true;
        free(g->samples);
        g->samples = NULL;
        memory_release(&g->memory);
        commit_group_begin_hand(s, g->last, &base);
        flush_release_locks(s);
        result = commit_group_hand(s, &base, &text);
        flush_take_locks(s);
        commit_group_end_hand(s, result);
        st = store_reconcile(s, err);
        if (st)
                return st;
        *is_done_ret = s->flushed >= g->last;
        return *is_done_ret ? ST_OK : check_group_current(g, err);
}

/* Whether the files of samples have to be written: there are none yet, or they lack a column. */
static bool needs_sample_files(const struct flush_group *g, bool is_first, bool has_grown, size_t column_count)
{
        return is_first || has_grown || column_count != g->column_count;
}

/* Write the files, unless those of an earlier attempt are valid. */
static enum status prepare_samples(struct flush_group *g, const struct label_columns *columns, bool is_first,
                                   bool has_grown, struct error *err)
{
        enum status st = ST_OK;

        if (needs_sample_files(g, is_first, has_grown, columns->count)) {
                g->must_restart = !g->samples && g->sample_count; /* hand_samples() has released the rows */
                st = g->must_restart ? error_set(err, ST_BUSY, "another node added a label column")
                                     : write_samples(g, columns, err);
        }
        g->column_count = columns->count;
        return st;
}

static enum status flush_samples(struct flush_group *g, struct error *err)
{
        struct profile_store *s = g->s;
        _cleanup_free_ struct hash128 *ids = NULL;
        struct table_change change = { .table = TABLE_SAMPLES, .flushed = g->last };
        int attempts = 0;
        bool is_done = false;
        enum status st = has_shared_tables(s) ? copy_batch_ids(g, &ids, err) : ST_OK;

        if (st)
                return st;
        change.batch_ids = ids;
        change.batch_id_count = ids ? g->batch_count : 0;
        do {
                _cleanup_(label_columns_deinit) struct label_columns columns = { 0 };
                bool grown;

                st = extend_label_columns(g->batches, g->batch_count, &s->tables->columns, &columns, &grown, err);
                if (!st)
                        st = prepare_samples(g, &columns, !attempts, grown, err);
                change.columns = grown ? &columns : NULL;
                if (!st && !attempts && !grown)
                        st = hand_samples(g, change, &is_done, err);
                if (!st && !is_done)
                        st = commit_adds(g, change, err);
        } while (repeat_step(g, &attempts, &st, err));
        return st;
}

/* ---- batch ids ------------------------------------------------------------------------ */

/* Step 4. On failure the segments are kept; their replay remembers the ids. */
enum status flush_group_remember_ids(struct flush_group *g, struct error *err)
{
        _cleanup_free_ struct hash128 *ids = NULL;
        enum status st = copy_batch_ids(g, &ids, err);

        return st ? st : batch_ids_add(g->s->ids, ids, g->batch_count, stable_unix_s(), err);
}

/* ---- the sequence --------------------------------------------------------------------- */

enum status flush_group_commit(struct flush_group *g, struct error *err)
{
        struct profile_store *s = g->s;
        enum status st;

        st = choose_file_names(g, err);
        g->blames_batches = !st;
        if (!st)
                st = reserve_flush_memory(g, get_sort_bytes(g->batches, g->batch_count), err);
        if (!st)
                st = sort_flush_samples(g->batches, g->batch_count, &g->samples, &g->sample_count, err);
        for (size_t i = 0; !st && s->inject_failure && i < g->batch_count; i++)
                st = s->inject_failure(g->batches[i], err);
        if (!st)
                st = flush_locations(g, err);
        if (!st)
                st = flush_stacks(g, err);
        if (!st)
                st = flush_samples(g, err);
        if (!st) {
                g->blames_batches = false;
                st = flush_group_remember_ids(g, err);
        }
        if (!st)
                st = store_publish_tables(s, err);
        s->behind = s->behind || (st && g->committing && !g->must_restart);
        if (!st)
                s->behind = false;
        return st ? st : head_release(s, g->last, err);
}

void flush_group_register_metrics(void)
{
        metric_register(&conflicts);
        for (size_t i = 0; i < SYMBOL_STATE_COUNT; i++)
                if (unresolved[i].name)
                        metric_register(&unresolved[i]);
}
