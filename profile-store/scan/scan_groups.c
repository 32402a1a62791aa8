/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-store/scan_groups.h"

#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/limits.h"
#include "profile-store/scan/scan_internal.h"

#define NO_GROUP UINT32_MAX /* of samples whose type was not asked for */

/* A label of the group that is looked up; borrowed from a batch or a column. */
struct candidate_label {
        struct parquet_bytes name, value;
};

struct step_sum {
        int64_t value; /* saturates */
        uint64_t samples;
};

struct group_summing {
        struct store_scan *scan;
        const struct scan_group_by *by;
        const char **keys;         /* by->labels in column spelling; owned, the texts are in the scan's arena */
        struct key_map group_keys; /* identity of a group to its number */
        struct key_map stack_keys; /* stack id to its number */
        struct key_map sum_keys;   /* (group, item) to the number of the sum */
        struct scan_group_sums sums;
        size_t group_capacity, sum_capacity, stack_capacity;
        struct step_sum *steps; /* of the rows at hand, by step; zero between them */
        uint32_t *touched;      /* steps of the rows at hand */
        struct buf identity;    /* of the group that is looked up */
        struct candidate_label *candidate;
        size_t candidate_count, candidate_capacity;
};

void scan_group_sums_deinit(struct scan_group_sums *s)
{
        free(s->groups);
        free(s->items);
        free(s->stacks.items);
        *s = (struct scan_group_sums){ 0 };
}

static void group_summing_deinit(struct group_summing *s)
{
        key_map_deinit(&s->group_keys);
        key_map_deinit(&s->stack_keys);
        key_map_deinit(&s->sum_keys);
        scan_group_sums_deinit(&s->sums);
        buf_deinit(&s->identity);
        free(s->steps);
        free(s->touched);
        free(s->candidate);
        free(s->keys);
}

static enum status group_summing_init(struct group_summing *s, struct store_scan *scan, const struct scan_group_by *by,
                                      struct error *err)
{
        *s = (struct group_summing){ .scan = scan, .by = by };
        s->group_keys.memory.use = s->stack_keys.memory.use = s->sum_keys.memory.use = MEMORY_QUERIES;
        buf_init(&s->identity, MiB(64));
        s->keys = calloc(by->label_count + 1, sizeof *s->keys);
        s->steps = calloc(by->step_count + 1, sizeof *s->steps);
        s->touched = calloc(by->step_count + 1, sizeof *s->touched);
        if (!s->keys || !s->steps || !s->touched)
                return error_no_memory(err);
        for (size_t i = 0; i < by->label_count; i++) {
                char *name = arena_strndup(&scan->arena, by->labels[i], strlen(by->labels[i]));

                if (!name)
                        return set_scan_too_big(err);
                normalize_label_key(by->labels[i], name);
                s->keys[i] = name;
        }
        return ST_OK;
}

static bool is_wanted_type(const struct group_summing *s, const char *type, size_t n)
{
        for (size_t i = 0; i < s->by->type_count; i++)
                if (strlen(s->by->types[i]) == n && memcmp(s->by->types[i], type, n) == 0)
                        return true;
        return s->by->type_count == 0;
}

static bool needs_all_labels(const struct group_summing *s)
{
        return s->by->all_labels || s->by->series;
}

static bool sums_by_stack(const struct group_summing *s)
{
        return !s->by->step_ns && !s->by->totals;
}

/* ---- groups ---- */

static int compare_group_labels(const void *x, const void *y)
{
        const struct scan_group_label *a = x, *b = y;

        return strcmp(a->name, b->name);
}

static enum status copy_group_text(struct group_summing *s, struct parquet_bytes text, const char **ret,
                                   struct error *err)
{
        *ret = text.size ? arena_strndup(&s->scan->arena, (const char *)text.data, text.size) : "";
        return *ret ? ST_OK : set_scan_too_big(err);
}

static enum status add_group(struct group_summing *s, struct parquet_bytes type, struct parquet_bytes unit,
                             int64_t period, const uint64_t series[2], struct error *err)
{
        struct scan_group g = { .period = period };
        struct scan_group_label *labels;
        enum status st;

        if (s->sums.group_count == LIMIT_SCAN_GROUPS)
                return error_set(err, ST_TOO_BIG, "the samples are in more than %u groups; group by fewer labels",
                                 LIMIT_SCAN_GROUPS);
        if (!array_reserve(&s->sums.groups, &s->group_capacity, s->sums.group_count))
                return error_no_memory(err);
        st = copy_group_text(s, type, &g.type, err);
        if (!st)
                st = copy_group_text(s, unit, &g.unit, err);
        labels = arena_alloc_array(&s->scan->arena, s->candidate_count + 1, sizeof *labels);
        if (!st && !labels)
                st = set_scan_too_big(err);
        for (size_t i = 0; !st && i < s->candidate_count; i++) {
                const struct candidate_label *from = &s->candidate[i];

                st = copy_group_text(s, from->name, &labels[i].name, err);
                if (!st)
                        st = copy_group_text(s, from->value, &labels[i].value, err);
        }
        if (st)
                return st;
        if (s->by->all_labels)
                qsort(labels, s->candidate_count, sizeof *labels, compare_group_labels);
        g.labels = labels;
        g.label_count = (uint32_t)s->candidate_count;
        if (s->by->series)
                memcpy(g.series, series, sizeof g.series);
        s->sums.groups[s->sums.group_count++] = g;
        return ST_OK;
}

static void append_identity_bytes(struct group_summing *s, const void *data, size_t n)
{
        buf_append_u64(&s->identity, n);
        if (n)
                buf_append(&s->identity, data, n);
}

/* The group of type, unit, period and the candidate labels. The hash of all labels does not depend on their order. */
static enum status find_or_add_group(struct group_summing *s, struct parquet_bytes type, struct parquet_bytes unit,
                                     int64_t period, const uint64_t series[2], uint32_t *ret, struct error *err)
{
        struct hash128 key;
        uint64_t *number;
        bool added;
        enum status st;

        buf_clear(&s->identity);
        append_identity_bytes(s, type.data, type.size);
        append_identity_bytes(s, unit.data, unit.size);
        buf_append_u64(&s->identity, (uint64_t)period);
        if (needs_all_labels(s))
                append_identity_bytes(s, series, 2 * sizeof *series);
        for (size_t i = 0; i < s->candidate_count && !s->by->all_labels; i++)
                append_identity_bytes(s, s->candidate[i].value.data, s->candidate[i].value.size);
        st = buf_status(&s->identity, err, "group");
        if (st)
                return st;
        key = hash_bytes128(s->identity.data, s->identity.size);
        st = key_map_put(&s->group_keys, &key, s->sums.group_count, &added, &number, err);
        if (st)
                return st;
        *ret = (uint32_t)*number;
        return added ? add_group(s, type, unit, period, series, err) : ST_OK;
}

static struct parquet_bytes as_text_bytes(const char *text)
{
        return (struct parquet_bytes){ (const uint8_t *)text, strlen(text) };
}

static enum status add_candidate_label(struct group_summing *s, struct parquet_bytes name, struct parquet_bytes value,
                                       struct error *err)
{
        if (!array_reserve(&s->candidate, &s->candidate_capacity, s->candidate_count))
                return error_no_memory(err);
        s->candidate[s->candidate_count++] = (struct candidate_label){ name, value };
        return ST_OK;
}

/* Collect one of all labels of a sample. The sum does not depend on their order. */
static enum status collect_label(struct group_summing *s, uint64_t series[2], struct parquet_bytes name,
                                 struct parquet_bytes value, struct error *err)
{
        struct hash128 a, b;
        uint64_t x[2], y[2];

        if (!value.size)
                return ST_OK;
        a = hash_bytes128(name.data, name.size);
        b = hash_bytes128(value.data, value.size);
        memcpy(x, a.bytes, sizeof x);
        memcpy(y, b.bytes, sizeof y);
        series[0] += (x[0] ^ y[1]) * 0x9e3779b97f4a7c15u + y[0];
        series[1] += (x[1] ^ y[0]) * 0xc2b2ae3d27d4eb4fu + y[1];
        return s->by->all_labels ? add_candidate_label(s, name, value, err) : ST_OK;
}

/* ---- sums ---- */

static enum status number_stack(struct group_summing *s, const struct hash128 *id, uint32_t *ret, struct error *err)
{
        struct stack_sums *stacks = &s->sums.stacks;
        uint64_t *number;
        bool added;
        enum status st = key_map_put(&s->stack_keys, id, stacks->count, &added, &number, err);

        if (st)
                return st;
        if (added) {
                if (stacks->count == UINT32_MAX)
                        return set_scan_too_big(err);
                if (!array_reserve(&stacks->items, &s->stack_capacity, stacks->count))
                        return error_no_memory(err);
                stacks->items[stacks->count] = (struct stack_sum){ 0 };
                memcpy(stacks->items[stacks->count++].id, id->bytes, sizeof id->bytes);
        }
        *ret = (uint32_t)*number;
        return ST_OK;
}

static enum status add_group_value(struct group_summing *s, uint32_t group, uint32_t item, int64_t value,
                                   uint64_t samples, struct error *err)
{
        struct hash128 key = make_u64_key((uint64_t)group << 32 | item);
        struct scan_group_sum *sum;
        uint64_t *number;
        bool added;
        enum status st = key_map_put(&s->sum_keys, &key, s->sums.count, &added, &number, err);

        if (st)
                return st;
        if (added) {
                if (s->sums.count == LIMIT_SCAN_GROUP_SUMS)
                        return error_set(err, ST_TOO_BIG,
                                         "the groups have more than %u sums; group by fewer labels, or narrow the "
                                         "time range",
                                         LIMIT_SCAN_GROUP_SUMS);
                if (!array_reserve(&s->sums.items, &s->sum_capacity, s->sums.count))
                        return error_no_memory(err);
                s->sums.items[s->sums.count++] = (struct scan_group_sum){ .group = group, .item = item };
        }
        sum = &s->sums.items[*number];
        if (__builtin_add_overflow(sum->value, value, &sum->value))
                sum->value = value > 0 ? INT64_MAX : INT64_MIN;
        sum->samples += samples;
        return ST_OK;
}

/* The number of the step that a time is in; false outside of all. */
static bool find_step(const struct scan_group_by *by, int64_t time_us, uint32_t *ret)
{
        int64_t since;
        uint64_t step;

        if (__builtin_mul_overflow(time_us, 1000, &since) || __builtin_sub_overflow(since, by->first_unix_ns, &since))
                return false;
        step = since < 0 ? UINT64_MAX : (uint64_t)since / (uint64_t)by->step_ns;

        *ret = (uint32_t)step;
        return step < by->step_count;
}

static enum status add_group_sample(struct group_summing *s, uint32_t group, int64_t time_us,
                                    const struct hash128 *stack, int64_t value, struct error *err)
{
        uint32_t item = 0;
        enum status st;

        if (s->by->totals)
                return add_group_value(s, group, 0, value, 1, err);
        if (s->by->step_ns)
                return find_step(s->by, time_us, &item) ? add_group_value(s, group, item, value, 1, err) : ST_OK;
        st = number_stack(s, stack, &item, err);
        return st ? st : add_group_value(s, group, item, value, 1, err);
}

/* ---- batches of the head ---- */

static enum status find_batch_group(struct group_summing *s, const struct batch *b, const struct batch_sample *sample,
                                    uint32_t *ret, struct error *err)
{
        const struct batch_type *type = &b->types[sample->type];
        const struct batch_label_set *set = &b->label_sets[sample->label_set];
        uint64_t series[2] = { 0 };
        enum status st = ST_OK;

        s->candidate_count = 0;
        for (uint32_t i = 0; !st && needs_all_labels(s) && i < set->count; i++)
                st = collect_label(s, series, as_text_bytes(set->labels[i].name), as_text_bytes(set->labels[i].value),
                                   err);
        for (size_t i = 0; !st && !s->by->all_labels && i < s->by->label_count; i++)
                st = add_candidate_label(s, as_text_bytes(s->keys[i]), as_text_bytes(batch_find_label(set, s->keys[i])),
                                         err);
        return st ? st
                  : find_or_add_group(s, as_text_bytes(type->id), as_text_bytes(type->unit), type->period, series, ret,
                                      err);
}

static enum status sum_batch_range(struct group_summing *s, const struct batch *b, const struct row_range *range,
                                   struct work_meter *meter, struct error *err)
{
        const struct batch_sample *last = NULL;
        uint32_t group = NO_GROUP;
        enum status st = ST_OK;

        for (uint32_t i = range->first; !st && i < range->first + range->count; i++) {
                const struct batch_sample *sample = &b->samples[i];

                st = work_meter_add(meter, 8, err);
                if (!st && (!last || last->type != sample->type || last->label_set != sample->label_set)) {
                        const char *id = b->types[sample->type].id;

                        if (is_wanted_type(s, id, strlen(id)))
                                st = find_batch_group(s, b, sample, &group, err);
                        else
                                group = NO_GROUP;
                        last = sample;
                }
                if (!st && group != NO_GROUP)
                        st = add_group_sample(s, group, sample->time_us, &b->stacks[sample->stack].id, sample->value,
                                              err);
        }
        return st;
}

static enum status sum_batch_groups(struct group_summing *s, const struct scan_chunk *chunk, struct error *err)
{
        enum status st = ST_OK;

        for (size_t k = 0; !st && k < chunk->rows->count; k++)
                st = sum_batch_range(s, chunk->batch, &chunk->rows->items[k], &chunk->thread->meter, err);
        return st;
}

/* ---- row groups of parts ---- */

struct label_source {
        const char *name;           /* column spelling */
        struct parquet_column text; /* count 0: the label has no column in this part */
        bool has_column;
};

struct group_columns {
        struct parquet_column values, times, stacks, units, types, periods, rest_keys, rest_values;
        struct label_source *labels; /* of the keys, or of all label columns */
        size_t label_count;
        bool needs_rest;
};

static void group_columns_deinit(struct group_columns *c)
{
        struct parquet_column *all[] = { &c->values, &c->times,   &c->stacks,    &c->units,
                                         &c->types,  &c->periods, &c->rest_keys, &c->rest_values };

        for (size_t i = 0; i < sizeof all / sizeof *all; i++)
                parquet_column_deinit(all[i]);
        for (size_t i = 0; i < c->label_count; i++)
                parquet_column_deinit(&c->labels[i].text);
        free(c->labels);
}

static enum status read_label_source(const struct scan_chunk *chunk, const char *name, struct label_source *ret,
                                     struct error *err)
{
        _cleanup_free_ char *column = label_column(name);

        if (!column)
                return error_no_memory(err);
        ret->name = name;
        ret->has_column = part_file_has_column(chunk->file, column);
        return ret->has_column
                       ? part_file_read_column(chunk->file, chunk->group, column, PARQUET_STRING, &ret->text, err)
                       : ST_OK;
}

static enum status read_group_columns(const struct group_summing *s, const struct scan_chunk *chunk,
                                      struct group_columns *c, struct error *err)
{
        const struct label_columns *all = &s->scan->tables->columns;
        size_t count = needs_all_labels(s) ? all->count : 0;
        const struct {
                const char *name;
                enum parquet_kind kind;
                struct parquet_column *to;
                bool wanted;
        } columns[] = {
                { "value", PARQUET_INT64, &c->values, true },
                { "time", PARQUET_TIMESTAMP, &c->times, s->by->step_ns != 0 },
                { "stack_id", PARQUET_BINARY, &c->stacks, sums_by_stack(s) },
                { "unit", PARQUET_STRING, &c->units, true },
                { "profile_type", PARQUET_STRING, &c->types, true },
                { "period", PARQUET_INT64, &c->periods, true },
        };
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < sizeof columns / sizeof *columns; i++)
                if (columns[i].wanted)
                        st = part_file_read_column(chunk->file, chunk->group, columns[i].name, columns[i].kind,
                                                   columns[i].to, err);
        c->labels = calloc(count + s->by->label_count + 1, sizeof *c->labels);
        if (!st && !c->labels)
                st = error_no_memory(err);
        c->needs_rest = needs_all_labels(s);
        for (size_t i = 0; !st && !s->by->all_labels && i < s->by->label_count; i++) {
                st = read_label_source(chunk, s->keys[i], &c->labels[c->label_count++], err);
                c->needs_rest |= !c->labels[i].has_column;
        }
        for (size_t i = 0; !st && i < count; i++) {
                st = work_meter_check(&chunk->thread->meter, err);
                if (!st)
                        st = read_label_source(chunk, all->names[i], &c->labels[c->label_count++], err);
        }
        c->needs_rest = c->needs_rest && !group_lacks_rest_labels(chunk->file, chunk->group);
        if (!st && c->needs_rest)
                st = part_file_read_column(chunk->file, chunk->group, "labels_rest.key_value.key", PARQUET_STRING,
                                           &c->rest_keys, err);
        if (!st && c->needs_rest)
                st = part_file_read_column(chunk->file, chunk->group, "labels_rest.key_value.value", PARQUET_STRING,
                                           &c->rest_values, err);
        if (!st && c->rest_keys.count != c->rest_values.count)
                st = error_set(err, ST_BAD_DATA, "'%s' has a labels_rest of unequal columns", chunk->file->path);
        return st;
}

static struct parquet_bytes get_slot_text(const struct parquet_column *c, uint64_t slot)
{
        if (c->codes[slot] == PARQUET_NULL_CODE)
                return (struct parquet_bytes){ (const uint8_t *)"", 0 };
        return c->dict[c->codes[slot]];
}

static bool has_same_rest(const struct group_columns *c, uint64_t a, uint64_t b)
{
        uint32_t count = c->rest_keys.offsets[a + 1] - c->rest_keys.offsets[a];

        if (c->rest_keys.offsets[b + 1] - c->rest_keys.offsets[b] != count)
                return false;
        for (uint32_t i = 0; i < count; i++) {
                uint32_t x = c->rest_keys.offsets[a] + i, y = c->rest_keys.offsets[b] + i;

                if (c->rest_keys.codes[x] != c->rest_keys.codes[y] ||
                    c->rest_values.codes[x] != c->rest_values.codes[y])
                        return false;
        }
        return true;
}

/* Where codes from `at` on differ from `code`, at most `end`. */
static uint32_t find_code_end(const uint32_t *codes, uint32_t code, uint32_t at, uint32_t end)
{
        while (at < end && codes[at] == code)
                at++;
        return at;
}

/* The first of the rows [at, end) that is in another group than the row `first`. */
static uint32_t find_other_group(const struct group_columns *c, uint32_t first, uint32_t at, uint32_t end)
{
        uint32_t i = at;

        end = find_code_end(c->types.codes, c->types.codes[first], at, end);
        end = find_code_end(c->units.codes, c->units.codes[first], at, end);
        while (i < end && c->periods.ints[i] == c->periods.ints[first])
                i++;
        end = i;
        for (size_t k = 0; k < c->label_count; k++) {
                const uint32_t *codes = c->labels[k].text.codes;

                if (c->labels[k].has_column)
                        end = find_code_end(codes, codes[first], at, end);
        }
        for (i = at; c->needs_rest && i < end && has_same_rest(c, i, first);)
                i++;
        return c->needs_rest ? i : end;
}

/* The end of the rows from `first` on that are in its group. Looks ahead twice as far each time: groups may be short.
 */
static uint32_t find_group_end(const struct group_columns *c, uint32_t first, uint32_t end)
{
        uint32_t at = first + 1, window = 16;

        while (at < end) {
                uint32_t last = end - at < window ? end : at + window;
                uint32_t found = find_other_group(c, first, at, last);

                if (found < last)
                        return found;
                at = last;
                window = window < UINT32_MAX / 2 ? window * 2 : window;
        }
        return end;
}

/* The value of a label that has no column; "" without one. */
static struct parquet_bytes find_group_rest(const struct group_columns *c, uint64_t row, const char *name)
{
        for (uint32_t slot = c->needs_rest ? c->rest_keys.offsets[row] : 0;
             c->needs_rest && slot < c->rest_keys.offsets[row + 1]; slot++) {
                struct parquet_bytes key = get_slot_text(&c->rest_keys, slot);

                if (key.size == strlen(name) && memcmp(key.data, name, key.size) == 0)
                        return get_slot_text(&c->rest_values, slot);
        }
        return (struct parquet_bytes){ (const uint8_t *)"", 0 };
}

static enum status find_row_group(struct group_summing *s, const struct group_columns *c, uint64_t row,
                                  struct work_meter *meter, uint32_t *ret, struct error *err)
{
        size_t keys = s->by->all_labels ? 0 : s->by->label_count;
        uint64_t series[2] = { 0 };
        enum status st = work_meter_add(meter, 16 * (c->label_count + 1), err);

        s->candidate_count = 0;
        for (size_t i = 0; !st && i < keys; i++) {
                const struct label_source *l = &c->labels[i];

                st = add_candidate_label(
                        s, as_text_bytes(l->name),
                        l->has_column ? get_slot_text(&l->text, row) : find_group_rest(c, row, l->name), err);
        }
        for (size_t i = keys; !st && i < c->label_count; i++)
                if (c->labels[i].has_column)
                        st = collect_label(s, series, as_text_bytes(c->labels[i].name),
                                           get_slot_text(&c->labels[i].text, row), err);
        for (uint32_t slot = c->needs_rest && needs_all_labels(s) ? c->rest_keys.offsets[row] : 0;
             !st && c->needs_rest && needs_all_labels(s) && slot < c->rest_keys.offsets[row + 1]; slot++)
                st = collect_label(s, series, get_slot_text(&c->rest_keys, slot), get_slot_text(&c->rest_values, slot),
                                   err);
        return st ? st
                  : find_or_add_group(s, get_slot_text(&c->types, row), get_slot_text(&c->units, row),
                                      c->periods.ints[row], series, ret, err);
}

/* Sums by step, or in total, are collected for all rows of a group before each is added once. */
static enum status sum_rows_by_step(struct group_summing *s, const struct group_columns *c, uint32_t group,
                                    uint32_t first, uint32_t end, struct error *err)
{
        size_t touched = 0;
        enum status st = ST_OK;

        for (uint32_t i = first; !st && i < end; i++) {
                uint32_t step = 0;
                struct step_sum *sum;

                if (s->by->step_ns && !s->by->totals && !find_step(s->by, c->times.ints[i], &step))
                        continue;
                sum = &s->steps[step];
                if (!sum->samples)
                        s->touched[touched++] = step;
                sum->samples++;
                if (__builtin_add_overflow(sum->value, c->values.ints[i], &sum->value))
                        sum->value = c->values.ints[i] > 0 ? INT64_MAX : INT64_MIN;
        }
        for (size_t i = 0; i < touched; i++) {
                struct step_sum *sum = &s->steps[s->touched[i]];

                if (!st)
                        st = add_group_value(s, group, s->touched[i], sum->value, sum->samples, err);
                *sum = (struct step_sum){ 0 };
        }
        return st;
}

static enum status sum_rows_by_stack(struct group_summing *s, const struct group_columns *c, uint32_t group,
                                     uint32_t first, uint32_t end, const char *path, struct error *err)
{
        enum status st = ST_OK;

        for (uint32_t i = first; !st && i < end; i++) {
                struct hash128 stack;

                if (!part_read_stack_id(&c->stacks, i, &stack))
                        return error_set(err, ST_BAD_DATA, "'%s' has a sample without a stack", path);
                st = add_group_sample(s, group, 0, &stack, c->values.ints[i], err);
        }
        return st;
}

static enum status sum_row_range(struct group_summing *s, const struct group_columns *c, const struct scan_chunk *chunk,
                                 const struct row_range *range, struct error *err)
{
        uint32_t end = range->first + range->count;
        enum status st = ST_OK;

        for (uint32_t first = range->first, next; !st && first < end; first = next) {
                struct parquet_bytes type = get_slot_text(&c->types, first);
                uint32_t group;

                next = find_group_end(c, first, end);
                st = work_meter_add(&chunk->thread->meter, 8 * (uint64_t)(next - first), err);
                if (st || !is_wanted_type(s, (const char *)type.data, type.size))
                        continue;
                st = find_row_group(s, c, first, &chunk->thread->meter, &group, err);
                if (!st)
                        st = sums_by_stack(s) ? sum_rows_by_stack(s, c, group, first, next, chunk->file->path, err)
                                              : sum_rows_by_step(s, c, group, first, next, err);
        }
        return st;
}

static enum status sum_row_groups(struct group_summing *s, const struct scan_chunk *chunk, struct error *err)
{
        _cleanup_(group_columns_deinit) struct group_columns c = { 0 };
        enum status st = read_group_columns(s, chunk, &c, err);

        for (size_t k = 0; !st && k < chunk->rows->count; k++)
                st = sum_row_range(s, &c, chunk, &chunk->rows->items[k], err);
        return st;
}

static enum status sum_chunk_groups(void *context, const struct scan_chunk *chunk, struct error *err)
{
        return chunk->batch ? sum_batch_groups(context, chunk, err) : sum_row_groups(context, chunk, err);
}

enum status store_scan_sum_groups(struct store_scan *scan, const struct scan_filter *filter,
                                  const struct scan_group_by *by, struct scan_group_sums *ret, struct error *err)
{
        _cleanup_(group_summing_deinit) struct group_summing s;
        enum status st = group_summing_init(&s, scan, by, err);

        if (!st)
                st = scan_visit_chunks(scan, filter, sum_chunk_groups, (void *[]){ &s }, 1, err);
        if (st)
                return st;
        *ret = s.sums;
        s.sums = (struct scan_group_sums){ 0 };
        return ST_OK;
}

/* ---- series ---- */

static int compare_series(const void *x, const void *y)
{
        const uint64_t *a = x, *b = y;

        if (a[0] != b[0])
                return a[0] < b[0] ? -1 : 1;
        return a[1] < b[1] ? -1 : a[1] > b[1];
}

enum status scan_series_set_build(const struct scan_group_sums *s, bool (*is_member)(const char *type),
                                  struct scan_series_set *ret, struct error *err)
{
        struct scan_series_set set = { .items = calloc(s->group_count + 1, sizeof *set.items) };

        if (!set.items)
                return error_no_memory(err);
        for (size_t i = 0; i < s->group_count; i++)
                if (is_member(s->groups[i].type))
                        memcpy(set.items[set.count++], s->groups[i].series, sizeof *set.items);
        qsort(set.items, set.count, sizeof *set.items, compare_series);
        *ret = set;
        return ST_OK;
}

bool scan_series_set_contains(const struct scan_series_set *set, const struct scan_group *g)
{
        return bsearch(g->series, set->items, set->count, sizeof *set->items, compare_series) != NULL;
}
