/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "common/memory/array.h"
#include "common/limits.h"
#include "profile-formats/hidden_label.h"
#include "profile-store/scan/scan_internal.h"

/* A set of texts in an arena: one per thread, merged at the end. */
struct name_list {
        struct arena arena;
        struct arena *texts; /* arena of the texts */
        struct key_map seen; /* hash of a text to its index */
        const char **items;
        size_t count, capacity;
        const char *column;                  /* label to collect, in column spelling; NULL: profile types */
        const struct label_columns *columns; /* of the table */
        bool *known;                         /* per column: the list has its name, or never will */
};

static void name_list_deinit(struct name_list *n)
{
        key_map_deinit(&n->seen);
        free(n->items);
        free(n->known);
        arena_deinit(&n->arena);
}

static enum status add_list_name(void *context, const char *text, size_t size, struct error *err)
{
        struct name_list *n = context;
        struct hash128 key;
        bool added;
        enum status st;

        if (!size)
                return ST_OK;
        key = hash_bytes128(text, size);
        st = key_map_put(&n->seen, &key, n->count, &added, NULL, err);
        if (st || !added)
                return st;
        if (!array_reserve(&n->items, &n->capacity, n->count))
                return error_no_memory(err);
        n->items[n->count] = arena_strndup(n->texts, text, size);
        return n->items[n->count++] ? ST_OK : set_scan_too_big(err);
}

/* As add_list_name() for the name of a label. */
static enum status add_label_name(struct name_list *n, const char *name, size_t size, struct error *err)
{
        return label_is_hidden(name, size) ? ST_OK : add_list_name(n, name, size, err);
}

static int compare_names(const void *a, const void *b, void *context)
{
        (void)context;
        return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static enum status finish_name_list(struct store_scan *scan, struct name_list *n, struct scan_names *ret,
                                    struct error *err)
{
        const char **items = arena_alloc_array(&scan->arena, n->count + 1, sizeof *items);

        if (!items)
                return set_scan_too_big(err);
        if (n->count) {
                enum status st =
                        work_meter_sort(scan->meter, n->items, n->count, sizeof *n->items, compare_names, NULL, err);

                if (st)
                        return st;
                memcpy(items, n->items, n->count * sizeof *items);
        }
        *ret = (struct scan_names){ .items = items, .count = n->count };
        return ST_OK;
}

/* Merge the lists of all threads; texts are copied to the scan's arena. */
static enum status merge_name_lists(struct store_scan *scan, struct name_list *lists, size_t count,
                                    struct scan_names *ret, struct error *err)
{
        _cleanup_(name_list_deinit) struct name_list all = { .texts = &scan->arena, .seen.memory.use = MEMORY_QUERIES };
        enum status st = ST_OK;

        for (size_t i = 0; i < count; i++) {
                for (size_t k = 0; !st && k < lists[i].count; k++) {
                        st = work_meter_add(scan->meter, 16, err);
                        if (!st)
                                st = add_list_name(&all, lists[i].items[k], strlen(lists[i].items[k]), err);
                }
        }
        return st ? st : finish_name_list(scan, &all, ret, err);
}

static enum status collect_names(struct store_scan *scan, const struct scan_filter *filter, const char *column,
                                 const struct chunk_visitor *visitor, struct scan_names *ret, struct error *err)
{
        size_t threads = count_work_threads(), labels = scan->tables->columns.count;
        _cleanup_free_ struct name_list *lists = calloc(threads, sizeof *lists);
        _cleanup_free_ void **contexts = calloc(threads, sizeof *contexts);
        enum status st = lists && contexts ? ST_OK : error_no_memory(err);

        for (size_t i = 0; lists && i < threads; i++) {
                arena_init_budget(&lists[i].arena, LIMIT_SCAN_MEMORY_BYTES, MEMORY_QUERIES);
                lists[i].texts = &lists[i].arena;
                lists[i].seen.memory.use = MEMORY_QUERIES;
                lists[i].column = column;
                lists[i].columns = &scan->tables->columns;
                lists[i].known = calloc(labels + 1, sizeof *lists[i].known);
                if (contexts)
                        contexts[i] = &lists[i];
                if (!lists[i].known)
                        st = error_no_memory(err);
                for (size_t k = 0; lists[i].known && k < labels; k++)
                        lists[i].known[k] =
                                label_is_hidden(lists[i].columns->names[k], strlen(lists[i].columns->names[k]));
        }
        if (!st)
                st = scan_visit_chunks(scan, filter, visitor, contexts, threads, err);
        if (!st)
                st = merge_name_lists(scan, lists, threads, ret, err);
        for (size_t i = 0; lists && i < threads; i++)
                name_list_deinit(&lists[i]);
        return st;
}

/* ---- values of a label, and types ------------------------------------------------------------------ */

static bool is_rest_key(const struct parquet_bytes *k, const char *key)
{
        return !key || (k->size == strlen(key) && memcmp(k->data, key, k->size) == 0);
}

/* Collect from the labels without a column of one row: values of a key, or the keys (key NULL). */
static enum status collect_row_rest(struct name_list *n, const struct parquet_column *keys,
                                    const struct parquet_column *values, uint32_t row, const char *key,
                                    struct error *err)
{
        enum status st = ST_OK;

        for (uint32_t slot = keys->offsets[row]; !st && slot < keys->offsets[row + 1]; slot++) {
                const struct parquet_bytes *k, *v;

                if (keys->codes[slot] == PARQUET_NULL_CODE || !is_rest_key(&keys->dict[keys->codes[slot]], key))
                        continue;
                k = &keys->dict[keys->codes[slot]];
                v = values->codes[slot] == PARQUET_NULL_CODE ? NULL : &values->dict[values->codes[slot]];
                if (!key)
                        st = add_label_name(n, (const char *)k->data, k->size, err);
                else if (v)
                        st = add_list_name(n, (const char *)v->data, v->size, err);
        }
        return st;
}

enum status open_rest_labels(const struct scan_chunk *chunk, struct rest_labels *ret, struct error *err)
{
        enum status st;

        ret->from = (struct column_source){ .file = chunk->file, .group = chunk->group, .memory.use = MEMORY_QUERIES };
        st = scan_read_column(&ret->from, "labels_rest.key_value.key", PARQUET_STRING, &ret->keys, err);
        if (!st)
                st = scan_read_column(&ret->from, "labels_rest.key_value.value", PARQUET_STRING, &ret->values, err);
        if (!st && ret->keys.count != ret->values.count)
                st = error_set(err, ST_BAD_DATA, "'%s' has a labels_rest of unequal columns", chunk->file->path);
        return st;
}

void rest_labels_deinit(struct rest_labels *r)
{
        parquet_column_deinit(&r->keys);
        parquet_column_deinit(&r->values);
        column_source_deinit(&r->from);
}

static enum status collect_rest_values(struct name_list *n, const struct scan_chunk *chunk, const char *key,
                                       struct error *err)
{
        _cleanup_rest_labels_ struct rest_labels rest = { 0 };
        struct row_walk walk = { .rows = chunk->rows };
        uint32_t row;
        enum status st;

        if (group_lacks_rest_labels(chunk->file, chunk->group))
                return ST_OK;
        st = open_rest_labels(chunk, &rest, err);
        while (!st && row_walk_next(&walk, &row)) {
                st = work_meter_add(chunk->thread->meter, 2 + rest.keys.offsets[row + 1] - rest.keys.offsets[row], err);
                if (!st)
                        st = collect_row_rest(n, &rest.keys, &rest.values, row, key, err);
        }
        return st;
}

static enum status collect_batch_values(struct name_list *n, const struct scan_chunk *chunk, struct error *err)
{
        const struct batch *b = chunk->batch;
        struct row_walk walk = { .rows = chunk->rows };
        uint32_t row;
        enum status st = ST_OK;

        while (!st && row_walk_next(&walk, &row)) {
                const char *text = n->column ? batch_find_label(&b->label_sets[b->samples[row].label_set], n->column)
                                             : b->types[b->samples[row].type].id;

                st = add_list_name(n, text, strlen(text), err);
                if (!st)
                        st = work_meter_add(chunk->thread->meter, 8, err);
        }
        return st;
}

static enum status collect_values(void *context, const struct scan_chunk *chunk, struct error *err)
{
        struct name_list *n = context;
        _cleanup_free_ char *column = NULL;

        if (chunk->batch)
                return collect_batch_values(n, chunk, err);
        if (!n->column)
                return scan_visit_texts(chunk, "profile_type", add_list_name, n, err);
        column = label_column(n->column);
        if (!column)
                return error_no_memory(err);
        return part_file_has_column(chunk->file, column) ? scan_visit_texts(chunk, column, add_list_name, n, err)
                                                         : collect_rest_values(n, chunk, n->column, err);
}

/* A list over a part of a day need not select its rows in each row group, but until all values are known. */
static bool has_only_known_value(const void *context, const struct part_file *f, uint32_t group)
{
        const struct name_list *n = context;
        _cleanup_free_ char *column = n->column ? label_column(n->column) : strdup("profile_type");
        struct parquet_bytes value;
        struct hash128 key;

        if (!column || !part_file_has_column(f, column) || !group_has_one_text(f, group, column, &value))
                return false;
        key = hash_bytes128(value.data, value.size);
        return key_map_find(&n->seen, &key) != NULL;
}

static const struct chunk_visitor value_visitor = { collect_values, has_only_known_value };

enum status store_scan_list_types(struct store_scan *scan, const struct scan_filter *filter, struct scan_names *ret,
                                  struct error *err)
{
        return collect_names(scan, filter, NULL, &value_visitor, ret, err);
}

enum status store_scan_list_label_values(struct store_scan *scan, const char *key, const struct scan_filter *filter,
                                         struct scan_names *ret, struct error *err)
{
        _cleanup_free_ char *column = strdup(key);

        if (!column)
                return error_no_memory(err);
        normalize_label_key(key, column);
        return collect_names(scan, filter, column, &value_visitor, ret, err);
}

/* ---- names of labels -------------------------------------------------------------------------------- */

static enum status note_text(void *context, const char *text, size_t n, struct error *err)
{
        bool *any = context;

        (void)text;
        (void)err;
        *any |= n != 0;
        return ST_OK;
}

bool group_lacks_column(const struct scan_chunk *chunk, const char *column)
{
        const struct parquet_schema *schema = parquet_file_schema(chunk->file->file);
        uint32_t node = parquet_schema_find(schema, column);
        struct parquet_stats stats;

        if (schema->nodes[node].column == PARQUET_NO_COLUMN)
                return false; /* reading it fails */
        parquet_file_stats(chunk->file->file, chunk->group, node, &stats);
        return stats.has_null_count && stats.null_count == stats.value_count;
}

static enum status has_selected_value(const struct scan_chunk *chunk, const char *column, bool *ret, struct error *err)
{
        uint32_t node = parquet_schema_find(parquet_file_schema(chunk->file->file), column);

        *ret = false;
        if (parquet_file_schema(chunk->file->file)->nodes[node].column == PARQUET_NO_COLUMN)
                return error_set(err, ST_BAD_DATA, "column '%s' of '%s' has the wrong type", column, chunk->file->path);
        if (group_lacks_column(chunk, column))
                return ST_OK;
        return scan_visit_texts(chunk, column, note_text, ret, err);
}

static enum status collect_group_names(struct name_list *n, const struct scan_chunk *chunk, struct error *err)
{
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < n->columns->count; i++) {
                _cleanup_free_ char *column = n->known[i] ? NULL : label_column(n->columns->names[i]);

                if (n->known[i])
                        continue;
                if (!column)
                        return error_no_memory(err);
                st = work_meter_check(chunk->thread->meter, err);
                if (!st && part_file_has_column(chunk->file, column))
                        st = has_selected_value(chunk, column, &n->known[i], err);
                if (!st && n->known[i])
                        st = add_list_name(n, n->columns->names[i], strlen(n->columns->names[i]), err);
        }
        return st ? st : collect_rest_values(n, chunk, NULL, err);
}

static enum status collect_batch_names(struct name_list *n, const struct scan_chunk *chunk, struct error *err)
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
                for (uint32_t j = 0; !st && j < set->count; j++)
                        st = add_label_name(n, set->labels[j].name, strlen(set->labels[j].name), err);
        }
        return st;
}

static enum status collect_label_names(void *context, const struct scan_chunk *chunk, struct error *err)
{
        return chunk->batch ? collect_batch_names(context, chunk, err) : collect_group_names(context, chunk, err);
}

static bool has_only_known_names(const void *context, const struct part_file *f, uint32_t group)
{
        const struct name_list *n = context;

        for (size_t i = 0; i < n->columns->count; i++)
                if (!n->known[i])
                        return false;
        return group_lacks_rest_labels(f, group);
}

enum status store_scan_list_label_names(struct store_scan *scan, const struct scan_filter *filter,
                                        struct scan_names *ret, struct error *err)
{
        static const struct chunk_visitor visitor = { collect_label_names, has_only_known_names };

        return collect_names(scan, filter, NULL, &visitor, ret, err);
}

/* ---- times ------------------------------------------------------------------------------------------ */

bool store_scan_get_time_range(const struct store_scan *scan, int64_t *from_ret, int64_t *to_ret)
{
        int64_t from_us = INT64_MAX, to_us = INT64_MIN;

        for (size_t i = 0; i < scan->tables->part_count[TABLE_SAMPLES]; i++) {
                const struct table_part *part = scan->tables->parts[TABLE_SAMPLES][i];

                if (!table_part_has_times(part))
                        continue;
                from_us = part->min_us < from_us ? part->min_us : from_us;
                to_us = part->max_us > to_us ? part->max_us : to_us;
        }
        for (size_t i = 0; i < scan->head_count; i++) {
                const struct batch *b = scan->head[i];

                if (!b->sample_count)
                        continue;
                from_us = b->oldest_us < from_us ? b->oldest_us : from_us;
                to_us = b->newest_us > to_us ? b->newest_us : to_us;
        }
        if (from_us > to_us)
                return false;
        *from_ret = from_us < INT64_MIN / 1000 ? INT64_MIN : from_us > INT64_MAX / 1000 ? INT64_MAX : from_us * 1000;
        *to_ret = to_us < INT64_MIN / 1000 ? INT64_MIN : to_us > INT64_MAX / 1000 ? INT64_MAX : to_us * 1000;
        return true;
}
