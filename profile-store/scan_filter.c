/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-store/scan_filter.h"

#include <string.h>

static int64_t ceil_us(int64_t ns)
{
        return ns / 1000 + (ns % 1000 > 0);
}

void row_filter_deinit(struct row_filter *r)
{
        for (size_t i = 0; r->columns && i < r->filter->matcher_count; i++)
                free(r->columns[i]);
        free(r->columns);
}

enum status row_filter_init(struct row_filter *r, const struct scan_filter *filter, struct work_meter *meter,
                            struct error *err)
{
        *r = (struct row_filter){ .filter = filter,
                                  .meter = meter,
                                  .from_us = ceil_us(filter->from_unix_ns),
                                  .to_us = ceil_us(filter->to_unix_ns) };
        r->columns = calloc(filter->matcher_count + 1, sizeof *r->columns);
        if (!r->columns)
                return error_no_memory(err);
        for (size_t i = 0; i < filter->matcher_count; i++) {
                r->columns[i] = strdup(filter->matchers[i].key);
                if (!r->columns[i])
                        return error_no_memory(err);
                label_column_name(filter->matchers[i].key, r->columns[i]);
        }
        return ST_OK;
}

/* Whether a label's text, "" for a missing one, fits. */
static bool matcher_fits(const struct label_matcher *m, const char *text, size_t n)
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

void chosen_deinit(struct chosen *c)
{
        free(c->mask);
        free(c->times_us);
        *c = (struct chosen){ 0 };
}

/* ---- head -------------------------------------------------------------------------------------- */

static bool labels_fit(const struct row_filter *r, const struct batch_label_set *set)
{
        for (size_t i = 0; i < r->filter->matcher_count; i++) {
                const char *value = batch_label_value(set, r->columns[i]);

                if (!matcher_fits(&r->filter->matchers[i], value, strlen(value)))
                        return false;
        }
        return true;
}

enum status choose_in_batch(const struct row_filter *r, const struct batch *b, struct chosen *ret,
                            struct error *err)
{
        _cleanup_free_ uint8_t *sets = calloc(b->label_set_count + 1, 1);
        _cleanup_free_ uint8_t *types = calloc(b->type_count + 1, 1);
        struct chosen c = { .row_count = b->sample_count };
        enum status st = work_meter_add(r->meter, b->sample_count, err);

        if (st)
                return st;
        if (!sets || !types || !(c.mask = calloc(b->sample_count + 1, 1)))
                return error_no_memory(err);
        if (b->sample_count && b->oldest_us < r->to_us && b->newest_us >= r->from_us) {
                for (uint32_t i = 0; !st && i < b->label_set_count; i++) {
                        sets[i] = labels_fit(r, &b->label_sets[i]);
                        st = work_meter_add(r->meter, 16 * r->filter->matcher_count, err);
                }
                for (uint32_t i = 0; i < b->type_count; i++)
                        types[i] = !r->filter->type || strcmp(r->filter->type, b->types[i].id) == 0;
                for (uint32_t i = 0; i < b->sample_count; i++) {
                        const struct batch_sample *s = &b->samples[i];

                        c.mask[i] = s->time_us >= r->from_us && s->time_us < r->to_us && sets[s->label_set] &&
                                    types[s->type];
                        c.chosen_count += c.mask[i];
                }
        }
        if (st) {
                chosen_deinit(&c);
                return st;
        }
        *ret = c;
        return ST_OK;
}

/* ---- parts --------------------------------------------------------------------------------------- */

bool part_may_fit(const struct row_filter *r, const struct table_part *part)
{
        if (r->from_us >= r->to_us)
                return false;
        if (part->has_day && (part->day < day_of_us(r->from_us) || part->day > day_of_us(r->to_us - 1)))
                return false;
        return part->min_us < r->to_us && part->max_us >= r->from_us;
}

static bool group_may_fit(const struct row_filter *r, const struct part_file *f, uint32_t group)
{
        uint32_t node = parquet_schema_find(parquet_file_schema(f->file), "time");
        struct parquet_stats s;

        if (!node)
                return true;
        parquet_file_stats(f->file, group, node, &s);
        return !(s.has_min && s.min_int >= r->to_us) && !(s.has_max && s.max_int < r->from_us);
}

/* Drops the rows whose entry of a text column fails fits(); a null is the empty text. */
static void keep_fitting(const struct parquet_column *c, struct chosen *rows,
                         bool (*fits)(const void *context, const char *text, size_t n), const void *context,
                         uint8_t *verdicts, struct work_meter *meter)
{
        bool null_fits = fits(context, "", 0);

        for (uint32_t i = 0; i < c->dict_count && !work_meter_add(meter, 4, NULL); i++)
                verdicts[i] = fits(context, (const char *)c->dict[i].data, c->dict[i].size);
        for (uint64_t i = 0; i < rows->row_count; i++)
                rows->mask[i] &= c->codes[i] == PARQUET_NULL_CODE ? null_fits : verdicts[c->codes[i]];
}

static bool type_fits(const void *context, const char *text, size_t n)
{
        return strlen(context) == n && memcmp(context, text, n) == 0;
}

static bool label_fits(const void *context, const char *text, size_t n)
{
        return matcher_fits(context, text, n);
}

static enum status keep_by_column(const struct row_filter *r, const struct part_file *f, uint32_t group, const char *name, struct chosen *rows,
                                  bool (*fits)(const void *context, const char *text, size_t n),
                                  const void *context, struct error *err)
{
        _cleanup_parquet_column_ struct parquet_column c = { 0 };
        _cleanup_free_ uint8_t *verdicts = NULL;
        enum status st = part_file_column(f, group, name, PARQUET_STRING, &c, err);

        if (st)
                return st;
        verdicts = calloc(c.dict_count + (size_t)1, 1);
        if (!verdicts)
                return error_no_memory(err);
        keep_fitting(&c, rows, fits, context, verdicts, r->meter);
        return work_meter_add(r->meter, rows->row_count + c.dict_count, err);
}

static bool bytes_equal(const struct parquet_column *c, uint64_t slot, const char *text)
{
        uint32_t code = c->codes[slot];

        return code != PARQUET_NULL_CODE && c->dict[code].size == strlen(text) &&
               memcmp(c->dict[code].data, text, c->dict[code].size) == 0;
}

/* A label without a column of its own: look for it in the map. */
static enum status keep_by_rest(const struct row_filter *r, const struct part_file *f, uint32_t group, const char *name,
                                const struct label_matcher *m, struct chosen *rows, struct error *err)
{
        _cleanup_parquet_column_ struct parquet_column keys = { 0 }, values = { 0 };
        enum status st = part_file_column(f, group, "labels_rest.key_value.key", PARQUET_STRING, &keys, err);

        if (!st)
                st = part_file_column(f, group, "labels_rest.key_value.value", PARQUET_STRING, &values, err);
        if (!st && keys.count != values.count)
                st = error_set(err, ST_BAD_DATA, "'%s' has a labels_rest of unequal columns", f->path);
        for (uint64_t i = 0; !st && i < rows->row_count; i++) {
                const char *text = "";
                size_t n = 0;

                for (uint32_t slot = keys.offsets[i]; rows->mask[i] && slot < keys.offsets[i + 1]; slot++) {
                        if (!bytes_equal(&keys, slot, name) || values.codes[slot] == PARQUET_NULL_CODE)
                                continue;
                        text = (const char *)values.dict[values.codes[slot]].data;
                        n = values.dict[values.codes[slot]].size;
                }
                rows->mask[i] &= matcher_fits(m, text, n);
                st = work_meter_add(r->meter, 4 + keys.offsets[i + 1] - keys.offsets[i], err);
        }
        return st;
}

static enum status keep_by_labels(const struct row_filter *r, const struct part_file *f, uint32_t group,
                                  struct chosen *rows, struct error *err)
{
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < r->filter->matcher_count; i++) {
                _cleanup_free_ char *column = label_column(r->columns[i]);

                if (!column)
                        return error_no_memory(err);
                if (part_file_has(f, column))
                        st = keep_by_column(r, f, group, column, rows, label_fits, &r->filter->matchers[i], err);
                else
                        st = keep_by_rest(r, f, group, r->columns[i], &r->filter->matchers[i], rows, err);
        }
        return st;
}

enum status choose_in_group(const struct row_filter *r, const struct part_file *f, uint32_t group,
                            struct chosen *ret, struct error *err)
{
        _cleanup_parquet_column_ struct parquet_column times = { 0 };
        _cleanup_chosen_ struct chosen c = { 0 };
        enum status st;

        if (!group_may_fit(r, f, group)) {
                *ret = c;
                return ST_OK;
        }
        st = part_file_column(f, group, "time", PARQUET_TIMESTAMP, &times, err);
        if (st)
                return st;
        c.row_count = times.row_count;
        c.mask = malloc(times.row_count + 1);
        if (!c.mask)
                return error_no_memory(err);
        for (uint64_t i = 0; i < c.row_count; i++)
                c.mask[i] = times.ints[i] >= r->from_us && times.ints[i] < r->to_us;
        if (r->filter->type)
                st = keep_by_column(r, f, group, "profile_type", &c, type_fits, r->filter->type, err);
        if (!st)
                st = keep_by_labels(r, f, group, &c, err);
        if (st)
                return st;
        for (uint64_t i = 0; i < c.row_count; i++)
                c.chosen_count += c.mask[i];
        c.times_us = steal_ptr(times.ints);
        *ret = c;
        c = (struct chosen){ 0 };
        return ST_OK;
}
