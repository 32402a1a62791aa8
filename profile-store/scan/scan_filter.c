/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "common/memory/array.h"
#include "common/limits.h"
#include "common/text.h"
#include "profile-formats/profile_type.h"
#include "profile-store/scan/scan_internal.h"

/* ---- ranges ---- */

enum status row_ranges_add(struct row_ranges *r, uint32_t first, uint32_t count, struct error *err)
{
        struct row_range *last = r->count ? &r->items[r->count - 1] : NULL;

        r->rows += count;
        if (last && last->first + last->count == first) {
                last->count += count;
                return ST_OK;
        }
        if (!array_reserve(&r->items, &r->capacity, r->count))
                return error_no_memory(err);
        r->items[r->count++] = (struct row_range){ first, count };
        return ST_OK;
}

void row_ranges_clear(struct row_ranges *r)
{
        r->count = 0;
        r->rows = 0;
}

void row_ranges_deinit(struct row_ranges *r)
{
        free(r->items);
        *r = (struct row_ranges){ 0 };
}

/* Make the ranges that a filter step produced the selected rows. */
static void take_narrowed_rows(struct scan_thread *t)
{
        struct row_ranges before = t->selected;

        t->selected = t->narrowed;
        t->narrowed = before;
        row_ranges_clear(&t->narrowed);
}

/* Select the rows of both; a and b are disjoint. */
static enum status select_union(struct scan_thread *t, const struct row_ranges *a, const struct row_ranges *b,
                                struct error *err)
{
        size_t i = 0, k = 0;
        enum status st = ST_OK;

        row_ranges_clear(&t->selected);
        while (!st && (i < a->count || k < b->count)) {
                bool first = k == b->count || (i < a->count && a->items[i].first < b->items[k].first);
                const struct row_range *next = first ? &a->items[i++] : &b->items[k++];

                st = row_ranges_add(&t->selected, next->first, next->count, err);
        }
        return st;
}

/* ---- the filter ---- */

const struct id_key scan_id_keys[ID_KEYS] = { { "trace_id", 16 }, { "span_id", 8 } };

const struct id_key *scan_find_id_key(const char *name)
{
        for (size_t i = 0; i < ID_KEYS; i++)
                if (strcmp(scan_id_keys[i].name, name) == 0)
                        return &scan_id_keys[i];
        return NULL;
}

const uint8_t *scan_get_sample_id(const struct batch_sample *s, const struct id_key *key)
{
        if (key == &scan_id_keys[0])
                return s->has_trace ? s->trace_id : NULL;
        return s->has_span ? s->span_id : NULL;
}

/* The text of a type id that a type key matches; "" for a part that the id lacks. */
static struct parquet_bytes get_type_text(const struct profile_type_key *key, const char *id, size_t n)
{
        const char *end = id + n, *colon;

        if (key->is_whole)
                return (struct parquet_bytes){ (const uint8_t *)id, n };
        for (unsigned i = 0; i < (unsigned)key->part; i++) {
                colon = n ? memchr(id, ':', (size_t)(end - id)) : NULL;
                if (!colon)
                        return (struct parquet_bytes){ (const uint8_t *)"", 0 };
                id = colon + 1;
        }
        colon = key->part == TYPE_PERIOD_UNIT || id == end ? NULL : memchr(id, ':', (size_t)(end - id));
        return (struct parquet_bytes){ (const uint8_t *)id, (size_t)((colon ? colon : end) - id) };
}

static int64_t round_up_to_us(int64_t ns)
{
        return ns / 1000 + (ns % 1000 > 0);
}

void row_filter_deinit(struct row_filter *r)
{
        for (size_t i = 0; r->names && r->columns && i < r->filter->matcher_count; i++) {
                free(r->names[i]);
                free(r->columns[i]);
        }
        free(r->names);
        free(r->columns);
}

enum status row_filter_init(struct row_filter *r, const struct scan_filter *filter, struct error *err)
{
        *r = (struct row_filter){ .filter = filter,
                                  .from_us = round_up_to_us(filter->from_unix_ns),
                                  .to_us = round_up_to_us(filter->to_unix_ns) };
        r->names = calloc(filter->matcher_count + 1, sizeof *r->names);
        r->columns = calloc(filter->matcher_count + 1, sizeof *r->columns);
        if (!r->names || !r->columns)
                return error_no_memory(err);
        for (size_t i = 0; i < filter->matcher_count; i++) {
                r->names[i] = strdup(filter->matchers[i].key);
                if (!r->names[i])
                        return error_no_memory(err);
                normalize_label_key(filter->matchers[i].key, r->names[i]);
                r->any_id |= scan_find_id_key(r->names[i]) != NULL;
                r->columns[i] = label_column(r->names[i]);
                if (!r->columns[i])
                        return error_no_memory(err);
        }
        return ST_OK;
}

/* ---- head ---- */

static bool match_label_set(struct scan_thread *t, const struct row_filter *r, const struct batch_label_set *set)
{
        for (size_t i = 0; i < r->filter->matcher_count; i++) {
                const char *value = batch_find_label(set, r->names[i]);

                if (!scan_find_id_key(r->names[i]) && !profile_type_find_key(r->names[i]) &&
                    !scan_match_label(t, &r->filter->matchers[i], value, strlen(value)))
                        return false;
        }
        return true;
}

static bool match_type_id(struct scan_thread *t, const struct row_filter *r, const char *id)
{
        if (r->filter->type && strcmp(r->filter->type, id) != 0)
                return false;
        for (size_t i = 0; i < r->filter->matcher_count; i++) {
                const struct profile_type_key *key = profile_type_find_key(r->names[i]);
                struct parquet_bytes text;

                if (!key)
                        continue;
                text = get_type_text(key, id, strlen(id));
                if (!scan_match_label(t, &r->filter->matchers[i], (const char *)text.data, text.size))
                        return false;
        }
        return true;
}

static bool match_id_bytes(struct scan_thread *t, const struct label_matcher *m, const uint8_t *id, size_t n)
{
        char hex[2 * ID_BYTES_MAX + 1];

        return scan_match_label(t, m, hex_encode(id, n, hex), 2 * n);
}

/* Evaluate the matchers of trace_id and span_id. */
static bool match_sample_ids(struct scan_thread *t, const struct row_filter *r, const struct batch *b,
                             const struct batch_sample *s)
{
        for (size_t i = 0; r->any_id && i < r->filter->matcher_count; i++) {
                const struct label_matcher *m = &r->filter->matchers[i];
                const struct id_key *key = scan_find_id_key(r->names[i]);
                const uint8_t *id;
                const char *label;
                bool matches;

                if (!key)
                        continue;
                id = scan_get_sample_id(s, key);
                label = batch_find_label(&b->label_sets[s->label_set], r->names[i]);
                if (id)
                        matches = match_id_bytes(t, m, id, key->size);
                else
                        matches = scan_match_label(t, m, label, strlen(label));
                if (!matches)
                        return false;
        }
        return true;
}

static enum status select_samples(struct scan_thread *t, const struct row_filter *r, const struct batch *b,
                                  const uint8_t *sets, const uint8_t *types, struct error *err)
{
        enum status st = ST_OK;

        for (uint32_t i = 0; !st && i < b->sample_count; i++) {
                const struct batch_sample *s = &b->samples[i];

                if (s->time_us >= r->from_us && s->time_us < r->to_us && sets[s->label_set] && types[s->type] &&
                    match_sample_ids(t, r, b, s))
                        st = row_ranges_add(&t->selected, i, 1, err);
        }
        return st;
}

enum status select_batch_samples(struct scan_thread *t, const struct row_filter *r, const struct batch *b,
                                 struct error *err)
{
        _cleanup_free_ uint8_t *sets = calloc(b->label_set_count + 1, 1);
        _cleanup_free_ uint8_t *types = calloc(b->type_count + 1, 1);
        enum status st = work_meter_add(t->meter, b->sample_count + UINT64_C(64), err);

        row_ranges_clear(&t->selected);
        if (st)
                return st;
        if (!sets || !types)
                return error_no_memory(err);
        if (!b->sample_count || b->oldest_us >= r->to_us || b->newest_us < r->from_us)
                return ST_OK;
        for (uint32_t i = 0; !st && i < b->label_set_count; i++) {
                sets[i] = match_label_set(t, r, &b->label_sets[i]);
                st = work_meter_add(t->meter, 16 * r->filter->matcher_count, err);
        }
        for (uint32_t i = 0; i < b->type_count; i++)
                types[i] = match_type_id(t, r, b->types[i].id);
        return st ? st : select_samples(t, r, b, sets, types, err);
}

/* ---- statistics ---- */

bool part_may_match(const struct row_filter *r, const struct table_part *part)
{
        if (r->from_us >= r->to_us)
                return false;
        if (part->has_day && (part->day < day_of_us(r->from_us) || part->day > day_of_us(r->to_us - 1)))
                return false;
        return part->min_us < r->to_us && part->max_us >= r->from_us;
}

static bool get_column_stats(const struct part_file *f, uint32_t group, const char *column, struct parquet_stats *ret)
{
        const struct parquet_schema *schema = parquet_file_schema(f->file);
        uint32_t node = parquet_schema_find(schema, column);

        if (!node || schema->nodes[node].column == PARQUET_NO_COLUMN)
                return false;
        parquet_file_stats(f->file, group, node, ret);
        return true;
}

static int compare_bound(const void *a, size_t an, const void *b, size_t bn)
{
        int order = memcmp(a, b, an < bn ? an : bn);

        return order ? order : (an > bn) - (an < bn);
}

/* Whether the bounds of a column admit a non-empty text. */
static bool group_may_hold_text(const struct part_file *f, uint32_t group, const char *column, const char *text)
{
        size_t n = strlen(text);
        struct parquet_stats s;

        if (!get_column_stats(f, group, column, &s))
                return true;
        if (s.has_null_count && s.null_count == s.value_count)
                return false;
        return !(s.has_min && compare_bound(text, n, s.min_bytes, s.min_size) < 0) &&
               !(s.has_max && compare_bound(text, n, s.max_bytes, s.max_size) > 0);
}

bool group_may_match(const struct row_filter *r, const struct part_file *f, uint32_t group, bool *all_times_ret)
{
        struct parquet_stats s;

        *all_times_ret = false;
        if (get_column_stats(f, group, "time", &s)) {
                if ((s.has_min && s.min_int >= r->to_us) || (s.has_max && s.max_int < r->from_us))
                        return false;
                *all_times_ret = s.has_min && s.has_max && s.min_int >= r->from_us && s.max_int < r->to_us &&
                                 s.has_null_count && !s.null_count;
        }
        if (r->filter->type && *r->filter->type && !group_may_hold_text(f, group, "profile_type", r->filter->type))
                return false;
        for (size_t i = 0; i < r->filter->matcher_count; i++) {
                const struct label_matcher *m = &r->filter->matchers[i];

                if (m->op == LABEL_EQUAL && *m->value && !scan_find_id_key(r->names[i]) &&
                    !profile_type_find_key(r->names[i]) && part_file_has_column(f, r->columns[i]) &&
                    !group_may_hold_text(f, group, r->columns[i], m->value))
                        return false;
        }
        return true;
}

bool group_has_one_text(const struct part_file *f, uint32_t group, const char *column, struct parquet_bytes *ret)
{
        struct parquet_stats s;

        if (!get_column_stats(f, group, column, &s) || !s.has_null_count || s.null_count || !s.has_min || !s.has_max ||
            !s.min_exact || !s.max_exact || s.min_size != s.max_size ||
            memcmp(s.min_bytes, s.max_bytes, s.min_size) != 0)
                return false;
        *ret = (struct parquet_bytes){ s.min_bytes, s.min_size };
        return true;
}

bool group_has_only_int(const struct part_file *f, uint32_t group, const char *column, int64_t value)
{
        struct parquet_stats s;

        return get_column_stats(f, group, column, &s) && s.has_null_count && !s.null_count && s.has_min && s.has_max &&
               s.min_exact && s.max_exact && s.min_int == value && s.max_int == value;
}

bool group_lacks_rest_labels(const struct part_file *f, uint32_t group)
{
        struct parquet_stats s;

        return get_column_stats(f, group, "labels_rest.key_value.key", &s) && s.has_null_count &&
               s.null_count == s.value_count;
}

/* ---- texts ---- */

enum verdict { VERDICT_UNKNOWN, VERDICT_NO, VERDICT_YES };

struct text_filter {
        struct scan_thread *thread;
        struct parquet_cursor *cursor;
        const char *type;                        /* must be equal; NULL: use the matcher */
        const struct profile_type_key *type_key; /* the part of type ids that is matched; NULL: the whole text */
        const struct label_matcher *matcher;
        enum verdict null_verdict;
};

static bool evaluate_text(const struct text_filter *f, const char *text, size_t n)
{
        struct parquet_bytes part;

        if (f->type)
                return strlen(f->type) == n && memcmp(f->type, text, n) == 0;
        if (f->type_key) {
                part = get_type_text(f->type_key, text, n);
                return scan_match_label(f->thread, f->matcher, (const char *)part.data, part.size);
        }
        return scan_match_label(f->thread, f->matcher, text, n);
}

enum status scan_reserve_verdicts(struct scan_thread *t, size_t count, struct error *err)
{
        uint8_t *grown;
        size_t capacity = count + count / 2;

        if (count <= t->verdict_capacity)
                return ST_OK;
        grown = realloc(t->verdicts, capacity);
        if (!grown)
                return error_no_memory(err);
        memset(grown + t->verdict_capacity, VERDICT_UNKNOWN, capacity - t->verdict_capacity);
        t->verdicts = grown;
        t->verdict_capacity = capacity;
        return ST_OK;
}

void scan_clear_verdicts(struct scan_thread *t)
{
        if (t->verdicts)
                memset(t->verdicts, VERDICT_UNKNOWN, t->verdict_capacity);
}

static bool is_code_selected(struct text_filter *f, const struct parquet_bytes *dict, uint32_t code)
{
        uint8_t *verdict;

        if (code == PARQUET_NULL_CODE) {
                if (f->null_verdict == VERDICT_UNKNOWN)
                        f->null_verdict = evaluate_text(f, "", 0) ? VERDICT_YES : VERDICT_NO;
                return f->null_verdict == VERDICT_YES;
        }
        verdict = &f->thread->verdicts[code];
        if (*verdict == VERDICT_UNKNOWN)
                *verdict = evaluate_text(f, (const char *)dict[code].data, dict[code].size) ? VERDICT_YES : VERDICT_NO;
        return *verdict == VERDICT_YES;
}

static enum status filter_text_piece(void *context, uint32_t row, const struct parquet_piece *piece, struct error *err)
{
        struct text_filter *f = context;
        uint32_t count;
        const struct parquet_bytes *dict = parquet_cursor_dict(f->cursor, &count);
        enum status st = scan_reserve_verdicts(f->thread, count, err);

        if (st)
                return st;
        if (piece->is_run)
                return is_code_selected(f, dict, piece->codes[0])
                               ? row_ranges_add(&f->thread->narrowed, row, piece->count, err)
                               : ST_OK;
        for (uint32_t i = 0; !st && i < piece->count;) {
                uint32_t first = i, code = piece->codes[i];

                while (i < piece->count && piece->codes[i] == code)
                        i++;
                if (is_code_selected(f, dict, code))
                        st = row_ranges_add(&f->thread->narrowed, row + first, i - first, err);
        }
        return st;
}

/* Select the rows whose text in a column matches; each dictionary entry is evaluated once. */
static enum status filter_by_text(struct text_filter *f, const struct part_file *file, uint32_t group,
                                  const char *column, struct error *err)
{
        struct scan_thread *t = f->thread;
        const struct scan_column texts = { file, group, column, PARQUET_STRING };
        enum status st = scan_open_column(t, CURSOR_FILTER, &texts, &f->cursor, err);

        if (st)
                return st;
        scan_clear_verdicts(t);
        st = scan_visit_pieces(t, f->cursor, &t->selected, filter_text_piece, f, err);
        if (!st)
                take_narrowed_rows(t);
        return st;
}

/* ---- labels without a column ---- */

static bool is_text_at_slot(const struct parquet_column *c, uint64_t slot, const char *text)
{
        uint32_t code = c->codes[slot];

        return code != PARQUET_NULL_CODE && c->dict[code].size == strlen(text) &&
               memcmp(c->dict[code].data, text, c->dict[code].size) == 0;
}

struct parquet_bytes scan_find_rest_value(const struct parquet_column *keys, const struct parquet_column *values,
                                          uint32_t row, const char *name)
{
        struct parquet_bytes found = { (const uint8_t *)"", 0 };

        for (uint32_t slot = keys->offsets[row]; slot < keys->offsets[row + 1]; slot++) {
                if (is_text_at_slot(keys, slot, name) && values->codes[slot] != PARQUET_NULL_CODE)
                        found = values->dict[values->codes[slot]];
        }
        return found;
}

static enum status filter_by_rest_rows(struct scan_thread *t, const struct parquet_column *keys,
                                       const struct parquet_column *values, const char *name,
                                       const struct label_matcher *m, struct error *err)
{
        struct row_walk walk = { .rows = &t->selected };
        uint32_t row;
        enum status st = ST_OK;

        while (!st && row_walk_next(&walk, &row)) {
                struct parquet_bytes value = scan_find_rest_value(keys, values, row, name);

                st = work_meter_add(t->meter, 4 + keys->offsets[row + 1] - keys->offsets[row], err);
                if (!st && scan_match_label(t, m, (const char *)value.data, value.size))
                        st = row_ranges_add(&t->narrowed, row, 1, err);
        }
        if (!st)
                take_narrowed_rows(t);
        return st;
}

static enum status filter_by_rest_label(struct scan_thread *t, const struct part_file *f, uint32_t group,
                                        const char *name, const struct label_matcher *m, struct error *err)
{
        _cleanup_column_source_ struct column_source from = { .file = f, .group = group, .memory.use = t->memory.use };
        _cleanup_parquet_column_ struct parquet_column keys = { 0 }, values = { 0 };
        enum status st;

        if (group_lacks_rest_labels(f, group)) {
                if (!scan_match_label(t, m, "", 0))
                        row_ranges_clear(&t->selected);
                return ST_OK;
        }
        st = scan_read_column(&from, "labels_rest.key_value.key", PARQUET_STRING, &keys, err);
        if (!st)
                st = scan_read_column(&from, "labels_rest.key_value.value", PARQUET_STRING, &values, err);
        if (!st && keys.count != values.count)
                st = error_set(err, ST_BAD_DATA, "'%s' has a labels_rest of unequal columns", f->path);
        return st ? st : filter_by_rest_rows(t, &keys, &values, name, m, err);
}

static enum status filter_by_label(struct scan_thread *t, const struct row_filter *r, const struct part_file *f,
                                   uint32_t group, size_t i, struct error *err)
{
        struct text_filter text = { .thread = t,
                                    .matcher = &r->filter->matchers[i],
                                    .type_key = profile_type_find_key(r->names[i]) };

        if (text.type_key)
                return filter_by_text(&text, f, group, "profile_type", err);
        return part_file_has_column(f, r->columns[i])
                       ? filter_by_text(&text, f, group, r->columns[i], err)
                       : filter_by_rest_label(t, f, group, r->names[i], &r->filter->matchers[i], err);
}

struct id_filter {
        struct scan_thread *thread;
        struct parquet_cursor *cursor;
        const struct label_matcher *matcher;
        size_t size;      /* of an id */
        bool skips_nulls; /* rows without an id cannot match by label either */
        struct row_ranges matched, without_id;
};

static bool is_id_selected(const struct id_filter *f, uint32_t code)
{
        uint32_t count;
        const struct parquet_bytes *dict = parquet_cursor_dict(f->cursor, &count);
        uint8_t *verdict = &f->thread->verdicts[code];

        if (*verdict == VERDICT_UNKNOWN)
                *verdict = dict[code].size == f->size && match_id_bytes(f->thread, f->matcher, dict[code].data, f->size)
                                   ? VERDICT_YES
                                   : VERDICT_NO;
        return *verdict == VERDICT_YES;
}

static enum status filter_id_piece(void *context, uint32_t row, const struct parquet_piece *piece, struct error *err)
{
        struct id_filter *f = context;
        uint32_t count, codes = piece->is_run ? 1 : piece->count;
        enum status st;

        parquet_cursor_dict(f->cursor, &count);
        st = scan_reserve_verdicts(f->thread, count, err);
        for (uint32_t i = 0; !st && i < codes;) {
                uint32_t first = i, code = piece->codes[i], rows;

                while (i < codes && piece->codes[i] == code)
                        i++;
                rows = piece->is_run ? piece->count : i - first;
                if (code != PARQUET_NULL_CODE) {
                        if (is_id_selected(f, code))
                                st = row_ranges_add(&f->matched, row + first, rows, err);
                } else if (!f->skips_nulls) {
                        st = row_ranges_add(&f->without_id, row + first, rows, err);
                }
        }
        return st;
}

/* Whether no row of the row group has the label of a matcher that does not match the empty string. */
static bool group_lacks_matches(struct scan_thread *t, const struct row_filter *r, const struct part_file *f,
                                uint32_t group, size_t i)
{
        return !part_file_has_column(f, r->columns[i]) && group_lacks_rest_labels(f, group) &&
               !scan_match_label(t, &r->filter->matchers[i], "", 0);
}

bool group_has_ids(const struct part_file *f, uint32_t group, const struct id_key *key)
{
        struct parquet_stats s;

        return part_file_has_column(f, key->name) &&
               !(get_column_stats(f, group, key->name, &s) && s.has_null_count && s.null_count == s.value_count);
}

/* Rows with the id match by id, the others by the label of that name. */
static enum status filter_by_id(struct scan_thread *t, const struct row_filter *r, const struct part_file *f,
                                uint32_t group, size_t i, const struct id_key *key, struct error *err)
{
        struct id_filter id = { .thread = t, .matcher = &r->filter->matchers[i], .size = key->size };
        const struct scan_column ids = { f, group, key->name, PARQUET_BINARY };
        struct row_ranges all;
        enum status st;

        if (!group_has_ids(f, group, key))
                return filter_by_label(t, r, f, group, i, err);
        st = scan_open_column(t, CURSOR_FILTER, &ids, &id.cursor, err);
        scan_clear_verdicts(t);
        id.skips_nulls = group_lacks_matches(t, r, f, group, i);
        if (!st)
                st = scan_visit_pieces(t, id.cursor, &t->selected, filter_id_piece, &id, err);
        all = t->selected;
        t->selected = id.without_id;
        if (!st && t->selected.rows)
                st = filter_by_label(t, r, f, group, i, err);
        id.without_id = t->selected;
        t->selected = all;
        if (!st)
                st = select_union(t, &id.matched, &id.without_id, err);
        row_ranges_deinit(&id.matched);
        row_ranges_deinit(&id.without_id);
        return st;
}

static enum status filter_by_labels(struct scan_thread *t, const struct row_filter *r, const struct part_file *f,
                                    uint32_t group, struct error *err)
{
        enum status st = ST_OK;

        for (size_t i = 0; !st && t->selected.rows && i < r->filter->matcher_count; i++) {
                const struct id_key *key = scan_find_id_key(r->names[i]);

                st = key ? filter_by_id(t, r, f, group, i, key, err) : filter_by_label(t, r, f, group, i, err);
        }
        return st;
}

/* ---- time ---- */

struct time_filter {
        const struct row_filter *filter;
        struct row_ranges *kept;
};

static enum status filter_time_piece(void *context, uint32_t row, const struct parquet_piece *piece, struct error *err)
{
        const struct time_filter *f = context;
        int64_t from = f->filter->from_us;
        uint64_t length = (uint64_t)f->filter->to_us - (uint64_t)from;
        enum status st = ST_OK;

        if (piece->is_run)
                return (uint64_t)piece->ints[0] - (uint64_t)from < length
                               ? row_ranges_add(f->kept, row, piece->count, err)
                               : ST_OK;
        for (uint32_t i = 0; !st && i < piece->count;) {
                uint32_t first;

                while (i < piece->count && (uint64_t)piece->ints[i] - (uint64_t)from >= length)
                        i++;
                first = i;
                while (i < piece->count && (uint64_t)piece->ints[i] - (uint64_t)from < length)
                        i++;
                if (i > first)
                        st = row_ranges_add(f->kept, row + first, i - first, err);
        }
        return st;
}

static enum status filter_by_time(struct scan_thread *t, const struct row_filter *r, const struct part_file *f,
                                  uint32_t group, struct error *err)
{
        struct time_filter time = { .filter = r, .kept = &t->narrowed };
        const struct scan_column times = { f, group, "time", PARQUET_TIMESTAMP };
        struct parquet_cursor *c;
        enum status st = scan_open_column(t, CURSOR_TIME, &times, &c, err);

        if (!st)
                st = scan_visit_pieces(t, c, &t->selected, filter_time_piece, &time, err);
        if (!st)
                take_narrowed_rows(t);
        return st;
}

/* Time is the most expensive column: it is read last, and only if a bound of the range falls into the row group. */
enum status select_group_rows(struct scan_thread *t, const struct row_filter *r, const struct part_file *f,
                              uint32_t group, struct error *err)
{
        struct text_filter type = { .thread = t, .type = r->filter->type };
        uint64_t rows = parquet_file_group_rows(f->file, group);
        bool all_times;
        enum status st;

        row_ranges_clear(&t->selected);
        row_ranges_clear(&t->narrowed);
        if (!rows || !group_may_match(r, f, group, &all_times))
                return ST_OK;
        if (rows > LIMIT_PARQUET_CHUNK_VALUES)
                return error_set(err, ST_TOO_BIG, "'%s' has a row group of %ju rows, more than %d", f->path,
                                 (uintmax_t)rows, LIMIT_PARQUET_CHUNK_VALUES);
        st = row_ranges_add(&t->selected, 0, (uint32_t)rows, err);
        if (!st && type.type)
                st = filter_by_text(&type, f, group, "profile_type", err);
        if (!st)
                st = filter_by_labels(t, r, f, group, err);
        if (!st && !all_times && t->selected.rows)
                st = filter_by_time(t, r, f, group, err);
        return st;
}
