/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "common/array.h"
#include "profile-store/scan/scan_internal.h"

/* A set of texts, in the scan's arena. */
struct name_list {
        struct store_scan *scan;
        struct key_map seen; /* hash of the text to its number */
        const char **items;
        size_t count, capacity;
        const char *column; /* label to collect, in column spelling; NULL: profile types */
};

static void name_list_deinit(struct name_list *n)
{
        key_map_deinit(&n->seen);
        free(n->items);
}

static enum status add_list_name(struct name_list *n, const char *text, size_t size, struct error *err)
{
        struct hash128 key = hash_bytes128(text, size);
        bool added;
        enum status st = work_meter_add(n->scan->meter, 8, err);

        if (st || !size)
                return st;
        st = key_map_put(&n->seen, &key, n->count, &added, NULL, err);
        if (st || !added)
                return st;
        if (!array_reserve(&n->items, &n->capacity, n->count))
                return error_no_memory(err);
        n->items[n->count] = arena_strndup(&n->scan->arena, text, size);
        return n->items[n->count++] ? ST_OK : set_scan_too_big(err);
}

static bool has_list_name(const struct name_list *n, const char *text)
{
        struct hash128 key = hash_bytes128(text, strlen(text));

        return key_map_find(&n->seen, &key);
}

static int compare_names(const void *a, const void *b, void *context)
{
        (void)context;
        return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static enum status finish_name_list(struct name_list *n, struct scan_names *ret, struct error *err)
{
        const char **items = arena_alloc_array(&n->scan->arena, n->count + 1, sizeof *items);

        if (!items)
                return set_scan_too_big(err);
        if (n->count) {
                enum status st =
                        work_meter_sort(n->scan->meter, n->items, n->count, sizeof *n->items, compare_names, NULL, err);

                if (st)
                        return st;
                memcpy(items, n->items, n->count * sizeof *items);
        }
        *ret = (struct scan_names){ .items = items, .count = n->count };
        return ST_OK;
}

/* ---- values of a label, and types ------------------------------------------------------------------ */

/* The distinct texts of the selected rows of a column. */
static enum status collect_column_values(struct name_list *n, const struct scan_chunk *chunk, const char *column,
                                         struct error *err)
{
        _cleanup_parquet_column_ struct parquet_column c = { 0 };
        _cleanup_free_ uint8_t *seen = NULL;
        enum status st = part_file_read_column(chunk->file, chunk->group, column, PARQUET_STRING, &c, err);

        if (!st && !(seen = calloc(c.dict_count + (size_t)1, 1)))
                st = error_no_memory(err);
        for (uint64_t i = 0; !st && i < chunk->selection->row_count; i++) {
                uint32_t code = c.codes[i];

                if (!chunk->selection->mask[i] || code == PARQUET_NULL_CODE || seen[code])
                        continue;
                seen[code] = 1;
                st = add_list_name(n, (const char *)c.dict[code].data, c.dict[code].size, err);
        }
        return st;
}

/* The values of one key in the map of the labels without a column (key NULL: the keys). */
static enum status collect_rest_values(struct name_list *n, const struct scan_chunk *chunk, const char *key,
                                       struct error *err)
{
        _cleanup_parquet_column_ struct parquet_column keys = { 0 }, values = { 0 };
        enum status st = part_file_read_column(chunk->file, chunk->group, "labels_rest.key_value.key", PARQUET_STRING,
                                               &keys, err);

        if (!st)
                st = part_file_read_column(chunk->file, chunk->group, "labels_rest.key_value.value", PARQUET_STRING,
                                           &values, err);
        if (!st && keys.count != values.count)
                st = error_set(err, ST_BAD_DATA, "'%s' has a labels_rest of unequal columns", chunk->file->path);
        for (uint64_t i = 0; !st && i < chunk->selection->row_count; i++) {
                st = work_meter_add(n->scan->meter, 1, err);
                for (uint32_t slot = keys.offsets[i]; !st && chunk->selection->mask[i] && slot < keys.offsets[i + 1];
                     slot++) {
                        uint32_t code = keys.codes[slot];
                        const struct parquet_bytes *k = code == PARQUET_NULL_CODE ? NULL : &keys.dict[code], *v;

                        st = work_meter_add(n->scan->meter, 1, err);
                        if (st || !k || (key && (k->size != strlen(key) || memcmp(k->data, key, k->size) != 0)))
                                continue;
                        v = values.codes[slot] == PARQUET_NULL_CODE ? NULL : &values.dict[values.codes[slot]];
                        if (!key)
                                st = add_list_name(n, (const char *)k->data, k->size, err);
                        else if (v)
                                st = add_list_name(n, (const char *)v->data, v->size, err);
                }
        }
        return st;
}

static enum status collect_values(void *context, const struct scan_chunk *chunk, struct error *err)
{
        struct name_list *n = context;
        const struct batch *b = chunk->batch;
        _cleanup_free_ char *column = NULL;
        enum status st = ST_OK;

        for (uint32_t i = 0; b && !st && i < b->sample_count; i++) {
                const char *text;

                if (!chunk->selection->mask[i])
                        continue;
                text = n->column ? batch_find_label(&b->label_sets[b->samples[i].label_set], n->column)
                                 : b->types[b->samples[i].type].id;
                st = add_list_name(n, text, strlen(text), err);
        }
        if (b)
                return st;
        if (!n->column)
                return collect_column_values(n, chunk, "profile_type", err);
        column = label_column(n->column);
        if (!column)
                return error_no_memory(err);
        return part_file_has_column(chunk->file, column) ? collect_column_values(n, chunk, column, err)
                                                         : collect_rest_values(n, chunk, n->column, err);
}

enum status store_scan_list_types(struct store_scan *scan, const struct scan_filter *filter, struct scan_names *ret,
                                  struct error *err)
{
        _cleanup_(name_list_deinit) struct name_list n = { .scan = scan };
        enum status st = scan_visit_chunks(scan, filter, collect_values, &n, err);

        return st ? st : finish_name_list(&n, ret, err);
}

enum status store_scan_list_label_values(struct store_scan *scan, const char *key, const struct scan_filter *filter,
                                         struct scan_names *ret, struct error *err)
{
        _cleanup_free_ char *column = strdup(key);
        _cleanup_(name_list_deinit) struct name_list n = { .scan = scan, .column = column };
        enum status st;

        if (!column)
                return error_no_memory(err);
        normalize_label_key(key, column);
        st = scan_visit_chunks(scan, filter, collect_values, &n, err);
        return st ? st : finish_name_list(&n, ret, err);
}

/* ---- names of labels -------------------------------------------------------------------------------- */

static enum status has_selected_value(const struct scan_chunk *chunk, const char *column, bool *ret, struct error *err)
{
        _cleanup_parquet_column_ struct parquet_column c = { 0 };
        uint32_t node = parquet_schema_find(parquet_file_schema(chunk->file->file), column);
        struct parquet_stats stats;
        enum status st;

        *ret = false;
        parquet_file_stats(chunk->file->file, chunk->group, node, &stats);
        if (stats.has_null_count && stats.null_count == chunk->selection->row_count)
                return ST_OK;
        st = part_file_read_column(chunk->file, chunk->group, column, PARQUET_STRING, &c, err);
        for (uint64_t i = 0; !st && !*ret && i < chunk->selection->row_count; i++)
                *ret = chunk->selection->mask[i] && c.codes[i] != PARQUET_NULL_CODE;
        return st;
}

static enum status collect_group_names(struct name_list *n, const struct scan_chunk *chunk, struct error *err)
{
        const struct label_columns *columns = &n->scan->tables->columns;

        for (size_t i = 0; i < columns->count; i++) {
                _cleanup_free_ char *column = label_column(columns->names[i]);
                bool any = false;
                enum status st = work_meter_check(n->scan->meter, err);

                if (!column)
                        return error_no_memory(err);
                if (!st && !has_list_name(n, columns->names[i]) && part_file_has_column(chunk->file, column))
                        st = has_selected_value(chunk, column, &any, err);
                if (!st && any)
                        st = add_list_name(n, columns->names[i], strlen(columns->names[i]), err);
                if (st)
                        return st;
        }
        return collect_rest_values(n, chunk, NULL, err);
}

static enum status collect_label_names(void *context, const struct scan_chunk *chunk, struct error *err)
{
        struct name_list *n = context;
        const struct batch *b = chunk->batch;
        enum status st = ST_OK;

        if (!b)
                return collect_group_names(n, chunk, err);
        for (uint32_t i = 0; i < b->sample_count; i++) {
                const struct batch_label_set *set = &b->label_sets[b->samples[i].label_set];

                for (uint32_t k = 0; !st && chunk->selection->mask[i] && k < set->count; k++)
                        st = add_list_name(n, set->labels[k].name, strlen(set->labels[k].name), err);
                if (st)
                        return st;
        }
        return ST_OK;
}

enum status store_scan_list_label_names(struct store_scan *scan, int64_t from, int64_t to, struct scan_names *ret,
                                        struct error *err)
{
        const struct scan_filter filter = { .from_unix_ns = from, .to_unix_ns = to };
        _cleanup_(name_list_deinit) struct name_list n = { .scan = scan };
        enum status st = scan_visit_chunks(scan, &filter, collect_label_names, &n, err);

        return st ? st : finish_name_list(&n, ret, err);
}
