/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "profile-store/scan/scan_internal.h"
#include "profile-store/scan/stack_table.h"

/* ---- units, types and periods ---- */

/* Units, types and periods of the values seen by one thread. */
struct value_kinds {
        char unit[32], type[256];
        bool any_unit, any_type, several_units, several_types;
        int64_t period; /* 0 unknown */
        bool any_period, several_periods;
};

static bool is_noted(const char *noted, size_t capacity, const char *text, size_t n)
{
        size_t size = strlen(noted);

        return size == (n < capacity ? n : capacity - 1) && memcmp(noted, text, size) == 0;
}

static void note_unit(struct value_kinds *k, const char *text, size_t n)
{
        if (!k->any_unit)
                snprintf(k->unit, sizeof k->unit, "%.*s", (int)(n < sizeof k->unit ? n : sizeof k->unit), text);
        else if (!is_noted(k->unit, sizeof k->unit, text, n))
                k->several_units = true;
        k->any_unit = true;
}

static void note_type(struct value_kinds *k, const char *text, size_t n)
{
        if (!k->any_type)
                snprintf(k->type, sizeof k->type, "%.*s", (int)(n < sizeof k->type ? n : sizeof k->type), text);
        else if (!is_noted(k->type, sizeof k->type, text, n))
                k->several_types = true;
        k->any_type = true;
}

static void note_period(struct value_kinds *k, int64_t period)
{
        if (k->any_period && k->period != period)
                k->several_periods = true;
        k->period = period;
        k->any_period = true;
}

/* ---- one thread ---- */

/* Sum of a row group's rows with one stack. */
struct code_sum {
        int64_t value;
        uint64_t samples;
};

#define UNCOUNTED_CODES 4096 /* smaller arrays are not reserved */

struct stack_summing {
        struct stack_table table;
        struct value_kinds kinds;
        struct code_sum *codes; /* by code of the current row group; zero between row groups */
        size_t code_capacity;
        struct memory_reservation memory; /* of codes */
};

static void summing_init(struct stack_summing *s)
{
        *s = (struct stack_summing){ .memory.use = MEMORY_QUERIES };
        stack_table_init(&s->table);
}

static void summing_deinit(struct stack_summing *s)
{
        stack_table_deinit(&s->table);
        free(s->codes);
        memory_release(&s->memory);
}

/* Summed values must have the same unit. */
static enum status check_one_unit(const struct stack_summing *s, const char *unit, size_t n, struct error *err)
{
        if (!s->kinds.several_units)
                return ST_OK;
        return error_set(err, ST_USAGE, "the selection has values in %s and in %.*s; choose a profile type",
                         s->kinds.unit, (int)(n < 32 ? n : 32), unit);
}

static enum status add_unit(void *context, const char *text, size_t n, struct error *err)
{
        struct stack_summing *s = context;

        note_unit(&s->kinds, text, n);
        return check_one_unit(s, text, n, err);
}

static enum status add_type(void *context, const char *text, size_t n, struct error *err)
{
        struct stack_summing *s = context;

        (void)err;
        note_type(&s->kinds, text, n);
        return ST_OK;
}

/* ---- batches ---- */

static enum status sum_batch(struct stack_summing *s, const struct scan_chunk *chunk, struct error *err)
{
        const struct batch *b = chunk->batch;
        uint32_t last_type = UINT32_MAX;
        enum status st = ST_OK;

        for (size_t k = 0; !st && k < chunk->rows->count; k++) {
                const struct row_range *range = &chunk->rows->items[k];

                for (uint32_t i = range->first; !st && i < range->first + range->count; i++) {
                        const struct batch_sample *sample = &b->samples[i];
                        const struct batch_type *type = &b->types[sample->type];

                        if (sample->type != last_type) {
                                st = add_unit(s, type->unit, strlen(type->unit), err);
                                note_type(&s->kinds, type->id, strlen(type->id));
                                note_period(&s->kinds, type->period);
                                last_type = sample->type;
                        }
                        if (!st)
                                st = stack_table_add(&s->table, b->stacks[sample->stack].id.bytes, sample->value, 1,
                                                     err);
                        if (!st)
                                st = work_meter_add(chunk->thread->meter, 8, err);
                }
        }
        return st;
}

/* ---- row groups ---- */

struct group_sum {
        struct stack_summing *summing;
        const struct scan_chunk *chunk;
        struct parquet_cursor *stacks, *values;
        uint32_t value_row; /* first row of the next values */
        const struct parquet_bytes *dict;
};

static enum status reserve_codes(struct stack_summing *s, size_t count, struct error *err)
{
        size_t capacity = count + count / 4;
        struct code_sum *codes;
        enum status st;

        if (count <= s->code_capacity)
                return ST_OK;
        st = capacity > UNCOUNTED_CODES ? memory_resize(&s->memory, capacity * sizeof *codes, err) : ST_OK;
        if (st)
                return st;
        codes = realloc(s->codes, capacity * sizeof *codes);
        if (!codes)
                return error_no_memory(err);
        memset(codes + s->code_capacity, 0, (capacity - s->code_capacity) * sizeof *codes);
        s->codes = codes;
        s->code_capacity = capacity;
        return ST_OK;
}

static enum status add_code_total(struct group_sum *g, uint32_t code, __int128 value, uint64_t samples,
                                  struct error *err)
{
        const struct parquet_bytes *id = &g->dict[code];

        if (id->size != sizeof(stack_id))
                return error_set(err, ST_BAD_DATA, "'%s' has a sample whose stack id has %zu bytes, not 16",
                                 g->chunk->file->path, id->size);
        return stack_table_add(&g->summing->table, id->data, value, samples, err);
}

/* A sum that overflows 64 bits is moved to the table, which is exact, and starts again. */
static enum status add_overflowing(struct group_sum *g, uint32_t code, int64_t value, struct error *err)
{
        struct code_sum *sum = &g->summing->codes[code];
        enum status st = add_code_total(g, code, sum->value, sum->samples, err);

        *sum = (struct code_sum){ .value = value, .samples = 1 };
        return st;
}

static enum status add_equal_values(struct group_sum *g, uint32_t code, int64_t value, uint32_t count,
                                    struct error *err)
{
        struct code_sum *sum = &g->summing->codes[code];
        int64_t total;

        if (__builtin_mul_overflow(value, (int64_t)count, &total) || __builtin_add_overflow(sum->value, total, &total))
                return add_code_total(g, code, (__int128)value * count, count, err);
        sum->value = total;
        sum->samples += count;
        return ST_OK;
}

/* Adds rows that all have one stack. */
static enum status add_stack_run(struct group_sum *g, uint32_t code, const struct parquet_piece *values,
                                 struct error *err)
{
        struct code_sum *sum = &g->summing->codes[code];
        int64_t total = sum->value;

        if (values->is_run)
                return add_equal_values(g, code, values->ints[0], values->count, err);
        for (uint32_t i = 0; i < values->count; i++) {
                if (__builtin_add_overflow(total, values->ints[i], &total)) {
                        __int128 exact = 0;

                        for (i = 0; i < values->count; i++)
                                exact += values->ints[i];
                        return add_code_total(g, code, exact, values->count, err);
                }
        }
        sum->value = total;
        sum->samples += values->count;
        return ST_OK;
}

static enum status add_row_values(struct group_sum *g, const uint32_t *codes, const struct parquet_piece *values,
                                  struct error *err)
{
        struct code_sum *sums = g->summing->codes;
        enum status st = ST_OK;

        for (uint32_t i = 0; !st && i < values->count; i++) {
                struct code_sum *sum = &sums[codes[i]];
                int64_t value = values->ints[values->is_run ? 0 : i];

                if (__builtin_add_overflow(sum->value, value, &value))
                        st = add_overflowing(g, codes[i], values->ints[values->is_run ? 0 : i], err);
                else
                        *sum = (struct code_sum){ value, sum->samples + 1 };
        }
        return st;
}

static enum status check_stack_codes(const struct group_sum *g, const struct parquet_piece *stacks, struct error *err)
{
        for (uint32_t i = 0; i < (stacks->is_run ? 1 : stacks->count); i++) {
                if (stacks->codes[i] == PARQUET_NULL_CODE)
                        return error_set(err, ST_BAD_DATA, "'%s' has a sample without a stack", g->chunk->file->path);
        }
        return ST_OK;
}

static enum status sum_piece(void *context, uint32_t row, const struct parquet_piece *stacks, struct error *err)
{
        struct group_sum *g = context;
        uint32_t dict_count, done = 0;
        enum status st;

        g->dict = parquet_cursor_dict(g->stacks, &dict_count);
        st = reserve_codes(g->summing, dict_count, err);
        if (!st)
                st = check_stack_codes(g, stacks, err);
        if (!st)
                st = parquet_cursor_skip(g->values, row - g->value_row, err);
        while (!st && done < stacks->count) {
                struct parquet_piece values;

                st = parquet_cursor_read(g->values, stacks->count - done, &values, err);
                if (!st)
                        st = stacks->is_run ? add_stack_run(g, stacks->codes[0], &values, err)
                                            : add_row_values(g, stacks->codes + done, &values, err);
                done += values.count;
        }
        g->value_row = row + stacks->count;
        return st;
}

/* For codes after i; there are STACK_TABLE_AHEAD of them. */
static void prefetch_codes(const struct group_sum *g, uint32_t i)
{
        const struct parquet_bytes *later = &g->dict[i + STACK_TABLE_AHEAD],
                                   *soon = &g->dict[i + STACK_TABLE_AHEAD / 2];

        if (later->size == sizeof(stack_id))
                stack_table_prefetch_slot(&g->summing->table, later->data);
        if (soon->size == sizeof(stack_id))
                stack_table_prefetch_item(&g->summing->table, soon->data);
}

/* Adds each stack of the row group to the table once. */
static enum status add_group_totals(struct group_sum *g, struct error *err)
{
        struct stack_summing *s = g->summing;
        uint32_t count;
        enum status st = ST_OK;

        g->dict = parquet_cursor_dict(g->stacks, &count);
        for (uint32_t i = 0; !st && i < count && i < s->code_capacity; i++) {
                if (i + STACK_TABLE_AHEAD < count)
                        prefetch_codes(g, i);
                if (!s->codes[i].samples)
                        continue;
                st = add_code_total(g, i, s->codes[i].value, s->codes[i].samples, err);
                s->codes[i] = (struct code_sum){ 0 };
        }
        return st ? st : work_meter_add(g->chunk->thread->meter, count, err);
}

static bool has_only_text(const struct scan_chunk *chunk, const char *column, const char *text)
{
        struct parquet_bytes value;

        return group_has_one_text(chunk->file, chunk->group, column, &value) && value.size == strlen(text) &&
               memcmp(value.data, text, value.size) == 0;
}

static enum status note_piece_periods(void *context, uint32_t row, const struct parquet_piece *piece, struct error *err)
{
        struct stack_summing *s = context;

        (void)row, (void)err;
        for (uint32_t i = 0; i < (piece->is_run ? 1 : piece->count); i++)
                note_period(&s->kinds, piece->ints[i]);
        return ST_OK;
}

static enum status note_group_periods(struct stack_summing *s, const struct scan_chunk *chunk, struct error *err)
{
        struct parquet_cursor *periods;
        enum status st;

        if (!part_file_has_column(chunk->file, "period")) {
                note_period(&s->kinds, 0);
                return ST_OK;
        }
        st = scan_open_chunk_column(chunk, CURSOR_KEY, "period", PARQUET_INT64, &periods, err);
        return st ? st : scan_visit_pieces(chunk->thread, periods, chunk->rows, note_piece_periods, s, err);
}

/* Note the units, types and periods of the rows, unless statistics say that the last noted ones are all there are. */
static enum status note_group_kinds(struct stack_summing *s, const struct scan_chunk *chunk, struct error *err)
{
        enum status st = ST_OK;

        if (!s->kinds.any_unit || !has_only_text(chunk, "unit", s->kinds.unit))
                st = scan_visit_texts(chunk, "unit", add_unit, s, err);
        if (!st && (!s->kinds.any_type || !has_only_text(chunk, "profile_type", s->kinds.type)))
                st = scan_visit_texts(chunk, "profile_type", add_type, s, err);
        if (!st && !s->kinds.several_periods &&
            (!s->kinds.any_period || !group_has_only_int(chunk->file, chunk->group, "period", s->kinds.period)))
                st = note_group_periods(s, chunk, err);
        return st;
}

static enum status sum_group(struct stack_summing *s, const struct scan_chunk *chunk, struct error *err)
{
        struct group_sum g = { .summing = s, .chunk = chunk };
        struct scan_thread *t = chunk->thread;
        enum status st = note_group_kinds(s, chunk, err);

        if (!st)
                st = scan_open_chunk_column(chunk, CURSOR_STACK, "stack_id", PARQUET_BINARY, &g.stacks, err);
        if (!st)
                st = scan_open_chunk_column(chunk, CURSOR_VALUE, "value", PARQUET_INT64, &g.values, err);
        if (!st)
                st = scan_visit_pieces(t, g.stacks, chunk->rows, sum_piece, &g, err);
        return st ? st : add_group_totals(&g, err);
}

static enum status sum_chunk(void *context, const struct scan_chunk *chunk, struct error *err)
{
        return chunk->batch ? sum_batch(context, chunk, err) : sum_group(context, chunk, err);
}

/* ---- all threads ---- */

static enum status merge_summings(struct stack_summing *s, size_t count, struct work_meter *meter, struct error *err)
{
        enum status st = ST_OK;

        for (size_t i = 1; !st && i < count; i++) {
                struct value_kinds *k = &s[i].kinds;

                s->kinds.several_units |= k->several_units;
                s->kinds.several_types |= k->several_types;
                if (k->any_unit)
                        st = add_unit(s, k->unit, strlen(k->unit), err);
                if (k->any_type)
                        note_type(&s->kinds, k->type, strlen(k->type));
                s->kinds.several_periods |= k->several_periods;
                if (k->any_period)
                        note_period(&s->kinds, k->period);
                if (!st)
                        st = stack_table_merge(&s->table, &s[i].table, meter, err);
        }
        return st;
}

enum status store_scan_sum(struct store_scan *scan, const struct scan_filter *filter, struct stack_sums *ret,
                           struct error *err)
{
        size_t threads = count_work_threads();
        _cleanup_free_ struct stack_summing *s = calloc(threads, sizeof *s);
        _cleanup_free_ void **contexts = calloc(threads, sizeof *contexts);
        struct stack_sums sums = { 0 };
        enum status st;

        if (!s || !contexts)
                return error_no_memory(err);
        for (size_t i = 0; i < threads; i++) {
                summing_init(&s[i]);
                contexts[i] = &s[i];
        }
        st = scan_visit_chunks(scan, filter, &(struct chunk_visitor){ sum_chunk, NULL }, contexts, threads, err);
        if (!st)
                st = merge_summings(s, threads, scan->meter, err);
        if (!st)
                st = stack_table_finish(&s->table, scan->meter, &sums, err);
        if (!st)
                memcpy(sums.unit, s->kinds.unit, sizeof sums.unit);
        if (!st && !s->kinds.several_types)
                memcpy(sums.type, s->kinds.type, sizeof sums.type);
        sums.period = s->kinds.period;
        sums.several_periods = s->kinds.several_periods;
        for (size_t i = 0; i < threads; i++)
                summing_deinit(&s[i]);
        if (!st)
                *ret = sums;
        return st;
}

/* ---- each sample ---- */

struct sample_visit {
        store_scan_sample *each;
        void *context;
        const struct scan_chunk *chunk;
        struct parquet_cursor *stacks, *values, *times;
        uint32_t next_row; /* of values and times */
};

static enum status visit_batch_samples(const struct sample_visit *v, const struct scan_chunk *chunk, struct error *err)
{
        const struct batch *b = chunk->batch;
        enum status st = ST_OK;

        for (size_t k = 0; !st && k < chunk->rows->count; k++) {
                const struct row_range *range = &chunk->rows->items[k];

                for (uint32_t i = range->first; !st && i < range->first + range->count; i++) {
                        const struct batch_sample *s = &b->samples[i];

                        st = work_meter_add(chunk->thread->meter, 4, err);
                        if (!st)
                                st = v->each(v->context, s->time_us * 1000, s->value, b->stacks[s->stack].id.bytes);
                }
        }
        return st;
}

static enum status visit_row(const struct sample_visit *v, const struct parquet_bytes *dict, uint32_t code,
                             int64_t time_us, int64_t value, struct error *err)
{
        int64_t time_ns;

        if (code == PARQUET_NULL_CODE || dict[code].size != sizeof(stack_id))
                return error_set(err, ST_BAD_DATA, "'%s' has a sample without a stack", v->chunk->file->path);
        if (__builtin_mul_overflow(time_us, 1000, &time_ns))
                return error_set(err, ST_BAD_DATA, "'%s' has a sample whose time is out of range",
                                 v->chunk->file->path);
        return v->each(v->context, time_ns, value, dict[code].data);
}

static enum status visit_sample_piece(void *context, uint32_t row, const struct parquet_piece *stacks,
                                      struct error *err)
{
        struct sample_visit *v = context;
        struct parquet_piece values = { 0 }, times = { 0 };
        uint32_t value_at = 0, time_at = 0, dict_count;
        const struct parquet_bytes *dict = parquet_cursor_dict(v->stacks, &dict_count);
        enum status st = parquet_cursor_skip(v->values, row - v->next_row, err);

        if (!st)
                st = parquet_cursor_skip(v->times, row - v->next_row, err);
        for (uint32_t i = 0; !st && i < stacks->count; i++, value_at++, time_at++) {
                if (value_at == values.count) {
                        st = parquet_cursor_read(v->values, stacks->count - i, &values, err);
                        value_at = 0;
                }
                if (!st && time_at == times.count) {
                        st = parquet_cursor_read(v->times, stacks->count - i, &times, err);
                        time_at = 0;
                }
                if (!st)
                        st = visit_row(v, dict, stacks->codes[stacks->is_run ? 0 : i],
                                       times.ints[times.is_run ? 0 : time_at],
                                       values.ints[values.is_run ? 0 : value_at], err);
        }
        v->next_row = row + stacks->count;
        return st;
}

static enum status visit_chunk_samples(void *context, const struct scan_chunk *chunk, struct error *err)
{
        struct sample_visit *v = context;
        struct scan_thread *t = chunk->thread;
        enum status st;

        v->chunk = chunk;
        v->next_row = 0;
        if (chunk->batch)
                return visit_batch_samples(v, chunk, err);
        st = scan_open_chunk_column(chunk, CURSOR_STACK, "stack_id", PARQUET_BINARY, &v->stacks, err);
        if (!st)
                st = scan_open_chunk_column(chunk, CURSOR_VALUE, "value", PARQUET_INT64, &v->values, err);
        if (!st)
                st = scan_open_chunk_column(chunk, CURSOR_TIME, "time", PARQUET_TIMESTAMP, &v->times, err);
        return st ? st : scan_visit_pieces(t, v->stacks, chunk->rows, visit_sample_piece, v, err);
}

enum status store_scan_visit(struct store_scan *scan, const struct scan_filter *filter, store_scan_sample *each,
                             void *context, struct error *err)
{
        struct sample_visit v = { .each = each, .context = context };
        void *contexts[] = { &v };

        return scan_visit_chunks(scan, filter, &(struct chunk_visitor){ visit_chunk_samples, NULL }, contexts, 1, err);
}
