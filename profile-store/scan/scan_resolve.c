/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <pthread.h>
#include <string.h>

#include "common/memory/array.h"
#include "profile-store/identity.h"
#include "profile-store/scan/scan_internal.h"
#include "profile-store/scan/stack_cache.h"

#define HEAD_SLICE 65536 /* locations looked up at once */
/* Work that is worth another thread: */
#define PARTS_PER_THREAD 4
#define LOCATIONS_PER_THREAD 200000 /* rows of locations in parts, selected or not */

/* ---- stacks ----------------------------------------------------------------------------------- */

struct stack_ids {
        const uint64_t *ids; /* NULL: not found yet */
        uint32_t count;
};

struct resolving {
        struct store_scan *scan;
        struct key_map stack_numbers; /* id to index in the sum; read by several threads */
        pthread_mutex_t lock;         /* protects the members below, and the scan's arena while parts are read */
        struct stack_ids *stacks;
        size_t stack_count, missing;
        size_t parts_left;               /* parts of stacks left to read; newest first */
        struct key_map location_numbers; /* location id to index */
        struct scan_location *locations; /* in the scan's arena; room for all ids of the map */
        size_t location_count;           /* so far */
};

static void resolving_deinit(struct resolving *r)
{
        pthread_mutex_destroy(&r->lock);
        key_map_deinit(&r->stack_numbers);
        key_map_deinit(&r->location_numbers);
        free(r->stacks);
}

static void set_stack_locations(struct resolving *r, uint64_t number, const uint64_t *ids, uint32_t count)
{
        if (r->stacks[number].ids)
                return;
        r->stacks[number] = (struct stack_ids){ ids, count };
        r->missing--;
}

static enum status load_cached_stacks(struct resolving *r, const struct stack_sums *sums, struct error *err)
{
        enum status st = ST_OK;

        for (size_t i = 0; !st && r->scan->stack_cache && i < sums->count; i++) {
                struct hash128 id;
                const uint64_t *ids;
                uint32_t count = 0;

                memcpy(id.bytes, sums->items[i].id, sizeof id.bytes);
                st = stack_cache_find(r->scan->stack_cache, &id, &r->scan->arena, &ids, &count);
                if (st)
                        return set_scan_too_big(err);
                if (ids)
                        set_stack_locations(r, i, ids, count);
                st = work_meter_add(r->scan->meter, 8, err);
        }
        return st;
}

static enum status load_head_stacks(struct resolving *r, struct error *err)
{
        static const uint64_t none;
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < r->scan->head_count && r->missing; i++) {
                const struct batch *b = r->scan->head[i];

                for (uint32_t k = 0; !st && k < b->stack_count; k++) {
                        const uint64_t *number = key_map_find(&r->stack_numbers, &b->stacks[k].id);

                        if (number)
                                set_stack_locations(r, *number,
                                                    b->stacks[k].location_count ? b->stacks[k].location_ids : &none,
                                                    b->stacks[k].location_count);
                        st = work_meter_add(r->scan->meter, 8, err);
                }
        }
        return st;
}

/* A row group of stacks as read by one thread. */
struct stack_group {
        struct column_source from;
        struct parquet_column ids, lists;
        struct work_meter *meter;
};

static void stack_group_deinit(struct stack_group *g)
{
        parquet_column_deinit(&g->ids);
        parquet_column_deinit(&g->lists);
        column_source_deinit(&g->from);
}

/* The index of the row's stack if it has not been found yet, else NULL. */
static const uint64_t *find_missing_stack(struct resolving *r, const struct stack_group *g, uint64_t row,
                                          struct hash128 *id)
{
        const uint64_t *number = part_read_stack_id(&g->ids, row, id) ? key_map_find(&r->stack_numbers, id) : NULL;
        bool is_missing;

        if (!number)
                return NULL;
        pthread_mutex_lock(&r->lock);
        is_missing = !r->stacks[*number].ids;
        pthread_mutex_unlock(&r->lock);
        return is_missing ? number : NULL;
}

static enum status copy_stack_list(struct resolving *r, const struct stack_group *g, uint64_t row, uint64_t number,
                                   const struct hash128 *id, struct error *err)
{
        uint32_t count = g->lists.offsets[row + 1] - g->lists.offsets[row];
        const int64_t *list = g->lists.ints + g->lists.offsets[row];
        struct hash128 identity;
        uint64_t *copy;

        pthread_mutex_lock(&r->lock);
        copy = arena_alloc_array(&r->scan->arena, count + (size_t)1, sizeof *copy);
        if (copy) {
                memcpy(copy, list, count * sizeof *copy);
                set_stack_locations(r, number, copy, count);
        }
        pthread_mutex_unlock(&r->lock);
        if (!copy)
                return set_scan_too_big(err);
        identity = hash_stack_identity(copy, count);
        if (r->scan->stack_cache && hash128_equal(&identity, id)) /* skips stacks of a damaged file */
                stack_cache_add(r->scan->stack_cache, id, copy, count);
        return ST_OK;
}

/* The lists are only read when a row needs them: they are much larger than the ids. */
static enum status load_group_stacks(struct resolving *r, struct stack_group *g, struct error *err)
{
        bool have_lists = false;
        enum status st = work_meter_check(g->meter, err);

        if (!st)
                st = scan_read_column(&g->from, "stack_id", PARQUET_BINARY, &g->ids, err);
        for (uint64_t i = 0; !st && i < g->ids.row_count; i++) {
                struct hash128 id;
                const uint64_t *number = find_missing_stack(r, g, i, &id);

                st = work_meter_add(g->meter, 8, err);
                if (st || !number)
                        continue;
                if (!have_lists)
                        st = scan_read_column(&g->from, "location_ids.list.element", PARQUET_INT64, &g->lists, err);
                have_lists = true;
                if (!st)
                        st = copy_stack_list(r, g, i, *number, &id, err);
        }
        return st;
}

static bool has_missing_stacks(struct resolving *r)
{
        bool has;

        pthread_mutex_lock(&r->lock);
        has = r->missing > 0;
        pthread_mutex_unlock(&r->lock);
        return has;
}

static const struct table_part *take_stack_part(struct resolving *r)
{
        const struct tables *t = r->scan->tables;
        const struct table_part *part = NULL;

        pthread_mutex_lock(&r->lock);
        if (r->missing && r->parts_left)
                part = t->parts[TABLE_STACKS][--r->parts_left];
        pthread_mutex_unlock(&r->lock);
        return part;
}

/* A stack has a row in each day with samples of it; the newest days are read first. */
static enum status load_part_stacks(void *context, struct work_thread *t, struct error *err)
{
        struct resolving *r = context;
        const struct table_part *part;
        enum status st = ST_OK;

        while (!st && (part = take_stack_part(r))) {
                _cleanup_part_file_ struct part_file f = { 0 };

                st = part_file_open(part, &f, err);
                for (uint32_t i = 0; !st && i < part_file_count_groups(&f) && has_missing_stacks(r); i++) {
                        _cleanup_(stack_group_deinit) struct stack_group g = {
                                .from = { .file = &f, .group = i, .memory.use = MEMORY_QUERIES }, .meter = &t->meter
                        };

                        st = load_group_stacks(r, &g, err);
                }
        }
        return st;
}

/* The number of threads is limited so that each reads at least a few parts. */
static enum status load_parts_of_stacks(struct resolving *r, struct error *err)
{
        r->parts_left = r->scan->tables->part_count[TABLE_STACKS];
        if (!r->missing || !r->parts_left)
                return ST_OK;
        return share_work(r->scan->meter, (r->parts_left + PARTS_PER_THREAD - 1) / PARTS_PER_THREAD, load_part_stacks,
                          r, err);
}

static enum status find_stacks(struct resolving *r, const struct stack_sums *sums, struct error *err)
{
        enum status st = ST_OK;

        r->stack_count = r->missing = sums->count;
        r->stacks = calloc(sums->count + 1, sizeof *r->stacks);
        if (!r->stacks)
                return error_no_memory(err);
        for (size_t i = 0; !st && i < sums->count; i++) {
                struct hash128 id;

                memcpy(id.bytes, sums->items[i].id, sizeof id.bytes);
                st = key_map_put(&r->stack_numbers, &id, i, NULL, NULL, err);
        }
        if (!st)
                st = load_cached_stacks(r, sums, err);
        if (!st)
                st = load_head_stacks(r, err);
        return st ? st : load_parts_of_stacks(r, err);
}

/* ---- locations ---------------------------------------------------------------------------------- */

/* Reserved values of location_numbers: not numbered yet. */
#define NOT_FOUND UINT64_MAX
#define FOUND_IN_PART (UINT64_MAX - 1)

static uint32_t get_batch_size(size_t left)
{
        return left < KEY_MAP_BATCH ? (uint32_t)left : KEY_MAP_BATCH;
}

/* Most ids are in the map already. */
static enum status add_location_ids(struct key_map *m, const uint64_t *ids, uint32_t count, struct error *err)
{
        uint64_t *found[KEY_MAP_BATCH];
        enum status st = ST_OK;

        key_map_find_ids(m, ids, count, found);
        for (uint32_t i = 0; !st && i < count; i++) {
                struct hash128 key = make_u64_key(ids[i]);

                if (!found[i])
                        st = key_map_put(m, &key, NOT_FOUND, NULL, NULL, err);
        }
        return st;
}

static enum status collect_location_ids(struct resolving *r, struct error *err)
{
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < r->stack_count; i++) {
                for (uint32_t at = 0, n; !st && at < r->stacks[i].count; at += n) {
                        n = get_batch_size(r->stacks[i].count - at);
                        st = work_meter_add(r->scan->meter, 8 * n, err);
                        if (!st)
                                st = add_location_ids(&r->location_numbers, r->stacks[i].ids + at, n, err);
                }
        }
        return st;
}

/* The selected rows of one row group. */
struct location_group {
        uint32_t part, group;
        struct location_rows rows;
};

/* Shared by the threads that read locations. */
struct location_reading {
        struct resolving *r;
        _Atomic uint32_t *next_groups; /* by part: first row group not taken by a thread */
        _Atomic size_t missing;        /* locations not found by any thread yet */
        struct location_group *groups; /* protected by r->lock */
        size_t count, capacity;
};

static void location_reading_deinit(struct location_reading *l)
{
        for (size_t i = 0; i < l->count; i++)
                location_rows_deinit(&l->groups[i].rows);
        free(l->groups);
        free(l->next_groups);
}

/* Indexes of the next rows, from `at` on; all their ids are in the map. @return the number of rows. */
static size_t find_row_numbers(struct resolving *r, const struct location_rows *rows, size_t at, uint64_t **ret)
{
        size_t n = get_batch_size(rows->count - at);
        uint64_t ids[KEY_MAP_BATCH];

        for (size_t i = 0; i < n; i++)
                ids[i] = rows->items[at + i].shown.location_id;
        key_map_find_ids(&r->location_numbers, ids, n, ret);
        return n;
}

/* Several threads may find the same location in different parts. */
static void note_found_locations(struct location_reading *l, const struct location_rows *rows)
{
        uint64_t *numbers[KEY_MAP_BATCH];
        size_t found = 0;

        for (size_t at = 0, n; at < rows->count; at += n) {
                n = find_row_numbers(l->r, rows, at, numbers);
                for (size_t i = 0; i < n; i++) {
                        uint64_t expected = NOT_FOUND;

                        found += __atomic_compare_exchange_n(numbers[i], &expected, FOUND_IN_PART, false,
                                                             __ATOMIC_RELAXED, __ATOMIC_RELAXED);
                }
        }
        atomic_fetch_sub(&l->missing, found);
}

static enum status keep_location_group(struct location_reading *l, struct location_group *g, struct error *err)
{
        enum status st = ST_OK;

        note_found_locations(l, &g->rows);
        pthread_mutex_lock(&l->r->lock);
        if (!array_reserve(&l->groups, &l->capacity, l->count))
                st = error_no_memory(err);
        else if (g->rows.count)
                l->groups[l->count++] = *g;
        pthread_mutex_unlock(&l->r->lock);
        if (st || !g->rows.count)
                location_rows_deinit(&g->rows);
        return st;
}

static enum status read_location_groups(struct location_reading *l, uint32_t part, struct arena *a,
                                        struct work_meter *meter, struct error *err)
{
        _cleanup_part_file_ struct part_file f = { 0 };
        enum status st = part_file_open(l->r->scan->tables->parts[TABLE_LOCATIONS][part], &f, err);

        while (!st) {
                struct location_group g = { .part = part, .rows.memory.use = MEMORY_QUERIES };

                st = work_meter_check(meter, err);
                if (st || !atomic_load(&l->missing))
                        break;
                g.group = atomic_fetch_add(&l->next_groups[part], 1);
                if (g.group >= part_file_count_groups(&f))
                        break;
                st = part_read_locations(&f, g.group, &l->r->location_numbers, a, &g.rows, err);
                if (st)
                        location_rows_deinit(&g.rows);
                else
                        st = keep_location_group(l, &g, err);
        }
        return st;
}

/* Each thread visits all parts and takes row groups that no other thread has taken. */
static enum status read_part_locations(void *context, struct work_thread *t, struct error *err)
{
        struct location_reading *l = context;
        struct arena *all = &l->r->scan->arena;
        _cleanup_arena_ struct arena mine;
        enum status st = ST_OK;

        pthread_mutex_lock(&l->r->lock);
        arena_init_budget(&mine, all->max - all->used, MEMORY_QUERIES);
        pthread_mutex_unlock(&l->r->lock);
        for (uint32_t i = 0; !st && i < l->r->scan->tables->part_count[TABLE_LOCATIONS]; i++)
                if (atomic_load(&l->missing))
                        st = read_location_groups(l, i, &mine, &t->meter, err);
        pthread_mutex_lock(&l->r->lock);
        if (!st && !arena_absorb(all, &mine))
                st = set_scan_too_big(err);
        pthread_mutex_unlock(&l->r->lock);
        return st;
}

static int compare_location_groups(const void *a, const void *b)
{
        const struct location_group *x = a, *y = b;

        if (x->part != y->part)
                return x->part < y->part ? -1 : 1;
        return (x->group > y->group) - (x->group < y->group);
}

/* Number rows in the order of the tables, independent of threads. The first row of a location counts. */
static enum status number_location_rows(struct location_reading *l, struct error *err)
{
        struct resolving *r = l->r;
        enum status st = ST_OK;

        r->locations = arena_alloc_array(&r->scan->arena, r->location_numbers.count + 1, sizeof *r->locations);
        if (!r->locations)
                return set_scan_too_big(err);
        if (l->count)
                qsort(l->groups, l->count, sizeof *l->groups, compare_location_groups);
        for (size_t i = 0; !st && i < l->count; i++) {
                struct location_rows *rows = &l->groups[i].rows;

                for (size_t at = 0, n; !st && at < rows->count; at += n) {
                        uint64_t *numbers[KEY_MAP_BATCH];

                        n = find_row_numbers(r, rows, at, numbers);
                        st = work_meter_add(r->scan->meter, 4 * n, err);
                        for (size_t k = 0; !st && k < n; k++) {
                                if (*numbers[k] != FOUND_IN_PART)
                                        continue;
                                *numbers[k] = r->location_count;
                                r->locations[r->location_count++] = rows->items[at + k].shown;
                        }
                }
                location_rows_deinit(rows);
        }
        return st;
}

/* The number of threads is limited so that each reads at least a few parts or many rows. */
static enum status load_part_locations(struct resolving *r, struct error *err)
{
        const struct tables *t = r->scan->tables;
        _cleanup_(location_reading_deinit) struct location_reading l = { .r = r };
        uint64_t rows = 0;
        enum status st;

        atomic_init(&l.missing, r->location_numbers.count);
        l.next_groups = calloc(t->part_count[TABLE_LOCATIONS] + 1, sizeof *l.next_groups);
        if (!l.next_groups)
                return error_no_memory(err);
        for (size_t i = 0; i < t->part_count[TABLE_LOCATIONS]; i++)
                rows += t->parts[TABLE_LOCATIONS][i]->rows;
        st = share_work(r->scan->meter,
                        t->part_count[TABLE_LOCATIONS] / PARTS_PER_THREAD + (size_t)(rows / LOCATIONS_PER_THREAD) + 1,
                        read_part_locations, &l, err);
        return st ? st : number_location_rows(&l, err);
}

/* Look up rows of the head in slices; the query can be cancelled between slices. */
static enum status resolve_head_rows(struct resolving *r, struct location_rows *rows, struct error *err)
{
        enum status st = ST_OK;

        for (size_t at = 0, n; !st && at < rows->count; at += n) {
                n = rows->count - at < HEAD_SLICE ? rows->count - at : HEAD_SLICE;
                st = work_meter_check(r->scan->meter, err);
                if (!st)
                        st = location_rows_resolve(rows->items + at, n, r->scan->symbols, &r->scan->arena, NULL, err);
        }
        for (size_t i = 0; !st && i < rows->count; i++)
                r->locations[r->location_count++] = rows->items[i].shown;
        return st;
}

/* Look up locations that are only in the head. */
static enum status load_head_locations(struct resolving *r, struct error *err)
{
        _cleanup_(location_rows_deinit) struct location_rows rows = { .memory.use = MEMORY_QUERIES };
        enum status st = ST_OK;

        for (size_t i = 0; i < r->scan->head_count; i++) {
                const struct batch *b = r->scan->head[i];

                for (uint32_t k = 0; k < b->location_count; k++) {
                        struct hash128 key = make_u64_key(b->locations[k].id);
                        uint64_t *number = key_map_find(&r->location_numbers, &key);
                        struct location_row row;

                        if (!number || *number != NOT_FOUND)
                                continue;
                        *number = r->location_count + rows.count;
                        st = work_meter_add(r->scan->meter, 16, err);
                        if (!st)
                                st = location_row_from_batch(&row, &b->locations[k], &r->scan->arena, err);
                        if (!st)
                                st = location_rows_append(&rows, &row, err);
                        if (st)
                                return st;
                }
        }
        return resolve_head_rows(r, &rows, err);
}

/* ---- the answer ----------------------------------------------------------------------------------- */

/* A location without a row means damage; its stack is shown with an empty frame. */
static uint64_t append_lost_location(struct resolving *r, uint64_t id)
{
        assert(r->location_count < r->location_numbers.count);
        r->locations[r->location_count] = (struct scan_location){ .location_id = id,
                                                                  .build_id = &unknown_build_id,
                                                                  .mapping = "",
                                                                  .state = symbol_state_name(SYMBOL_NO_BUILD_ID) };
        return r->location_count++;
}

static enum status get_location_numbers(struct resolving *r, const struct stack_ids *stack, uint32_t *ret,
                                        struct error *err)
{
        enum status st = ST_OK;

        for (uint32_t at = 0, n; !st && at < stack->count; at += n) {
                uint64_t *numbers[KEY_MAP_BATCH];

                n = get_batch_size(stack->count - at);
                key_map_find_ids(&r->location_numbers, stack->ids + at, n, numbers);
                st = work_meter_add(r->scan->meter, 4 * n, err);
                for (uint32_t i = 0; !st && i < n; i++) {
                        if (*numbers[i] == NOT_FOUND)
                                *numbers[i] = append_lost_location(r, stack->ids[at + i]);
                        ret[at + i] = (uint32_t)*numbers[i];
                }
        }
        return st;
}

static enum status build_scan_stacks(struct resolving *r, const struct scan_stacks **ret, struct error *err)
{
        struct arena *a = &r->scan->arena;
        struct scan_stacks *s = arena_alloc(a, sizeof *s);
        size_t total = 0;
        enum status st = ST_OK;

        for (size_t i = 0; i < r->stack_count; i++)
                total += r->stacks[i].count;
        if (!s || !(s->first = arena_alloc_array(a, r->stack_count + 1, sizeof *s->first)) ||
            !(s->indexes = arena_alloc_array(a, total + 1, sizeof *s->indexes)))
                return set_scan_too_big(err);
        s->count = r->stack_count;
        total = 0;
        for (size_t i = 0; !st && i < r->stack_count; i++) {
                s->first[i] = total;
                st = get_location_numbers(r, &r->stacks[i], s->indexes + total, err);
                total += r->stacks[i].count;
        }
        s->first[r->stack_count] = total;
        if (st)
                return st;
        s->location_count = r->location_count;
        s->locations = r->locations;
        *ret = s;
        return ST_OK;
}

enum status store_scan_resolve(struct store_scan *scan, const struct stack_sums *sums, const struct scan_stacks **ret,
                               struct error *err)
{
        _cleanup_(resolving_deinit) struct resolving r = {
                .scan = scan,
                .stack_numbers.memory.use = MEMORY_QUERIES,
                .location_numbers.memory.use = MEMORY_QUERIES,
        };
        enum status st;

        pthread_mutex_init(&r.lock, NULL);
        st = find_stacks(&r, sums, err);
        if (!st)
                st = collect_location_ids(&r, err);
        if (!st)
                st = load_part_locations(&r, err);
        if (!st)
                st = load_head_locations(&r, err);
        return st ? st : build_scan_stacks(&r, ret, err);
}
