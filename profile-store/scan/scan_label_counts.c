/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The number of values of each label, in one pass over the selected samples: the columns of a row group are read one
 * after the other, and the labels without a column once for all of them. Values of a label are counted up to a maximum,
 * so the memory is bounded by the number of labels.
 */
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "common/memory/array.h"
#include "profile-formats/hidden_label.h"
#include "profile-store/scan/scan_internal.h"

struct counted_value {
        struct hash128 key; /* of name and value */
        uint32_t name;      /* number in names */
};

/* One per thread, merged at the end. */
struct label_counts {
        const struct label_columns *columns; /* of the table */
        struct arena arena;                  /* of the names */
        struct key_map numbers;              /* hash of a name to its number */
        const char **names;
        uint32_t *counts; /* of values by name: at most LIMIT_LABEL_VALUES_COUNTED + 1 */
        size_t name_count, name_capacity, count_capacity;
        struct key_map seen;
        struct counted_value *values;
        size_t value_count, value_capacity;
        uint32_t column; /* name whose column is being read */
};

static void label_counts_deinit(struct label_counts *c)
{
        key_map_deinit(&c->numbers);
        key_map_deinit(&c->seen);
        free(c->names);
        free(c->counts);
        free(c->values);
        arena_deinit(&c->arena);
}

static void label_counts_init(struct label_counts *c, const struct label_columns *columns)
{
        *c = (struct label_counts){ .columns = columns,
                                    .numbers.memory.use = MEMORY_QUERIES,
                                    .seen.memory.use = MEMORY_QUERIES };
        arena_init_budget(&c->arena, LIMIT_SCAN_MEMORY_BYTES, MEMORY_QUERIES);
}

static enum status number_label_name(struct label_counts *c, const char *name, size_t n, uint32_t *ret,
                                     struct error *err)
{
        const struct hash128 key = hash_bytes128(name, n);
        const uint64_t *known = key_map_find(&c->numbers, &key);
        bool added;
        enum status st;

        if (known) {
                *ret = (uint32_t)*known;
                return ST_OK;
        }
        st = key_map_put(&c->numbers, &key, c->name_count, &added, NULL, err);
        if (st)
                return st;
        if (!array_reserve(&c->names, &c->name_capacity, c->name_count) ||
            !array_reserve(&c->counts, &c->count_capacity, c->name_count))
                return error_no_memory(err);
        c->names[c->name_count] = arena_strndup(&c->arena, name, n);
        if (!c->names[c->name_count])
                return set_scan_too_big(err);
        c->counts[c->name_count] = 0;
        *ret = (uint32_t)c->name_count++;
        return ST_OK;
}

static bool has_counted_all(const struct label_counts *c, uint32_t name)
{
        return c->counts[name] > LIMIT_LABEL_VALUES_COUNTED;
}

static enum status count_value_key(struct label_counts *c, uint32_t name, const struct hash128 *key, struct error *err)
{
        bool added;
        enum status st = key_map_put(&c->seen, key, 0, &added, NULL, err);

        if (st || !added)
                return st;
        if (!array_reserve(&c->values, &c->value_capacity, c->value_count))
                return error_no_memory(err);
        c->values[c->value_count++] = (struct counted_value){ *key, name };
        c->counts[name]++;
        return ST_OK;
}

static enum status count_label_value(struct label_counts *c, uint32_t name, const char *value, size_t n,
                                     struct error *err)
{
        struct hash128 parts[2], key;

        if (!n || has_counted_all(c, name))
                return ST_OK;
        parts[0] = hash_bytes128(c->names[name], strlen(c->names[name]));
        parts[1] = hash_bytes128(value, n);
        key = hash_bytes128(parts, sizeof parts);
        return count_value_key(c, name, &key, err);
}

/* ---- row groups ---- */

static enum status count_column_value(void *context, const char *text, size_t n, struct error *err)
{
        struct label_counts *c = context;

        return count_label_value(c, c->column, text, n, err);
}

static enum status count_column_values(struct label_counts *c, const struct scan_chunk *chunk, const char *name,
                                       struct error *err)
{
        _cleanup_free_ char *column = label_column(name);
        enum status st = column ? work_meter_check(chunk->thread->meter, err) : error_no_memory(err);

        if (st || !part_file_has_column(chunk->file, column) || group_lacks_column(chunk, column))
                return st;
        st = number_label_name(c, name, strlen(name), &c->column, err);
        return st || has_counted_all(c, c->column) ? st : scan_visit_texts(chunk, column, count_column_value, c, err);
}

/* Count the labels of one row that have no column. Equal pairs are consecutive in the dictionary codes of many rows. */
static enum status count_rest_row(struct label_counts *c, const struct rest_labels *rest, uint32_t row,
                                  struct error *err)
{
        enum status st = ST_OK;

        for (uint32_t slot = rest->keys.offsets[row]; !st && slot < rest->keys.offsets[row + 1]; slot++) {
                const struct parquet_bytes *k, *v;
                uint32_t name;

                if (rest->keys.codes[slot] == PARQUET_NULL_CODE || rest->values.codes[slot] == PARQUET_NULL_CODE)
                        continue;
                k = &rest->keys.dict[rest->keys.codes[slot]];
                v = &rest->values.dict[rest->values.codes[slot]];
                st = number_label_name(c, (const char *)k->data, k->size, &name, err);
                if (!st)
                        st = count_label_value(c, name, (const char *)v->data, v->size, err);
        }
        return st;
}

static enum status count_group_values(struct label_counts *c, const struct scan_chunk *chunk, struct error *err)
{
        _cleanup_rest_labels_ struct rest_labels rest = { 0 };
        struct row_walk walk = { .rows = chunk->rows };
        uint32_t row;
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < c->columns->count; i++)
                st = count_column_values(c, chunk, c->columns->names[i], err);
        if (st || group_lacks_rest_labels(chunk->file, chunk->group))
                return st;
        st = open_rest_labels(chunk, &rest, err);
        while (!st && row_walk_next(&walk, &row)) {
                st = work_meter_add(chunk->thread->meter, 2 + 4 * (rest.keys.offsets[row + 1] - rest.keys.offsets[row]),
                                    err);
                if (!st)
                        st = count_rest_row(c, &rest, row, err);
        }
        return st;
}

/* ---- batches ---- */

static enum status count_batch_values(struct label_counts *c, const struct scan_chunk *chunk, struct error *err)
{
        const struct batch *b = chunk->batch;
        uint32_t last = UINT32_MAX;
        struct row_walk walk = { .rows = chunk->rows };
        uint32_t row;
        enum status st = ST_OK;

        while (!st && row_walk_next(&walk, &row)) {
                const struct batch_label_set *set = &b->label_sets[b->samples[row].label_set];

                st = work_meter_add(chunk->thread->meter, 1, err);
                if (b->samples[row].label_set == last)
                        continue;
                last = b->samples[row].label_set;
                for (uint32_t j = 0; !st && j < set->count; j++) {
                        const struct batch_label *l = &set->labels[j];
                        uint32_t name;

                        st = number_label_name(c, l->name, strlen(l->name), &name, err);
                        if (!st)
                                st = count_label_value(c, name, l->value, strlen(l->value), err);
                }
        }
        return st;
}

static enum status count_chunk_values(void *context, const struct scan_chunk *chunk, struct error *err)
{
        return chunk->batch ? count_batch_values(context, chunk, err) : count_group_values(context, chunk, err);
}

/* ---- merging ---- */

static enum status merge_label_counts(struct store_scan *scan, struct label_counts *all,
                                      const struct label_counts *from, struct error *err)
{
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < from->value_count; i++) {
                const struct counted_value *v = &from->values[i];
                uint32_t name;

                st = work_meter_add(scan->meter, 16, err);
                if (!st)
                        st = number_label_name(all, from->names[v->name], strlen(from->names[v->name]), &name, err);
                if (!st && !has_counted_all(all, name))
                        st = count_value_key(all, name, &v->key, err);
        }
        return st;
}

static int compare_label_counts(const void *a, const void *b)
{
        const struct scan_label_count *x = a, *y = b;

        return strcmp(x->name, y->name);
}

static enum status list_label_counts(struct store_scan *scan, const struct label_counts *all,
                                     struct scan_label_count **ret, size_t *count_ret, struct error *err)
{
        struct scan_label_count *items = arena_alloc_array(&scan->arena, all->name_count + 1, sizeof *items);
        size_t count = 0;

        if (!items)
                return set_scan_too_big(err);
        for (uint32_t i = 0; i < all->name_count; i++) {
                const char *name = arena_strndup(&scan->arena, all->names[i], strlen(all->names[i]));

                if (!name)
                        return set_scan_too_big(err);
                if (all->counts[i] && !label_is_hidden(name, strlen(name)))
                        items[count++] = (struct scan_label_count){ name, all->counts[i] };
        }
        qsort(items, count, sizeof *items, compare_label_counts);
        *ret = items;
        *count_ret = count;
        return ST_OK;
}

enum status store_scan_count_label_values(struct store_scan *scan, const struct scan_filter *filter,
                                          struct scan_label_count **ret, size_t *count_ret, struct error *err)
{
        static const struct chunk_visitor visitor = { count_chunk_values, NULL };
        const size_t threads = count_work_threads();
        _cleanup_free_ struct label_counts *parts = calloc(threads + 1, sizeof *parts);
        _cleanup_free_ void **contexts = calloc(threads, sizeof *contexts);
        struct label_counts *all;
        enum status st;

        if (!parts || !contexts)
                return error_no_memory(err);
        all = &parts[threads];
        for (size_t i = 0; i <= threads; i++)
                label_counts_init(&parts[i], &scan->tables->columns);
        for (size_t i = 0; i < threads; i++)
                contexts[i] = &parts[i];
        st = scan_visit_chunks(scan, filter, &visitor, contexts, threads, err);
        for (size_t i = 0; !st && i < threads; i++)
                st = merge_label_counts(scan, all, &parts[i], err);
        if (!st)
                st = list_label_counts(scan, all, ret, count_ret, err);
        for (size_t i = 0; i <= threads; i++)
                label_counts_deinit(&parts[i]);
        return st;
}
