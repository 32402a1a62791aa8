/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A key column is read as runs: rows up to `end` have text number `text`. Equal neighbours are joined by dictionary
 * code; `text_numbers` maps the codes of the column being read to its texts, so that a text is copied once per column
 * and row group. A period is a text of eight bytes.
 *
 * The columns have a fixed order: type, unit, period, ids, requested labels, all other labels if groups depend on
 * them, and last labels_rest, the labels without a column, as one column whose runs have a row in place of a text. A
 * requested label may be an id, have a column, or be in labels_rest: get_row_label().
 *
 * group_keys_move() advances each column to the run of a row and returns the nearest end: the rows up to it are one
 * group, found once. Work thus grows with the number of runs, not of rows; only labels_rest is compared row by row.
 *
 * In the file: runs and texts; columns of each kind, group_keys_read(); the group of a row.
 * No lock: the object belongs to one thread of a scan.
 */
#include "profile-store/scan/group_keys.h"

#include <stdlib.h>
#include <string.h>

#include "common/memory/array.h"
#include "common/limits.h"
#include "common/text.h"

#define UNCOUNTED_ENTRIES 4096   /* smaller arrays are not reserved */
#define CHUNK_TEXT_BYTES MiB(64) /* limit of the texts of a row group's key columns */

/* Rows with the same text, from the end of the run before up to `end`. */
struct key_run {
        uint32_t end, text;
};

/* A column by which rows are grouped. */
struct key_column {
        const char *label; /* in column spelling; NULL: not a label */
        bool has_column;   /* false: the label has no column of its own */
        struct key_run *runs;
        size_t run_count, run_capacity;
        struct parquet_bytes *texts; /* allocated in the arena */
        size_t text_count, text_capacity;
        size_t at; /* run of the current row */
};

enum { KEY_TYPE, KEY_UNIT, KEY_PERIOD, KEY_IDS, KEY_LABELS = KEY_IDS + ID_KEYS };

void group_keys_init(struct group_keys *k, const struct scan_group_by *by, const char *const *names,
                     const struct label_columns *all)
{
        *k = (struct group_keys){ .by = by, .names = names, .all = all };
        k->memory.use = k->number_memory.use = MEMORY_QUERIES;
}

void group_keys_release(struct group_keys *k)
{
        for (size_t i = 0; i < k->column_count; i++) {
                free(k->columns[i].runs);
                free(k->columns[i].texts);
        }
        free(k->columns);
        k->columns = NULL;
        k->column_count = 0;
        memory_release(&k->memory);
        parquet_column_deinit(&k->rest_keys);
        parquet_column_deinit(&k->rest_values);
        column_source_deinit(&k->rest_source);
        arena_deinit(&k->arena);
}

void group_keys_deinit(struct group_keys *k)
{
        free(k->text_numbers);
        memory_release(&k->number_memory);
}

static enum status reserve_key_entry(struct group_keys *k, void *array_pointer, size_t *capacity, size_t count,
                                     size_t size, struct error *err)
{
        size_t before = *capacity > UNCOUNTED_ENTRIES ? *capacity : 0;

        if (count < *capacity)
                return ST_OK;
        if (!array_grow(array_pointer, capacity, count, 1, size))
                return error_no_memory(err);
        return *capacity > UNCOUNTED_ENTRIES ? memory_reserve(&k->memory, (*capacity - before) * size, err) : ST_OK;
}

struct key_visit {
        struct group_keys *keys;
        struct key_column *column;
        struct parquet_cursor *cursor;
        const struct id_key *id; /* id columns only; NULL: a text column */
};

static enum status add_key_run(struct group_keys *k, struct key_column *c, uint32_t end, uint32_t text,
                               struct error *err)
{
        enum status st;

        if (c->run_count && c->runs[c->run_count - 1].text == text) {
                c->runs[c->run_count - 1].end = end;
                return ST_OK;
        }
        st = reserve_key_entry(k, &c->runs, &c->run_capacity, c->run_count, sizeof *c->runs, err);
        if (!st)
                c->runs[c->run_count++] = (struct key_run){ end, text };
        return st;
}

static enum status add_key_text(struct group_keys *k, struct key_column *c, const void *data, size_t n,
                                struct error *err)
{
        enum status st = reserve_key_entry(k, &c->texts, &c->text_capacity, c->text_count, sizeof *c->texts, err);
        char *copy;

        if (st)
                return st;
        copy = arena_strndup(&k->arena, data, n);
        if (!copy)
                return arena_error(&k->arena, err, "the labels of a row group");
        c->texts[c->text_count++] = (struct parquet_bytes){ (const uint8_t *)copy, n };
        return ST_OK;
}

/* Text of an id; "" when absent. */
static enum status add_id_text(struct key_visit *v, const struct parquet_bytes *id, struct error *err)
{
        char hex[2 * ID_BYTES_MAX + 1];

        if (id->size != v->id->size)
                return add_key_text(v->keys, v->column, "", 0, err);
        return add_key_text(v->keys, v->column, hex_encode(id->data, id->size, hex), 2 * id->size, err);
}

static enum status find_key_text(struct key_visit *v, uint32_t code, uint32_t *ret, struct error *err)
{
        struct group_keys *k = v->keys;
        uint32_t count, slot = code == PARQUET_NULL_CODE ? 0 : code + 1;
        const struct parquet_bytes *dict = parquet_cursor_dict(v->cursor, &count);
        enum status st = ST_OK;

        if (!k->text_numbers[slot]) {
                if (!slot)
                        st = add_key_text(k, v->column, "", 0, err);
                else if (v->id)
                        st = add_id_text(v, &dict[code], err);
                else
                        st = add_key_text(k, v->column, dict[code].data, dict[code].size, err);
                if (!st)
                        k->text_numbers[slot] = (uint32_t)v->column->text_count;
        }
        *ret = k->text_numbers[slot] - 1;
        return st;
}

static enum status reserve_text_numbers(struct group_keys *k, size_t count, struct error *err)
{
        size_t before = k->text_number_capacity, capacity = count + count / 4;
        uint32_t *numbers;
        enum status st;

        if (count <= before)
                return ST_OK;
        st = capacity > UNCOUNTED_ENTRIES ? memory_resize(&k->number_memory, capacity * sizeof *numbers, err) : ST_OK;
        if (st)
                return st;
        numbers = realloc(k->text_numbers, capacity * sizeof *numbers);
        if (!numbers)
                return error_no_memory(err);
        memset(numbers + before, 0, (capacity - before) * sizeof *numbers);
        k->text_numbers = numbers;
        k->text_number_capacity = capacity;
        return ST_OK;
}

static enum status visit_key_texts(void *context, uint32_t row, const struct parquet_piece *piece, struct error *err)
{
        struct key_visit *v = context;
        uint32_t dict_count, text, length = piece->is_run ? 1 : piece->count;
        enum status st;

        parquet_cursor_dict(v->cursor, &dict_count);
        st = reserve_text_numbers(v->keys, dict_count + (size_t)1, err);
        for (uint32_t i = 0, next; !st && i < length; i = next) {
                for (next = i + 1; next < length && piece->codes[next] == piece->codes[i];)
                        next++;
                st = find_key_text(v, piece->codes[i], &text, err);
                if (!st)
                        st = add_key_run(v->keys, v->column, row + (piece->is_run ? piece->count : next), text, err);
        }
        return st;
}

/* A period's text is its eight bytes. */
static enum status visit_key_periods(void *context, uint32_t row, const struct parquet_piece *piece, struct error *err)
{
        struct key_visit *v = context;
        struct key_column *c = v->column;
        uint32_t length = piece->is_run ? 1 : piece->count;
        enum status st = ST_OK;

        for (uint32_t i = 0, next; !st && i < length; i = next) {
                const int64_t *period = &piece->ints[i];

                for (next = i + 1; next < length && piece->ints[next] == *period;)
                        next++;
                if (!c->text_count || memcmp(c->texts[c->text_count - 1].data, period, sizeof *period) != 0)
                        st = add_key_text(v->keys, c, period, sizeof *period, err);
                if (!st)
                        st = add_key_run(v->keys, c, row + (piece->is_run ? piece->count : next),
                                         (uint32_t)c->text_count - 1, err);
        }
        return st;
}

/* kind: PARQUET_INT64 for periods, PARQUET_BINARY for ids, otherwise PARQUET_STRING. */
static enum status read_key_runs(struct group_keys *k, struct key_column *c, const char *column, enum parquet_kind kind,
                                 struct error *err)
{
        const struct scan_chunk *chunk = k->chunk;
        struct key_visit v = { .keys = k, .column = c, .id = kind == PARQUET_BINARY ? scan_find_id_key(column) : NULL };
        enum status st = scan_open_chunk_column(chunk, CURSOR_KEY, column, kind, &v.cursor, err);

        if (k->text_numbers)
                memset(k->text_numbers, 0, k->text_number_capacity * sizeof *k->text_numbers);
        c->has_column = true;
        return st ? st
                  : scan_visit_pieces(chunk->thread, v.cursor, chunk->rows,
                                      kind == PARQUET_INT64 ? visit_key_periods : visit_key_texts, &v, err);
}

static enum status read_label_runs(struct group_keys *k, const char *name, struct error *err)
{
        struct key_column *c = &k->columns[k->column_count++];
        _cleanup_free_ char *column = label_column(name);

        c->label = name;
        if (!column)
                return error_no_memory(err);
        if (part_file_has_column(k->chunk->file, column))
                return read_key_runs(k, c, column, PARQUET_STRING, err);
        k->needs_rest = true;
        return ST_OK;
}

/* The key column of a label that is an id of samples; NULL for other labels. */
static struct key_column *find_id_column(const struct group_keys *k, const char *label)
{
        const struct id_key *id = scan_find_id_key(label);

        return id ? &k->columns[KEY_IDS + (id - scan_id_keys)] : NULL;
}

/* Read an id that is among the requested labels, if the row group has any. */
static enum status read_id_runs(struct group_keys *k, const char *label, struct error *err)
{
        const struct id_key *id = scan_find_id_key(label);
        struct key_column *c = find_id_column(k, label);

        if (!c || c->has_column || !group_has_ids(k->chunk->file, k->chunk->group, id))
                return ST_OK;
        return read_key_runs(k, c, id->name, PARQUET_BINARY, err);
}

static enum status read_rest_labels(struct group_keys *k, struct error *err)
{
        const struct scan_chunk *chunk = k->chunk;
        enum status st;

        k->rest_source =
                (struct column_source){ .file = chunk->file, .group = chunk->group, .memory.use = MEMORY_QUERIES };
        st = scan_read_column(&k->rest_source, "labels_rest.key_value.key", PARQUET_STRING, &k->rest_keys, err);
        if (!st)
                st = scan_read_column(&k->rest_source, "labels_rest.key_value.value", PARQUET_STRING, &k->rest_values,
                                      err);
        if (!st && k->rest_keys.count != k->rest_values.count)
                st = error_set(err, ST_BAD_DATA, "'%s' has a labels_rest of unequal columns", chunk->file->path);
        return st;
}

static bool has_same_rest(const struct group_keys *k, uint32_t a, uint32_t b)
{
        const struct parquet_column *keys = &k->rest_keys, *values = &k->rest_values;
        uint32_t count = keys->offsets[a + 1] - keys->offsets[a];

        if (keys->offsets[b + 1] - keys->offsets[b] != count)
                return false;
        for (uint32_t i = 0; i < count; i++) {
                uint32_t x = keys->offsets[a] + i, y = keys->offsets[b] + i;

                if (keys->codes[x] != keys->codes[y] || values->codes[x] != values->codes[y])
                        return false;
        }
        return true;
}

/* Labels without a column form one more key column. Its runs have their first row in place of a text. */
static enum status find_rest_runs(struct group_keys *k, struct error *err)
{
        const struct row_ranges *rows = k->chunk->rows;
        struct key_column *c = &k->columns[k->column_count++];
        uint32_t first = 0;
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < rows->count; i++) {
                const struct row_range *range = &rows->items[i];

                for (uint32_t row = range->first; !st && row < range->first + range->count; row++) {
                        if (!c->run_count || !has_same_rest(k, first, row))
                                first = row;
                        st = add_key_run(k, c, row + 1, first, err);
                        if (!st)
                                st = work_meter_add(k->chunk->thread->meter, 8, err);
                }
        }
        return st;
}

enum status group_keys_read(struct group_keys *k, const struct scan_chunk *chunk, struct error *err)
{
        size_t labels = k->by->all_labels ? 0 : k->by->label_count;
        size_t all = group_by_needs_all_labels(k->by) ? k->all->count : 0;
        enum status st;

        k->chunk = chunk;
        arena_init_budget(&k->arena, CHUNK_TEXT_BYTES, MEMORY_QUERIES);
        k->needs_rest = group_by_needs_all_labels(k->by);
        k->columns = calloc(KEY_LABELS + labels + all + 1, sizeof *k->columns);
        if (!k->columns)
                return error_no_memory(err);
        k->column_count = KEY_LABELS;
        st = read_key_runs(k, &k->columns[KEY_TYPE], "profile_type", PARQUET_STRING, err);
        if (!st)
                st = read_key_runs(k, &k->columns[KEY_UNIT], "unit", PARQUET_STRING, err);
        if (!st)
                st = read_key_runs(k, &k->columns[KEY_PERIOD], "period", PARQUET_INT64, err);
        for (size_t i = 0; !st && i < labels; i++)
                st = read_id_runs(k, k->names[i], err);
        for (size_t i = 0; !st && i < labels; i++)
                st = read_label_runs(k, k->names[i], err);
        for (size_t i = 0; !st && i < all; i++)
                if (group_by_collects_label(k->by, k->all->names[i], strlen(k->all->names[i])))
                        st = read_label_runs(k, k->all->names[i], err);
        k->needs_rest = k->needs_rest && !group_lacks_rest_labels(k->chunk->file, k->chunk->group);
        if (!st && k->needs_rest)
                st = read_rest_labels(k, err);
        return st || !k->needs_rest ? st : find_rest_runs(k, err);
}

/* ---- the group of a row ---- */

/* The text of a key column at the current row. Rows must be visited in order. */
static struct parquet_bytes get_key_text(const struct key_column *c)
{
        return c->texts[c->runs[c->at].text];
}

static struct parquet_bytes get_rest_text(const struct parquet_column *c, uint32_t slot)
{
        return c->codes[slot] == PARQUET_NULL_CODE ? as_text_bytes("") : c->dict[c->codes[slot]];
}

/* The first row of the run whose rows have the same labels without a column as the current row. */
static uint32_t get_rest_row(const struct group_keys *k)
{
        const struct key_column *c = &k->columns[k->column_count - 1];

        return c->runs[c->at].text;
}

/* Value of a label that has no column; "" if missing. */
static struct parquet_bytes find_rest_label(const struct group_keys *k, const char *name)
{
        return k->needs_rest ? scan_find_rest_value(&k->rest_keys, &k->rest_values, get_rest_row(k), name)
                             : as_text_bytes("");
}

static bool is_same_key_text(const struct parquet_bytes *x, const struct parquet_bytes *y)
{
        return x->size == y->size && memcmp(x->data, y->data, x->size) == 0;
}

/* Of a repeated key the last non-null value counts, as in scan_find_rest_value(). */
static bool is_repeated_later(const struct group_keys *k, uint32_t slot, uint32_t end)
{
        const struct parquet_bytes name = get_rest_text(&k->rest_keys, slot);

        for (uint32_t i = slot + 1; i < end; i++) {
                const struct parquet_bytes other = get_rest_text(&k->rest_keys, i);

                if (k->rest_values.codes[i] != PARQUET_NULL_CODE && is_same_key_text(&name, &other))
                        return true;
        }
        return false;
}

static enum status collect_rest_labels(const struct group_keys *k, struct group_table *t, struct error *err)
{
        uint32_t row = get_rest_row(k), end = k->rest_keys.offsets[row + 1];
        enum status st = ST_OK;

        for (uint32_t slot = k->rest_keys.offsets[row]; !st && slot < end; slot++) {
                st = work_meter_add(k->chunk->thread->meter, 1 + (end - slot) / 4, err);
                if (!st && !is_repeated_later(k, slot, end))
                        st = group_table_collect_label(t, get_rest_text(&k->rest_keys, slot),
                                                       get_rest_text(&k->rest_values, slot), err);
        }
        return st;
}

/* Value of a requested label: the sample's id, or else the label of that name. */
static struct parquet_bytes get_row_label(const struct group_keys *k, const struct key_column *c)
{
        const struct key_column *id = find_id_column(k, c->label);

        if (id && id->has_column && get_key_text(id).size)
                return get_key_text(id);
        return c->has_column ? get_key_text(c) : find_rest_label(k, c->label);
}

static enum status collect_row_labels(const struct group_keys *k, struct group_table *t, struct error *err)
{
        size_t keys = k->by->all_labels ? 0 : k->by->label_count, end = k->column_count - k->needs_rest;
        enum status st = ST_OK;

        group_table_clear_labels(t);
        for (size_t i = KEY_LABELS; !st && i < KEY_LABELS + keys; i++) {
                const struct key_column *c = &k->columns[i];

                st = group_table_add_label(t, as_text_bytes(c->label), get_row_label(k, c), err);
        }
        for (size_t i = KEY_LABELS + keys; !st && i < end; i++)
                if (k->columns[i].has_column)
                        st = group_table_collect_label(t, as_text_bytes(k->columns[i].label),
                                                       get_key_text(&k->columns[i]), err);
        return st || !k->needs_rest || !group_by_needs_all_labels(k->by) ? st : collect_rest_labels(k, t, err);
}

enum status group_keys_find_group(struct group_keys *k, struct group_table *t, uint32_t *ret, struct error *err)
{
        struct group_kind kind = { get_key_text(&k->columns[KEY_TYPE]), get_key_text(&k->columns[KEY_UNIT]), 0 };
        enum status st = work_meter_add(k->chunk->thread->meter, 16 * (k->column_count + 1), err);

        memcpy(&kind.period, get_key_text(&k->columns[KEY_PERIOD]).data, sizeof kind.period);
        if (!st)
                st = collect_row_labels(k, t, err);
        return st ? st : group_table_find_or_add(t, &kind, ret, err);
}

struct parquet_bytes group_keys_get_type(const struct group_keys *k)
{
        return get_key_text(&k->columns[KEY_TYPE]);
}

uint32_t group_keys_move(struct group_keys *k, uint32_t row, uint32_t end)
{
        for (size_t i = 0; i < k->column_count; i++) {
                struct key_column *c = &k->columns[i];

                if (!c->run_count)
                        continue;
                while (c->runs[c->at].end <= row)
                        c->at++;
                end = c->runs[c->at].end < end ? c->runs[c->at].end : end;
        }
        return end;
}
