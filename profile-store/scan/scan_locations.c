/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "common/memory/array.h"
#include "profile-store/tables/location_cache.h"
#include "profile-store/scan/resolving.h"
#include "profile-store/tables/part_fetch.h"

#define HEAD_SLICE 65536 /* locations looked up at once */
/* Work that is worth another thread: */
#define PARTS_PER_THREAD 4
#define LOCATIONS_PER_THREAD 200000 /* rows of locations in parts, selected or not */

/* The selected rows of one row group. */
struct selected_group {
        uint32_t part, group;
        struct location_rows rows;
};

/* Shared by the threads that read locations. */
struct location_reading {
        struct resolving *r;
        bool *is_due;                  /* by part: to be read now */
        _Atomic uint32_t *next_groups; /* by part: first row group not taken by a thread */
        _Atomic size_t missing;        /* locations not found by any thread yet */
        struct selected_group *groups; /* protected by r->lock */
        size_t count, capacity;
};

static void location_reading_deinit(struct location_reading *l)
{
        for (size_t i = 0; i < l->count; i++)
                location_rows_deinit(&l->groups[i].rows);
        free(l->groups);
        free(l->next_groups);
        free(l->is_due);
}

/* Several threads may find the same location in different parts. */
static void note_found_locations(struct location_reading *l, const struct location_rows *rows)
{
        size_t found = 0;

        for (size_t i = 0; i < rows->count; i++) {
                uint32_t expected = NOT_FOUND;

                found += __atomic_compare_exchange_n(&l->r->places[rows->items[i].number], &expected, FOUND_IN_PART,
                                                     false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
        }
        atomic_fetch_sub(&l->missing, found);
}

static enum status keep_selected_group(struct location_reading *l, struct selected_group *g, struct error *err)
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

static enum status select_location_rows(struct location_reading *l, const struct part_file *f, struct arena *a,
                                        struct selected_group *g, struct error *err)
{
        struct table_part *part = l->r->scan->tables->parts[TABLE_LOCATIONS][g->part];
        const struct key_map *wanted = &l->r->location_numbers;
        const struct location_rows *cached = location_cache_find(part, g->group);
        enum status st = cached ? ST_OK : location_cache_offer(part, f, g->group, &cached, err);

        if (st)
                return st;
        return cached ? location_rows_select(cached, wanted, &g->rows, err)
                      : part_read_locations(f, g->group, wanted, a, &g->rows, err);
}

static enum status read_location_groups(struct location_reading *l, uint32_t part, struct arena *a,
                                        struct work_meter *meter, struct error *err)
{
        _cleanup_part_file_ struct part_file f = { 0 };
        enum status st = open_resolved_part(l->r, l->r->scan->tables->parts[TABLE_LOCATIONS][part], &f, err);

        while (!st) {
                struct selected_group g = { .part = part, .rows.memory.use = MEMORY_QUERIES };

                st = work_meter_check(meter, err);
                if (st || !atomic_load(&l->missing))
                        break;
                g.group = atomic_fetch_add(&l->next_groups[part], 1);
                if (g.group >= part_file_count_groups(&f))
                        break;
                st = select_location_rows(l, &f, a, &g, err);
                if (st)
                        location_rows_deinit(&g.rows);
                else
                        st = keep_selected_group(l, &g, err);
        }
        return st;
}

/* Each thread visits all parts that are due and takes row groups that no other thread has taken. */
static enum status read_due_parts(void *context, struct work_thread *t, struct error *err)
{
        struct location_reading *l = context;
        struct arena *all = &l->r->scan->arena;
        _cleanup_arena_ struct arena mine;
        struct error failure = { 0 };
        enum status st = ST_OK;

        pthread_mutex_lock(&l->r->lock);
        arena_init_budget(&mine, all->max - all->used, MEMORY_QUERIES);
        pthread_mutex_unlock(&l->r->lock);
        for (uint32_t i = 0; !st && i < l->r->scan->tables->part_count[TABLE_LOCATIONS]; i++) {
                if (l->is_due[i] && atomic_load(&l->missing))
                        st = read_location_groups(l, i, &mine, &t->meter, &failure);
                if (st && note_unread_file(l->r, st, &failure))
                        st = ST_OK;
        }
        if (st && err)
                *err = failure;
        pthread_mutex_lock(&l->r->lock);
        if (!st && !arena_absorb(all, &mine))
                st = set_scan_too_big(err);
        pthread_mutex_unlock(&l->r->lock);
        return st;
}

static int compare_selected_groups(const void *a, const void *b)
{
        const struct selected_group *x = a, *y = b;

        if (x->part != y->part)
                return x->part < y->part ? -1 : 1;
        return (x->group > y->group) - (x->group < y->group);
}

/* Place rows in the order of the tables. The first row of a location counts. */
static enum status place_location_rows(struct location_reading *l, struct error *err)
{
        struct resolving *r = l->r;
        enum status st = ST_OK;

        r->locations = arena_alloc_array(&r->scan->arena, r->location_numbers.count + 1, sizeof *r->locations);
        if (!r->locations)
                return set_scan_too_big(err);
        if (l->count)
                qsort(l->groups, l->count, sizeof *l->groups, compare_selected_groups);
        for (size_t i = 0; !st && i < l->count; i++) {
                struct location_rows *rows = &l->groups[i].rows;

                st = work_meter_add(r->scan->meter, 4 * rows->count, err);
                for (size_t k = 0; !st && k < rows->count; k++) {
                        uint32_t *place = &r->places[rows->items[k].number];

                        if (*place != FOUND_IN_PART)
                                continue;
                        *place = (uint32_t)r->location_count;
                        r->locations[r->location_count++] = rows->items[k].shown;
                }
                location_rows_deinit(rows);
        }
        return st;
}

/* The number of threads is limited so that each reads at least a few parts or many rows. */
static enum status share_due_parts(struct location_reading *l, struct error *err)
{
        const struct tables *t = l->r->scan->tables;
        uint64_t rows = 0;
        size_t due = 0, threads;

        for (size_t i = 0; i < t->part_count[TABLE_LOCATIONS]; i++) {
                due += l->is_due[i];
                rows += l->is_due[i] ? t->parts[TABLE_LOCATIONS][i]->rows : 0;
        }
        threads = due / PARTS_PER_THREAD + (size_t)(rows / LOCATIONS_PER_THREAD) + 1;
        return due ? share_work(l->r->scan->meter, threads, read_due_parts, l, err) : ST_OK;
}

/* Those that were not at hand. When the object store does not answer, some may be by now. */
static enum status fetch_other_parts(struct location_reading *l, struct error *err)
{
        static const struct part_fetch what = { .columns = location_columns, .column_count = LOCATION_COLUMNS };
        struct resolving *r = l->r;
        struct table_part *const *parts = r->scan->tables->parts[TABLE_LOCATIONS];
        const size_t count = r->scan->tables->part_count[TABLE_LOCATIONS];
        struct error failure = { 0 };
        enum status st = r->is_away ? ST_OK : part_files_fetch(parts, count, &what, r->scan->meter, &failure);

        if (st && !note_unread_file(r, st, &failure)) {
                if (err)
                        *err = failure;
                return st;
        }
        for (size_t i = 0; i < count; i++)
                l->is_due[i] = !l->is_due[i] && (!r->is_away || is_part_at_hand(parts[i]));
        return ST_OK;
}

static enum status load_part_locations(struct resolving *r, struct error *err)
{
        const size_t count = r->scan->tables->part_count[TABLE_LOCATIONS];
        _cleanup_(location_reading_deinit) struct location_reading l = { .r = r };
        bool has_others = false;
        enum status st;

        atomic_init(&l.missing, r->location_numbers.count);
        l.next_groups = calloc(count + 1, sizeof *l.next_groups);
        l.is_due = calloc(count + 1, sizeof *l.is_due);
        if (!l.next_groups || !l.is_due)
                return error_no_memory(err);
        for (size_t i = 0; i < count; i++) {
                l.is_due[i] = is_part_at_hand(r->scan->tables->parts[TABLE_LOCATIONS][i]);
                has_others |= !l.is_due[i];
        }
        st = share_due_parts(&l, err);
        if (!st && has_others && atomic_load(&l.missing)) {
                st = fetch_other_parts(&l, err);
                if (!st)
                        st = share_due_parts(&l, err);
        }
        return st ? st : place_location_rows(&l, err);
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
                        const uint64_t *number = key_map_find(&r->location_numbers, &key);
                        struct location_row row;

                        if (!number || r->places[*number] != NOT_FOUND)
                                continue;
                        r->places[*number] = (uint32_t)(r->location_count + rows.count);
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

/* Without the file that could not be read, it is unknown whether a location that was not found is lost. */
static enum status check_unread_files(const struct resolving *r, struct error *err)
{
        for (uint64_t i = 0; r->failed && i < r->location_numbers.count; i++) {
                if (r->places[i] != NOT_FOUND)
                        continue;
                if (err)
                        *err = r->failure;
                return r->failed;
        }
        return ST_OK;
}

enum status find_location_rows(struct resolving *r, struct error *err)
{
        enum status st = load_part_locations(r, err);

        if (!st)
                st = load_head_locations(r, err);
        return st ? st : check_unread_files(r, err);
}
