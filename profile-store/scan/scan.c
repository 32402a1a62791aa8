/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-store/scan.h"

#include <string.h>

#include "common/limits.h"
#include "common/text.h"
#include "profile-store/scan/scan_internal.h"

/* ---- row filter ---- */

/* A filter with its bounds in the tables' unit: time_us in [from_us, to_us). */
struct row_filter {
        const struct scan_filter *filter;
        int64_t from_us, to_us;
        struct work_meter *meter; /* NULL: unlimited; borrowed */
        char **columns;           /* of each matcher: the column name of its label */
        bool any_id;              /* a matcher is of trace_id or span_id */
};

/* The ids of samples that matchers take for labels. */
static const struct id_key {
        const char *name;
        size_t size;
} id_keys[] = { { "trace_id", 16 }, { "span_id", 8 } };

static const struct id_key *find_id_key(const char *column)
{
        for (size_t i = 0; i < sizeof id_keys / sizeof *id_keys; i++)
                if (strcmp(id_keys[i].name, column) == 0)
                        return &id_keys[i];
        return NULL;
}

static int64_t round_up_to_us(int64_t ns)
{
        return ns / 1000 + (ns % 1000 > 0);
}

static void row_filter_deinit(struct row_filter *r)
{
        for (size_t i = 0; r->columns && i < r->filter->matcher_count; i++)
                free(r->columns[i]);
        free(r->columns);
}

static enum status row_filter_init(struct row_filter *r, const struct scan_filter *filter, struct work_meter *meter,
                                   struct error *err)
{
        *r = (struct row_filter){ .filter = filter,
                                  .meter = meter,
                                  .from_us = round_up_to_us(filter->from_unix_ns),
                                  .to_us = round_up_to_us(filter->to_unix_ns) };
        r->columns = calloc(filter->matcher_count + 1, sizeof *r->columns);
        if (!r->columns)
                return error_no_memory(err);
        for (size_t i = 0; i < filter->matcher_count; i++) {
                r->columns[i] = strdup(filter->matchers[i].key);
                if (!r->columns[i])
                        return error_no_memory(err);
                normalize_label_key(filter->matchers[i].key, r->columns[i]);
                r->any_id |= find_id_key(r->columns[i]) != NULL;
        }
        return ST_OK;
}

/* Whether the value of a label matches; "" for a missing one. */
static bool match_label_value(const struct label_matcher *m, const char *text, size_t n)
{
        switch (m->op) {
        case LABEL_EQUAL:
                return strlen(m->value) == n && memcmp(m->value, text, n) == 0;
        case LABEL_NOT_EQUAL:
                return strlen(m->value) != n || memcmp(m->value, text, n) != 0;
        case LABEL_REGEX:
                return m->match(m->context, text, n);
        case LABEL_NOT_REGEX:
                return !m->match(m->context, text, n);
        }
        return false;
}

void row_selection_deinit(struct row_selection *c)
{
        free(c->mask);
        free(c->times_us);
        *c = (struct row_selection){ 0 };
}

/* ---- head -------------------------------------------------------------------------------------- */

static bool match_label_set(const struct row_filter *r, const struct batch_label_set *set)
{
        for (size_t i = 0; i < r->filter->matcher_count; i++) {
                const char *value = batch_find_label(set, r->columns[i]);

                if (!find_id_key(r->columns[i]) && !match_label_value(&r->filter->matchers[i], value, strlen(value)))
                        return false;
        }
        return true;
}

static bool match_id_bytes(const struct label_matcher *m, const uint8_t *id, size_t n)
{
        char hex[2 * 16 + 1];

        return match_label_value(m, hex_encode(id, n, hex), 2 * n);
}

/* The matchers of trace_id and span_id. */
static bool match_sample_ids(const struct row_filter *r, const struct batch *b, const struct batch_sample *s)
{
        for (size_t i = 0; r->any_id && i < r->filter->matcher_count; i++) {
                const struct label_matcher *m = &r->filter->matchers[i];
                const struct id_key *key = find_id_key(r->columns[i]);
                const char *label;
                bool matches;

                if (!key)
                        continue;
                label = batch_find_label(&b->label_sets[s->label_set], r->columns[i]);
                if (key == &id_keys[0] ? s->has_trace : s->has_span)
                        matches = match_id_bytes(m, key == &id_keys[0] ? s->trace_id : s->span_id, key->size);
                else
                        matches = match_label_value(m, label, strlen(label));
                if (!matches)
                        return false;
        }
        return true;
}

static enum status select_batch_samples(const struct row_filter *r, const struct batch *b, struct row_selection *ret,
                                        struct error *err)
{
        _cleanup_free_ uint8_t *sets = calloc(b->label_set_count + 1, 1);
        _cleanup_free_ uint8_t *types = calloc(b->type_count + 1, 1);
        struct row_selection c = { .row_count = b->sample_count };
        enum status st = work_meter_add(r->meter, b->sample_count, err);

        if (st)
                return st;
        if (!sets || !types || !(c.mask = calloc(b->sample_count + 1, 1)))
                return error_no_memory(err);
        if (b->sample_count && b->oldest_us < r->to_us && b->newest_us >= r->from_us) {
                for (uint32_t i = 0; !st && i < b->label_set_count; i++) {
                        sets[i] = match_label_set(r, &b->label_sets[i]);
                        st = work_meter_add(r->meter, 16 * r->filter->matcher_count, err);
                }
                for (uint32_t i = 0; i < b->type_count; i++)
                        types[i] = !r->filter->type || strcmp(r->filter->type, b->types[i].id) == 0;
                for (uint32_t i = 0; i < b->sample_count; i++) {
                        const struct batch_sample *s = &b->samples[i];

                        c.mask[i] = s->time_us >= r->from_us && s->time_us < r->to_us && sets[s->label_set] &&
                                    types[s->type] && match_sample_ids(r, b, s);
                        c.selected_count += c.mask[i];
                }
        }
        if (st) {
                row_selection_deinit(&c);
                return st;
        }
        *ret = c;
        return ST_OK;
}

/* ---- parts --------------------------------------------------------------------------------------- */

static bool part_may_match(const struct row_filter *r, const struct table_part *part)
{
        if (r->from_us >= r->to_us)
                return false;
        if (part->has_day && (part->day < day_of_us(r->from_us) || part->day > day_of_us(r->to_us - 1)))
                return false;
        return part->min_us < r->to_us && part->max_us >= r->from_us;
}

static bool group_may_match(const struct row_filter *r, const struct part_file *f, uint32_t group)
{
        uint32_t node = parquet_schema_find(parquet_file_schema(f->file), "time");
        struct parquet_stats s;

        if (!node)
                return true;
        parquet_file_stats(f->file, group, node, &s);
        return !(s.has_min && s.min_int >= r->to_us) && !(s.has_max && s.max_int < r->from_us);
}

/* Deselect the rows whose text fails fits(), called once per dictionary entry; null counts as "". */
static void filter_by_dictionary(const struct parquet_column *c, struct row_selection *rows,
                                 bool (*fits)(const void *context, const char *text, size_t n), const void *context,
                                 uint8_t *verdicts, struct work_meter *meter)
{
        bool null_fits = fits(context, "", 0);

        for (uint32_t i = 0; i < c->dict_count && !work_meter_add(meter, 4, NULL); i++)
                verdicts[i] = fits(context, (const char *)c->dict[i].data, c->dict[i].size);
        for (uint64_t i = 0; i < rows->row_count; i++)
                rows->mask[i] &= c->codes[i] == PARQUET_NULL_CODE ? null_fits : verdicts[c->codes[i]];
}

static bool match_type_text(const void *context, const char *text, size_t n)
{
        return strlen(context) == n && memcmp(context, text, n) == 0;
}

static bool match_label_text(const void *context, const char *text, size_t n)
{
        return match_label_value(context, text, n);
}

static enum status filter_by_column(const struct row_filter *r, const struct part_file *f, uint32_t group,
                                    const char *name, struct row_selection *rows,
                                    bool (*fits)(const void *context, const char *text, size_t n), const void *context,
                                    struct error *err)
{
        _cleanup_parquet_column_ struct parquet_column c = { 0 };
        _cleanup_free_ uint8_t *verdicts = NULL;
        enum status st = part_file_read_column(f, group, name, PARQUET_STRING, &c, err);

        if (st)
                return st;
        verdicts = calloc(c.dict_count + (size_t)1, 1);
        if (!verdicts)
                return error_no_memory(err);
        filter_by_dictionary(&c, rows, fits, context, verdicts, r->meter);
        return work_meter_add(r->meter, rows->row_count + c.dict_count, err);
}

static bool is_text_at_slot(const struct parquet_column *c, uint64_t slot, const char *text)
{
        uint32_t code = c->codes[slot];

        return code != PARQUET_NULL_CODE && c->dict[code].size == strlen(text) &&
               memcmp(c->dict[code].data, text, c->dict[code].size) == 0;
}

/* A label without a column: search labels_rest. */
static enum status filter_by_labels_rest(const struct row_filter *r, const struct part_file *f, uint32_t group,
                                         const char *name, const struct label_matcher *m, struct row_selection *rows,
                                         struct error *err)
{
        _cleanup_parquet_column_ struct parquet_column keys = { 0 }, values = { 0 };
        enum status st = part_file_read_column(f, group, "labels_rest.key_value.key", PARQUET_STRING, &keys, err);

        if (!st)
                st = part_file_read_column(f, group, "labels_rest.key_value.value", PARQUET_STRING, &values, err);
        if (!st && keys.count != values.count)
                st = error_set(err, ST_BAD_DATA, "'%s' has a labels_rest of unequal columns", f->path);
        for (uint64_t i = 0; !st && i < rows->row_count; i++) {
                const char *text = "";
                size_t n = 0;

                for (uint32_t slot = keys.offsets[i]; rows->mask[i] && slot < keys.offsets[i + 1]; slot++) {
                        if (!is_text_at_slot(&keys, slot, name) || values.codes[slot] == PARQUET_NULL_CODE)
                                continue;
                        text = (const char *)values.dict[values.codes[slot]].data;
                        n = values.dict[values.codes[slot]].size;
                }
                rows->mask[i] &= match_label_value(m, text, n);
                st = work_meter_add(r->meter, 4 + keys.offsets[i + 1] - keys.offsets[i], err);
        }
        return st;
}

static enum status filter_by_label(const struct row_filter *r, const struct part_file *f, uint32_t group, size_t i,
                                   struct row_selection *rows, struct error *err)
{
        _cleanup_free_ char *column = label_column(r->columns[i]);

        if (!column)
                return error_no_memory(err);
        return part_file_has_column(f, column)
                       ? filter_by_column(r, f, group, column, rows, match_label_text, &r->filter->matchers[i], err)
                       : filter_by_labels_rest(r, f, group, r->columns[i], &r->filter->matchers[i], rows, err);
}

/* Whether every row of the group lacks the id. */
static bool has_only_null_ids(const struct part_file *f, uint32_t group, const char *name)
{
        struct parquet_stats s;

        parquet_file_stats(f->file, group, parquet_schema_find(parquet_file_schema(f->file), name), &s);
        return s.has_null_count && s.null_count == s.value_count;
}

/* Rows with the id match by it, the others by the label with that name. */
static enum status filter_by_id(const struct row_filter *r, const struct part_file *f, uint32_t group, size_t i,
                                const struct id_key *key, struct row_selection *rows, struct error *err)
{
        _cleanup_parquet_column_ struct parquet_column c = { 0 };
        _cleanup_row_selection_ struct row_selection by_label = { .row_count = rows->row_count };
        _cleanup_free_ uint8_t *verdicts = NULL;
        enum status st;

        if (!part_file_has_column(f, key->name) || has_only_null_ids(f, group, key->name))
                return filter_by_label(r, f, group, i, rows, err);
        by_label.mask = malloc(rows->row_count + 1);
        if (!by_label.mask)
                return error_no_memory(err);
        memcpy(by_label.mask, rows->mask, rows->row_count);
        st = filter_by_label(r, f, group, i, &by_label, err);
        if (!st)
                st = part_file_read_column(f, group, key->name, PARQUET_BINARY, &c, err);
        if (!st && !(verdicts = calloc(c.dict_count + (size_t)1, 1)))
                st = error_no_memory(err);
        if (st)
                return st;
        for (uint32_t k = 0; k < c.dict_count && !work_meter_add(r->meter, 8, NULL); k++)
                verdicts[k] = c.dict[k].size == key->size &&
                              match_id_bytes(&r->filter->matchers[i], c.dict[k].data, key->size);
        for (uint64_t k = 0; k < rows->row_count; k++)
                rows->mask[k] =
                        c.codes[k] == PARQUET_NULL_CODE ? by_label.mask[k] : rows->mask[k] & verdicts[c.codes[k]];
        return work_meter_add(r->meter, rows->row_count, err);
}

static enum status filter_by_labels(const struct row_filter *r, const struct part_file *f, uint32_t group,
                                    struct row_selection *rows, struct error *err)
{
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < r->filter->matcher_count; i++) {
                const struct id_key *key = find_id_key(r->columns[i]);

                st = key ? filter_by_id(r, f, group, i, key, rows, err) : filter_by_label(r, f, group, i, rows, err);
        }
        return st;
}

static enum status select_group_rows(const struct row_filter *r, const struct part_file *f, uint32_t group,
                                     struct row_selection *ret, struct error *err)
{
        _cleanup_parquet_column_ struct parquet_column times = { 0 };
        _cleanup_row_selection_ struct row_selection c = { 0 };
        enum status st;

        if (!group_may_match(r, f, group)) {
                *ret = c;
                return ST_OK;
        }
        st = part_file_read_column(f, group, "time", PARQUET_TIMESTAMP, &times, err);
        if (st)
                return st;
        c.row_count = times.row_count;
        c.mask = malloc(times.row_count + 1);
        if (!c.mask)
                return error_no_memory(err);
        for (uint64_t i = 0; i < c.row_count; i++)
                c.mask[i] = times.ints[i] >= r->from_us && times.ints[i] < r->to_us;
        if (r->filter->type)
                st = filter_by_column(r, f, group, "profile_type", &c, match_type_text, r->filter->type, err);
        if (!st)
                st = filter_by_labels(r, f, group, &c, err);
        if (st)
                return st;
        for (uint64_t i = 0; i < c.row_count; i++)
                c.selected_count += c.mask[i];
        c.times_us = steal_ptr(times.ints);
        *ret = c;
        c = (struct row_selection){ 0 };
        return ST_OK;
}

/* ---- scan ---- */

enum status store_scan_begin(struct profile_store *store, struct store_scan **ret, struct error *err)
{
        struct store_scan *scan = calloc(1, sizeof *scan);
        enum status st;

        if (!scan)
                return error_no_memory(err);
        scan->symbols = store->options.symbols;
        arena_init_budget(&scan->arena, LIMIT_SCAN_MEMORY_BYTES, MEMORY_QUERIES);
        pthread_mutex_lock(&store->lock);
        st = store->options.read_only ? store_reload(store, err) : ST_OK;
        if (!st)
                st = head_copy_durable(store, &scan->head, &scan->head_count, err);
        if (!st)
                scan->tables = tables_ref(store->tables);
        pthread_mutex_unlock(&store->lock);
        if (st)
                store_scan_end(scan);
        else
                *ret = scan;
        return st;
}

enum status store_scan_begin_profiles(const struct profile *const *profiles, size_t count, struct store_scan **ret,
                                      struct error *err)
{
        struct store_scan *scan = calloc(1, sizeof *scan);
        enum status st = ST_OK;

        if (!scan)
                return error_no_memory(err);
        arena_init_budget(&scan->arena, LIMIT_SCAN_MEMORY_BYTES, MEMORY_QUERIES);
        scan->tables = tables_create_empty();
        scan->head = calloc(count + 1, sizeof(struct batch *));
        if (!scan->tables || !scan->head)
                st = error_no_memory(err);
        for (size_t i = 0; i < count && !st; i++) {
                st = batch_create(profiles[i], &scan->head[i], err);
                scan->head_count += !st;
        }
        if (st)
                store_scan_end(scan);
        else
                *ret = scan;
        return st;
}

void store_scan_end(struct store_scan *scan)
{
        if (!scan)
                return;
        batches_unref(scan->head, scan->head_count);
        tables_unref(scan->tables);
        arena_deinit(&scan->arena);
        free(scan);
}

void store_scan_set_meter(struct store_scan *scan, struct work_meter *meter)
{
        scan->meter = meter;
}

enum status set_scan_too_big(struct error *err)
{
        if (memory_budget_refused_recently())
                return error_set(
                        err, ST_BUSY,
                        "the memory for queries is in use; retry later, or narrow the query's time range or labels");
        return error_set(err, ST_TOO_BIG, "a query's result needs more than %zu bytes; narrow its time range or labels",
                         (size_t)LIMIT_SCAN_MEMORY_BYTES);
}

static enum status visit_part_groups(const struct row_filter *r, const struct table_part *part, visit_chunk *visit,
                                     void *context, struct error *err)
{
        _cleanup_part_file_ struct part_file f = { 0 };
        enum status st = work_meter_check(r->meter, err);

        if (!st)
                st = part_file_open(part, &f, err);
        for (uint32_t g = 0; !st && g < part_file_count_groups(&f); g++) {
                _cleanup_row_selection_ struct row_selection selection = { 0 };
                const struct scan_chunk chunk = { .file = &f, .group = g, .selection = &selection };

                st = work_meter_check(r->meter, err);
                if (!st)
                        st = select_group_rows(r, &f, g, &selection, err);
                if (!st && selection.selected_count)
                        st = visit(context, &chunk, err);
        }
        return st;
}

enum status scan_visit_chunks(struct store_scan *scan, const struct scan_filter *filter, visit_chunk *visit,
                              void *context, struct error *err)
{
        _cleanup_(row_filter_deinit) struct row_filter r;
        enum status st = row_filter_init(&r, filter, scan->meter, err);

        for (size_t i = 0; !st && i < scan->tables->part_count[TABLE_SAMPLES]; i++) {
                const struct table_part *part = scan->tables->parts[TABLE_SAMPLES][i];

                if (part_may_match(&r, part))
                        st = visit_part_groups(&r, part, visit, context, err);
        }
        for (size_t i = 0; !st && i < scan->head_count; i++) {
                _cleanup_row_selection_ struct row_selection selection = { 0 };
                const struct scan_chunk chunk = { .batch = scan->head[i], .selection = &selection };

                st = work_meter_add(r.meter, 64, err);
                if (!st)
                        st = select_batch_samples(&r, scan->head[i], &selection, err);
                if (!st && selection.selected_count)
                        st = visit(context, &chunk, err);
        }
        return st;
}
