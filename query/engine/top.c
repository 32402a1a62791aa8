/* SPDX-License-Identifier: Apache-2.0 */
#include "query/engine/top.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory/huge_pages.h"
#include "common/threads/work_threads.h"
#include "query/engine/unit_text.h"

#define PREFETCH_DISTANCE 8       /* locations; processing that many takes about as long as one memory access */
#define UNCOUNTED_NAMES 1024      /* up to this many, memory is not charged to the budget */
#define ROW_TABLES 4              /* maximum; one per thread */
#define LOCATIONS_PER_TABLE 40000 /* minimum for which another thread is worthwhile */

static void update_row_line(struct top_row *row, int64_t line, int64_t value, bool leaf)
{
        if (!line || (row->line_of_leaf && !leaf))
                return;
        if (leaf > row->line_of_leaf || value > row->line_value) {
                row->line = line;
                row->line_value = value;
                row->line_of_leaf = leaf;
        }
}

/*
 * Prefetch the ranges, frames and rows of locations after j, each in time for the next step: with a million stacks
 * every access is a cache miss.
 */
static inline void prefetch_location(const struct merged_profile *m, const struct top_row *rows, const uint32_t *names,
                                     size_t j)
{
        const uint32_t *locations = m->stacks->indexes + j;
        const struct location_frames *l = &m->locations;
        size_t left = m->stacks->first[m->stacks->count] - j;

        if (left <= 3 * PREFETCH_DISTANCE)
                return;
        __builtin_prefetch(&l->first[locations[3 * PREFETCH_DISTANCE]]);
        __builtin_prefetch(&l->end[locations[3 * PREFETCH_DISTANCE]]);
        __builtin_prefetch(&l->frames[l->first[locations[2 * PREFETCH_DISTANCE]]]);
        __builtin_prefetch(&l->lines[l->first[locations[2 * PREFETCH_DISTANCE]]]);
        __builtin_prefetch(&rows[names[l->frames[l->first[locations[PREFETCH_DISTANCE]]]]]);
}

/* The sums of one thread: a row per name, for a range of the entries. */
struct row_table {
        struct top_row *rows; /* owned, except those of the first table */
        size_t first, end;    /* range of the entries */
};

struct row_adding {
        const struct top_side *from;
        unsigned side;
        const uint32_t *names; /* by frame */
        struct row_table *tables;
        struct work_ranges ranges; /* of tables */
};

static enum status add_table_rows(const struct row_adding *a, const struct row_table *table, struct work_meter *meter,
                                  struct error *err)
{
        const struct merged_profile *m = a->from->m;
        const struct location_frames *l = &m->locations;
        enum status st = ST_OK;

        for (size_t i = table->first; !st && i < table->end; i++) {
                const uint32_t stack = m->entries[i].stack;
                int64_t value = m->entries[i].value;
                bool leaf = true;

                for (size_t j = m->stacks->first[stack]; !st && j < m->stacks->first[stack + 1]; j++) {
                        uint32_t location = m->stacks->indexes[j];

                        prefetch_location(m, table->rows, a->names, j);
                        st = work_meter_add(meter, l->end[location] - l->first[location], err);
                        for (uint32_t k = l->end[location]; k-- > l->first[location];) { /* innermost first */
                                struct top_row *row = &table->rows[a->names[l->frames[k]]];

                                row->frame = l->frames[k];
                                update_row_line(row, l->lines[k], value, leaf);
                                if (leaf)
                                        add_saturating(&row->flat[a->side], value);
                                leaf = false;
                                if (row->seen != (uint32_t)i + 1)
                                        add_saturating(&row->cumulative[a->side], value);
                                row->seen = (uint32_t)i + 1;
                        }
                }
        }
        return st;
}

static enum status add_rows_of_tables(void *context, struct work_thread *t, struct error *err)
{
        struct row_adding *a = context;
        size_t i, end;
        enum status st = ST_OK;

        while (!st && take_work_range(&a->ranges, &i, &end))
                st = add_table_rows(a, &a->tables[i], &t->meter, err);
        return st;
}

/* Add `later`, whose entries follow those of `rows`, and clear it. */
static enum status merge_table_rows(struct top_row *rows, struct top_row *later, size_t count, unsigned side,
                                    struct work_meter *meter, struct error *err)
{
        enum status st = work_meter_add(meter, count / 2, err);

        for (size_t i = 0; !st && i < count; i++) {
                struct top_row *into = &rows[i], *from = &later[i];

                if (!from->seen)
                        continue;
                into->frame = from->frame;
                update_row_line(into, from->line, from->line_value, from->line_of_leaf);
                add_saturating(&into->flat[side], from->flat[side]);
                add_saturating(&into->cumulative[side], from->cumulative[side]);
                *from = (struct top_row){ 0 };
        }
        return st;
}

/* Ties have a fixed order that does not depend on the order in which files were read. */
static int compare_row_names(const struct top_row *x, const struct top_row *y, const struct query_frame *frames)
{
        const struct query_frame *a = &frames[x->frame], *b = &frames[y->frame];
        int order = strcmp(a->function, b->function);

        return order ? order : strcmp(a->file, b->file);
}

int compare_changes(const int64_t a[2], const int64_t b[2], const int64_t *totals)
{
        double x, y;

        if (!totals) {
                uint64_t of_a = get_absolute_change(a), of_b = get_absolute_change(b);

                return of_a > of_b ? -1 : of_a < of_b;
        }
        x = fabs(compute_share_change(a, totals));
        y = fabs(compute_share_change(b, totals));
        return x > y ? -1 : x < y;
}

struct row_sorting {
        const struct query_frame *frames;
        const struct top_order *order;
};

static int compare_row_costs(const struct row_sorting *s, const void *x, const void *y,
                             int (*compare)(const int64_t a[2], const int64_t b[2], const int64_t *totals))
{
        const struct top_row *a = x, *b = y;
        int flat = compare(a->flat, b->flat, s->order->totals),
            cumulative = compare(a->cumulative, b->cumulative, s->order->totals),
            first = s->order->by == ORDER_FLAT ? flat : cumulative,
            second = s->order->by == ORDER_FLAT ? cumulative : flat;

        return first ? first : second ? second : compare_row_names(a, b, s->frames);
}

static int compare_function_costs(const int64_t a[2], const int64_t b[2], const int64_t *totals)
{
        (void)totals;
        return a[0] > b[0] ? -1 : a[0] < b[0];
}

static int compare_top_rows(const void *x, const void *y, void *sorting)
{
        return compare_row_costs(sorting, x, y, compare_function_costs);
}

static int compare_row_changes(const void *x, const void *y, void *sorting)
{
        return compare_row_costs(sorting, x, y, compare_changes);
}

/* ---- the table ---- */

static void free_row_tables(struct row_table *tables)
{
        for (size_t i = 1; i < ROW_TABLES; i++)
                free(tables[i].rows);
}

/* An estimate from the average stack depth of the profile. */
static size_t count_side_locations(const struct top_side *s)
{
        const struct scan_stacks *stacks = s->m ? s->m->stacks : NULL;

        return stacks && stacks->count ? stacks->first[stacks->count] / stacks->count * (s->end - s->first) : 0;
}

/* Add tables while they are worthwhile and memory is available. @return their number. */
static size_t allocate_row_tables(struct row_table *tables, size_t row_count, const struct top_side sides[2],
                                  struct memory_reservation *memory)
{
        size_t locations = count_side_locations(&sides[0]) + count_side_locations(&sides[1]);
        size_t threads = count_work_threads(), count = 1;

        while (count < ROW_TABLES && count < threads && locations / (count + 1) > LOCATIONS_PER_TABLE &&
               locations / (count + 1) > row_count) {
                size_t held = memory->bytes;

                if (row_count > UNCOUNTED_NAMES && memory_reserve(memory, row_count * sizeof *tables->rows, NULL))
                        break;
                tables[count].rows = calloc_huge(row_count + 1, sizeof *tables->rows);
                if (!tables[count].rows) {
                        memory_shrink(memory, held);
                        break;
                }
                count++;
        }
        return count;
}

static enum status add_side(struct row_table *tables, size_t table_count, const uint32_t *names,
                            const struct frame_table *frames, const struct top_side *from, unsigned side,
                            struct error *err)
{
        struct row_adding a = { .from = from,
                                .side = side,
                                .names = names,
                                .tables = tables,
                                .ranges = { .count = table_count, .step = 1 } };
        size_t entries = from->end - from->first;
        enum status st;

        for (size_t i = 0; i < table_count; i++) {
                tables[i].first = from->first + entries * i / table_count;
                tables[i].end = from->first + entries * (i + 1) / table_count;
        }
        st = share_work(frames->meter, table_count, add_rows_of_tables, &a, err);
        for (size_t i = 1; !st && i < table_count; i++)
                st = merge_table_rows(tables[0].rows, tables[i].rows, frames->name_count, side, frames->meter, err);
        return st;
}

static enum status add_sides(struct top_row *rows, const struct frame_table *frames, const struct top_side sides[2],
                             struct error *err)
{
        _cleanup_memory_ struct memory_reservation memory = { .use = MEMORY_QUERIES };
        _cleanup_free_ uint32_t *names = calloc_huge(frames->count + (size_t)1, sizeof *names);
        struct row_table tables[ROW_TABLES] = { { .rows = rows } };
        size_t count;
        enum status st;

        if (!names)
                return error_no_memory(err);
        for (uint32_t i = 0; i < frames->count; i++) {
                assert(frames->items[i].name < frames->name_count);
                names[i] = frames->items[i].name;
        }
        count = allocate_row_tables(tables, frames->name_count, sides, &memory);
        st = add_side(tables, count, names, frames, &sides[0], 0, err);
        if (!st && sides[1].m) {
                for (uint32_t i = 0; i < frames->name_count; i++)
                        rows[i].seen = 0;
                st = add_side(tables, count, names, frames, &sides[1], 1, err);
        }
        free_row_tables(tables);
        return st;
}

enum status top_build(const struct frame_table *frames, const struct top_side sides[2], const struct top_order *order,
                      struct top *ret, struct error *err)
{
        struct row_sorting sorting = { frames->items, order };
        size_t count = frames->name_count, kept = 0;
        _cleanup_memory_ struct memory_reservation memory = { .use = MEMORY_QUERIES };
        _cleanup_free_ struct top_row *rows = NULL;
        enum status st = ST_OK;

        assert(sides[0].end < UINT32_MAX && sides[1].end < UINT32_MAX);
        if (count > UNCOUNTED_NAMES)
                st = memory_reserve(&memory, count * sizeof *rows + frames->count * sizeof(uint32_t), err);
        if (st)
                return st;
        rows = calloc_huge(count + 1, sizeof *rows);
        if (!rows)
                return error_no_memory(err);
        st = work_meter_add(frames->meter, count / 4, err); /* once per group: clearing and scanning the rows */
        if (!st)
                st = add_sides(rows, frames, sides, err);
        for (size_t i = 0; i < count; i++) /* drop rows without samples */
                if (rows[i].cumulative[0] || rows[i].cumulative[1] || rows[i].flat[0] || rows[i].flat[1])
                        rows[kept++] = rows[i];
        if (!st)
                st = work_meter_sort(frames->meter, rows, kept, sizeof *rows,
                                     sides[1].m ? compare_row_changes : compare_top_rows, &sorting, err);
        if (st)
                return st;
        memory_shrink(&memory, count * sizeof *rows);
        *ret = (struct top){ steal_ptr(rows), kept, memory };
        memory.bytes = 0;
        return ST_OK;
}

void top_deinit(struct top *t)
{
        free(t->rows);
        memory_release(&t->memory);
        *t = (struct top){ 0 };
}
