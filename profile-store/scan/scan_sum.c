/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "common/array.h"
#include "profile-store/scan/scan_internal.h"

struct stack_summing {
        struct work_meter *meter;
        struct key_map stacks; /* id to number in sums */
        struct stack_sums sums;
        size_t capacity;
        bool any, several_types, any_unit, several_units;
};

static void summing_deinit(struct stack_summing *s)
{
        key_map_deinit(&s->stacks);
        free(s->sums.items);
}

/* Summed values must have one unit, unless only sample counts are used. */
static enum status note_sample_unit(struct stack_summing *s, const char *unit, size_t n, struct error *err)
{
        if (!s->any)
                snprintf(s->sums.unit, sizeof s->sums.unit, "%.*s", (int)n, unit);
        else if (strlen(s->sums.unit) == (n < sizeof s->sums.unit ? n : sizeof s->sums.unit - 1) &&
                 memcmp(s->sums.unit, unit, strlen(s->sums.unit)) == 0)
                return ST_OK;
        else if (s->any_unit)
                s->several_units = true;
        else
                return error_set(err, ST_USAGE, "the selection has values in %s and in %.*s; choose a profile type",
                                 s->sums.unit, (int)(n < 32 ? n : 32), unit);
        return ST_OK;
}

static void note_sample_type(struct stack_summing *s, const char *type, size_t n)
{
        if (!s->any) {
                snprintf(s->sums.type, sizeof s->sums.type, "%.*s", (int)n, type);
        } else if (!s->several_types && (strlen(s->sums.type) != n || memcmp(s->sums.type, type, n) != 0)) {
                s->several_types = true;
                s->sums.type[0] = 0;
        }
}

static int64_t add_saturating(int64_t a, int64_t b)
{
        int64_t sum;

        if (__builtin_add_overflow(a, b, &sum))
                return b > 0 ? INT64_MAX : INT64_MIN;
        return sum;
}

static enum status add_stack_value(struct stack_summing *s, const struct hash128 *stack, int64_t value,
                                   struct error *err)
{
        uint64_t *number;
        bool added;
        enum status st = work_meter_add(s->meter, 8, err);

        if (!st)
                st = key_map_put(&s->stacks, stack, s->sums.count, &added, &number, err);
        if (st)
                return st;
        if (added) {
                if (!array_reserve(&s->sums.items, &s->capacity, s->sums.count))
                        return error_no_memory(err);
                s->sums.items[s->sums.count] = (struct stack_sum){ 0 };
                memcpy(s->sums.items[s->sums.count++].id, stack->bytes, sizeof stack->bytes);
        }
        s->sums.items[*number].value = add_saturating(s->sums.items[*number].value, value);
        s->sums.items[*number].samples++;
        return ST_OK;
}

static enum status sum_batch(struct stack_summing *s, const struct scan_chunk *chunk, struct error *err)
{
        const struct batch *b = chunk->batch;
        uint32_t last_type = UINT32_MAX;
        enum status st = ST_OK;

        for (uint32_t i = 0; !st && i < b->sample_count; i++) {
                const struct batch_sample *sample = &b->samples[i];

                if (!chunk->selection->mask[i])
                        continue;
                if (sample->type != last_type) {
                        const struct batch_type *type = &b->types[sample->type];

                        st = note_sample_unit(s, type->unit, strlen(type->unit), err);
                        if (st)
                                return st;
                        note_sample_type(s, type->id, strlen(type->id));
                        s->any = true;
                        last_type = sample->type;
                }
                st = add_stack_value(s, &b->stacks[sample->stack].id, sample->value, err);
        }
        return st;
}

static struct parquet_bytes get_text_slot(const struct parquet_column *c, uint64_t i)
{
        if (c->codes[i] == PARQUET_NULL_CODE)
                return (struct parquet_bytes){ (const uint8_t *)"", 0 };
        return c->dict[c->codes[i]];
}

static enum status sum_group(struct stack_summing *s, const struct scan_chunk *chunk, struct error *err)
{
        _cleanup_parquet_column_ struct parquet_column values = { 0 }, stacks = { 0 }, units = { 0 }, types = { 0 };
        uint64_t last = UINT64_MAX;
        enum status st = part_file_read_column(chunk->file, chunk->group, "value", PARQUET_INT64, &values, err);

        if (!st)
                st = part_file_read_column(chunk->file, chunk->group, "stack_id", PARQUET_BINARY, &stacks, err);
        if (!st)
                st = part_file_read_column(chunk->file, chunk->group, "unit", PARQUET_STRING, &units, err);
        if (!st)
                st = part_file_read_column(chunk->file, chunk->group, "profile_type", PARQUET_STRING, &types, err);
        for (uint64_t i = 0; !st && i < chunk->selection->row_count; i++) {
                struct hash128 stack;

                if (!chunk->selection->mask[i])
                        continue;
                if (last == UINT64_MAX || units.codes[i] != units.codes[last] || types.codes[i] != types.codes[last]) {
                        struct parquet_bytes unit = get_text_slot(&units, i), type = get_text_slot(&types, i);

                        st = note_sample_unit(s, (const char *)unit.data, unit.size, err);
                        if (st)
                                return st;
                        note_sample_type(s, (const char *)type.data, type.size);
                        s->any = true;
                        last = i;
                }
                if (!part_read_stack_id(&stacks, i, &stack))
                        return error_set(err, ST_BAD_DATA, "'%s' has a sample without a stack", chunk->file->path);
                st = add_stack_value(s, &stack, values.ints[i], err);
        }
        return st;
}

static enum status sum_chunk(void *context, const struct scan_chunk *chunk, struct error *err)
{
        return chunk->batch ? sum_batch(context, chunk, err) : sum_group(context, chunk, err);
}

static enum status sum_selection(struct store_scan *scan, const struct scan_filter *filter, bool any_unit,
                                 struct stack_sums *ret, struct error *err)
{
        _cleanup_(summing_deinit) struct stack_summing s = { .any_unit = any_unit, .meter = scan->meter };
        enum status st = scan_visit_chunks(scan, filter, sum_chunk, &s, err);

        if (st)
                return st;
        if (s.several_units)
                s.sums.unit[0] = 0;
        *ret = s.sums;
        s.sums.items = NULL;
        return ST_OK;
}

enum status store_scan_sum(struct store_scan *scan, const struct scan_filter *filter, struct stack_sums *ret,
                           struct error *err)
{
        return sum_selection(scan, filter, false, ret, err);
}

enum status scan_count_samples(struct store_scan *scan, const struct scan_filter *filter, struct stack_sums *ret,
                               struct error *err)
{
        return sum_selection(scan, filter, true, ret, err);
}

/* ---- each sample -------------------------------------------------------------------------------- */

struct sample_visit {
        struct work_meter *meter;
        store_scan_sample *each;
        void *context;
};

static enum status visit_batch_samples(const struct sample_visit *c, const struct scan_chunk *chunk, struct error *err)
{
        const struct batch *b = chunk->batch;
        enum status st = ST_OK;

        for (uint32_t i = 0; !st && i < b->sample_count; i++) {
                const struct batch_sample *s = &b->samples[i];

                if (chunk->selection->mask[i] && !(st = work_meter_add(c->meter, 4, err)))
                        st = c->each(c->context, s->time_us * 1000, s->value, b->stacks[s->stack].id.bytes);
        }
        return st;
}

static enum status visit_chunk_samples(void *context, const struct scan_chunk *chunk, struct error *err)
{
        const struct sample_visit *c = context;
        _cleanup_parquet_column_ struct parquet_column values = { 0 }, stacks = { 0 };
        enum status st;

        if (chunk->batch)
                return visit_batch_samples(c, chunk, err);
        st = part_file_read_column(chunk->file, chunk->group, "value", PARQUET_INT64, &values, err);
        if (!st)
                st = part_file_read_column(chunk->file, chunk->group, "stack_id", PARQUET_BINARY, &stacks, err);
        for (uint64_t i = 0; !st && i < chunk->selection->row_count; i++) {
                struct hash128 stack;

                if (!chunk->selection->mask[i])
                        continue;
                if (!part_read_stack_id(&stacks, i, &stack))
                        return error_set(err, ST_BAD_DATA, "'%s' has a sample without a stack", chunk->file->path);
                st = work_meter_add(c->meter, 4, err);
                if (!st)
                        st = c->each(c->context, chunk->selection->times_us[i] * 1000, values.ints[i], stack.bytes);
        }
        return st;
}

enum status store_scan_visit(struct store_scan *scan, const struct scan_filter *filter, store_scan_sample *each,
                             void *context, struct error *err)
{
        struct sample_visit c = { .meter = scan->meter, .each = each, .context = context };

        return scan_visit_chunks(scan, filter, visit_chunk_samples, &c, err);
}
