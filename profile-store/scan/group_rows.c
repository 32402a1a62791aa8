/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-store/scan/group_rows.h"

#include <stdlib.h>
#include <string.h>

#define UNCOUNTED_ENTRIES 4096 /* smaller arrays are not reserved */

/* Reads a column at ascending rows. */
struct row_reader {
        struct parquet_cursor *cursor;
        struct parquet_piece piece;
        uint32_t first, next; /* row of the piece, and row after it */
};

/* Sum of the rows with one step or stack. */
struct item_sum {
        int64_t value; /* saturates */
        uint64_t samples;
        uint32_t stack; /* 1 + its number; 0: unknown */
};

enum stack_verdict { STACK_UNKNOWN, STACK_SELECTED, STACK_OMITTED };

/* The last step looked up, of the times in [from_us, to_us). */
struct known_step {
        int64_t from_us, to_us;
        uint32_t step;
        bool is_inside; /* within the requested steps */
};

struct group_rows {
        struct group_table *table;
        const struct scan_group_by *by;
        struct group_keys keys;

        /* of the current row group */
        const struct scan_chunk *chunk;
        struct row_reader values, stacks, times; /* no cursor when the column is not needed */

        /* by step or by code of a stack; all sums are zero between groups */
        struct item_sum *items;
        uint32_t *touched; /* items with a nonzero sum */
        size_t item_capacity, touched_count;
        struct memory_reservation memory; /* of both */
        struct known_step known;
        uint8_t *verdicts; /* enum stack_verdict by code of a stack, if stacks are selected; owned */
        size_t verdict_capacity;
};

struct group_rows *group_rows_create(struct group_table *t, const char *const *names, const struct label_columns *all)
{
        struct group_rows *g = calloc(1, sizeof *g);

        if (!g)
                return NULL;
        g->table = t;
        g->by = t->by;
        g->memory.use = MEMORY_QUERIES;
        group_keys_init(&g->keys, t->by, names, all);
        return g;
}

void group_rows_destroy(struct group_rows *g)
{
        if (!g)
                return;
        group_keys_deinit(&g->keys);
        free(g->items);
        free(g->touched);
        free(g->verdicts);
        memory_release(&g->memory);
        free(g);
}

/* ---- sums ---- */

bool find_time_step(const struct scan_group_by *by, int64_t time_us, uint32_t *ret)
{
        int64_t since;
        uint64_t step;

        if (__builtin_mul_overflow(time_us, 1000, &since) || __builtin_sub_overflow(since, by->first_unix_ns, &since))
                return false;
        step = since < 0 ? UINT64_MAX : (uint64_t)since / (uint64_t)by->step_ns;

        *ret = (uint32_t)step;
        return step < by->step_count;
}

/* As find_time_step(), without a division while the step does not change. */
static bool find_known_step(struct group_rows *g, int64_t time_us, uint32_t *ret)
{
        struct known_step *k = &g->known;

        if (time_us < k->from_us || time_us >= k->to_us) {
                int64_t from_ns, to_ns, step_ns = g->by->step_ns;

                *k = (struct known_step){ .from_us = time_us, .to_us = time_us };
                k->is_inside = find_time_step(g->by, time_us, &k->step);
                from_ns = k->is_inside ? g->by->first_unix_ns + (int64_t)k->step * step_ns : 0;
                if (k->is_inside && from_ns % 1000 == 0 && step_ns % 1000 == 0 &&
                    !__builtin_add_overflow(from_ns, step_ns, &to_ns)) {
                        k->from_us = from_ns / 1000;
                        k->to_us = to_ns / 1000;
                }
        }
        *ret = k->step;
        return k->is_inside;
}

static enum status reserve_items(struct group_rows *g, size_t count, struct error *err)
{
        size_t before = g->item_capacity, capacity = count + count / 4;
        struct item_sum *items;
        uint32_t *touched;
        enum status st;

        if (count <= before)
                return ST_OK;
        st = capacity > UNCOUNTED_ENTRIES ? memory_resize(&g->memory, capacity * (sizeof *items + sizeof *touched), err)
                                          : ST_OK;
        if (st)
                return st;
        items = realloc(g->items, capacity * sizeof *items);
        if (!items)
                return error_no_memory(err);
        memset(items + before, 0, (capacity - before) * sizeof *items);
        g->items = items;
        touched = realloc(g->touched, capacity * sizeof *touched);
        if (!touched)
                return error_no_memory(err);
        g->touched = touched;
        g->item_capacity = capacity;
        return ST_OK;
}

static void add_item_value(struct group_rows *g, uint32_t at, int64_t value)
{
        struct item_sum *sum = &g->items[at];

        if (!sum->samples++)
                g->touched[g->touched_count++] = at;
        if (__builtin_add_overflow(sum->value, value, &sum->value))
                sum->value = value > 0 ? INT64_MAX : INT64_MIN;
}

/* Advance the reader to the piece with the row. */
static enum status read_piece_at(struct row_reader *r, uint32_t row, uint32_t end, struct error *err)
{
        enum status st;

        if (row < r->next)
                return ST_OK;
        st = parquet_cursor_skip(r->cursor, row - r->next, err);
        if (!st)
                st = parquet_cursor_read(r->cursor, end - row, &r->piece, err);
        r->first = row;
        r->next = row + r->piece.count;
        return st;
}

static enum status check_code_range(struct group_rows *g, uint32_t row, uint32_t end, struct error *err)
{
        const struct row_reader *r = &g->stacks;
        uint32_t count, at = row - r->first;
        enum status st;

        parquet_cursor_dict(r->cursor, &count);
        st = reserve_items(g, count, err);
        for (uint32_t i = r->piece.is_run ? 0 : at; !st && i < (r->piece.is_run ? 1 : at + (end - row)); i++)
                if (r->piece.codes[i] == PARQUET_NULL_CODE)
                        st = error_set(err, ST_BAD_DATA, "'%s' has a sample without a stack", g->chunk->file->path);
        return st;
}

/* Add rows [row, end), which must lie in the current pieces of both readers. */
static enum status add_rows_by_stack(struct group_rows *g, uint32_t row, uint32_t end, struct error *err)
{
        const struct row_reader *v = &g->values, *k = &g->stacks;
        const uint32_t *codes = k->piece.is_run ? k->piece.codes : k->piece.codes + (row - k->first);
        const int64_t *values = v->piece.is_run ? v->piece.ints : v->piece.ints + (row - v->first);
        enum status st = check_code_range(g, row, end, err);

        for (uint32_t i = 0; !st && i < end - row; i++)
                add_item_value(g, codes[k->piece.is_run ? 0 : i], values[v->piece.is_run ? 0 : i]);
        return st;
}

/* Whether the stack of a row is selected; its code is in range, see reserve_verdicts(). */
static bool selects_row(struct group_rows *g, uint32_t row)
{
        const struct row_reader *r = &g->stacks;
        uint32_t count, code = r->piece.codes[r->piece.is_run ? 0 : row - r->first];
        const struct parquet_bytes *id;

        if (code == PARQUET_NULL_CODE)
                return false;
        if (g->verdicts[code] == STACK_UNKNOWN) {
                id = &parquet_cursor_dict(r->cursor, &count)[code];
                g->verdicts[code] = id->size == sizeof(stack_id) && g->by->selects_stack(g->by->stack_context, id->data)
                                            ? STACK_SELECTED
                                            : STACK_OMITTED;
        }
        return g->verdicts[code] == STACK_SELECTED;
}

static enum status reserve_verdicts(struct group_rows *g, struct error *err)
{
        uint32_t count;
        uint8_t *grown;

        parquet_cursor_dict(g->stacks.cursor, &count);
        if (count <= g->verdict_capacity)
                return ST_OK;
        grown = realloc(g->verdicts, count);
        if (!grown)
                return error_no_memory(err);
        memset(grown + g->verdict_capacity, STACK_UNKNOWN, count - g->verdict_capacity);
        g->verdicts = grown;
        g->verdict_capacity = count;
        return ST_OK;
}

static void add_rows_by_step(struct group_rows *g, uint32_t row, uint32_t end)
{
        const struct row_reader *v = &g->values, *k = &g->times;
        const int64_t *times = k->piece.is_run ? k->piece.ints : k->piece.ints + (row - k->first);
        const int64_t *values = v->piece.is_run ? v->piece.ints : v->piece.ints + (row - v->first);

        for (uint32_t i = 0; i < end - row; i++) {
                uint32_t step;

                if (g->by->selects_stack && !selects_row(g, row + i))
                        continue;
                if (find_known_step(g, times[k->piece.is_run ? 0 : i], &step))
                        add_item_value(g, step, values[v->piece.is_run ? 0 : i]);
        }
}

static void add_row_totals(struct group_rows *g, uint32_t row, uint32_t end)
{
        const struct row_reader *v = &g->values;
        const int64_t *values = v->piece.is_run ? v->piece.ints : v->piece.ints + (row - v->first);

        for (uint32_t i = 0; i < end - row; i++)
                add_item_value(g, 0, values[v->piece.is_run ? 0 : i]);
}

static enum status add_rows_by_time(struct group_rows *g, uint32_t group, uint32_t row, uint32_t end, struct error *err)
{
        const struct row_reader *v = &g->values, *k = &g->times;
        const int64_t *times = k->piece.is_run ? k->piece.ints : k->piece.ints + (row - k->first);
        const int64_t *values = v->piece.is_run ? v->piece.ints : v->piece.ints + (row - v->first);
        enum status st = ST_OK;

        for (uint32_t i = 0; !st && i < end - row; i++)
                st = group_table_add_at_time(g->table, group, times[k->piece.is_run ? 0 : i],
                                             values[v->piece.is_run ? 0 : i], err);
        return st;
}

/* Read the pieces at `row`. *ret is the end of the rows covered by the pieces of all readers, at most `end`. */
static enum status read_pieces(struct group_rows *g, uint32_t row, uint32_t end, uint32_t *ret, struct error *err)
{
        struct row_reader *const readers[] = { &g->values, &g->stacks, &g->times };
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < sizeof readers / sizeof *readers; i++) {
                if (!readers[i]->cursor)
                        continue;
                st = read_piece_at(readers[i], row, end, err);
                if (!st && readers[i]->next < end)
                        end = readers[i]->next;
        }
        *ret = end;
        return st ? st : work_meter_add(g->chunk->thread->meter, 8 + (uint64_t)(end - row), err);
}

static enum status add_group_rows(struct group_rows *g, uint32_t group, uint32_t first, uint32_t end, struct error *err)
{
        enum status st = ST_OK;

        for (uint32_t row = first, next; !st && row < end; row = next) {
                st = read_pieces(g, row, end, &next, err);
                if (st)
                        break;
                if (group_by_sums_stacks(g->by))
                        st = add_rows_by_stack(g, row, next, err);
                else if (g->by->times)
                        st = add_rows_by_time(g, group, row, next, err);
                else if (g->by->totals)
                        add_row_totals(g, row, next);
                else {
                        st = g->by->selects_stack ? reserve_verdicts(g, err) : ST_OK;
                        if (!st)
                                add_rows_by_step(g, row, next);
                }
        }
        return st;
}

/* The number of the stack with this code; looked up once per row group. */
static enum status number_code_stack(struct group_rows *g, uint32_t code, uint32_t *ret, struct error *err)
{
        uint32_t count, *known = &g->items[code].stack;
        const struct parquet_bytes *id = &parquet_cursor_dict(g->stacks.cursor, &count)[code];
        struct hash128 key;
        enum status st = ST_OK;

        if (!*known) {
                if (id->size != sizeof key.bytes)
                        return error_set(err, ST_BAD_DATA, "'%s' has a sample whose stack id has %zu bytes, not 16",
                                         g->chunk->file->path, id->size);
                memcpy(key.bytes, id->data, sizeof key.bytes);
                st = group_table_number_stack(g->table, &key, ret, err);
                if (!st)
                        *known = *ret + 1;
        }
        *ret = *known - 1;
        return st;
}

/* Add each step or stack of the group to the table once, and reset the sums, also after a failure. */
static enum status add_item_sums(struct group_rows *g, uint32_t group, struct error *err)
{
        enum status st = ST_OK;

        for (size_t i = 0; i < g->touched_count; i++) {
                struct item_sum *sum = &g->items[g->touched[i]];
                uint32_t item = g->touched[i];

                if (!st && group_by_sums_stacks(g->by))
                        st = number_code_stack(g, g->touched[i], &item, err);
                if (!st)
                        st = group_table_add_value(g->table, group, item, sum->value, sum->samples, err);
                sum->value = 0;
                sum->samples = 0;
        }
        if (!st)
                st = work_meter_add(g->chunk->thread->meter, 4 * g->touched_count, err);
        g->touched_count = 0;
        return st;
}

static enum status sum_range_groups(struct group_rows *g, const struct row_range *range, struct error *err)
{
        uint32_t end = range->first + range->count;
        enum status st = ST_OK;

        for (uint32_t row = range->first, next; !st && row < end; row = next) {
                uint32_t group;

                next = group_keys_move(&g->keys, row, end);
                if (!group_by_selects_type(g->by, group_keys_get_type(&g->keys))) {
                        st = work_meter_add(g->chunk->thread->meter, 8, err);
                        continue;
                }
                st = group_keys_find_group(&g->keys, g->table, &group, err);
                if (!st)
                        st = add_group_rows(g, group, row, next, err);
                if (!st)
                        st = add_item_sums(g, group, err);
        }
        return st;
}

static enum status open_value_columns(struct group_rows *g, struct error *err)
{
        const struct scan_chunk *chunk = g->chunk;
        enum status st = scan_open_chunk_column(chunk, CURSOR_VALUE, "value", PARQUET_INT64, &g->values.cursor, err);

        if (!st && (group_by_sums_stacks(g->by) || g->by->selects_stack))
                st = scan_open_chunk_column(chunk, CURSOR_STACK, "stack_id", PARQUET_BINARY, &g->stacks.cursor, err);
        if (!st && !group_by_sums_stacks(g->by) && !g->by->totals)
                st = scan_open_chunk_column(chunk, CURSOR_TIME, "time", PARQUET_TIMESTAMP, &g->times.cursor, err);
        return st;
}

enum status group_rows_sum(struct group_rows *g, const struct scan_chunk *chunk, struct error *err)
{
        size_t items = group_by_numbers_items(g->by) || g->by->totals ? 1 : g->by->step_count;
        enum status st = reserve_items(g, items, err);

        g->chunk = chunk;
        g->values = g->stacks = g->times = (struct row_reader){ 0 };
        for (size_t i = 0; i < g->item_capacity; i++)
                g->items[i].stack = 0;
        if (g->verdicts)
                memset(g->verdicts, STACK_UNKNOWN, g->verdict_capacity);
        if (!st)
                st = group_keys_read(&g->keys, chunk, err);
        if (!st)
                st = open_value_columns(g, err);
        for (size_t i = 0; !st && i < chunk->rows->count; i++)
                st = sum_range_groups(g, &chunk->rows->items[i], err);
        group_keys_release(&g->keys);
        return st;
}
