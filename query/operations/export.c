/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows are made one time step after the other: load_export_step() sums a step by type, label set and stack, and
 * resolves the stacks; export_step_rows() writes a row for each sum. So memory is bounded by a step, and
 * export_range() halves a step that is too large. Each step is a scan of its own, which ends with the step.
 *
 * The columns are decided before the first row: label names of the whole range, at most LIMIT_LABEL_COLUMNS; later or
 * further names are in labels_rest. Requested types are found once too, so that all steps sum the same ones.
 *
 * In the file: types; columns and the start of the file, as Parquet or CSV; rows; steps, with empty ranges skipped in
 * doubling strides; the entry point.
 */
#include "query/operations/export.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/files/file.h"
#include "common/limits.h"
#include "common/memory/arena.h"
#include "common/text/csv.h"
#include "parquet/parquet_writer.h"
#include "profile-store/scan/stack_counts.h"
#include "profile-store/scan_groups.h"
#include "query/engine/location_frames.h"
#include "query/engine/selector.h"
#include "query/engine/type_plan.h"

#define NS_PER_US 1000
#define CSV_FLUSH_BYTES KiB(256)

enum column {
        COLUMN_TIME,
        COLUMN_TYPE,
        COLUMN_UNIT,
        COLUMN_PERIOD,
        COLUMN_VALUE,
        COLUMN_SAMPLES,
        COLUMN_STACK,
        COLUMN_FUNCTION,
        COLUMN_FILE,
        COLUMN_LINE,
        COLUMN_LABELS_REST,
        COLUMN_COUNT
};

static const struct parquet_field fixed_fields[COLUMN_COUNT] = {
        [COLUMN_TIME] = { .name = "time", .kind = PARQUET_TIMESTAMP },
        [COLUMN_TYPE] = { .name = "profile_type", .kind = PARQUET_STRING },
        [COLUMN_UNIT] = { .name = "unit", .kind = PARQUET_STRING },
        [COLUMN_PERIOD] = { .name = "period", .kind = PARQUET_INT64, .optional = true },
        [COLUMN_VALUE] = { .name = "value", .kind = PARQUET_INT64 },
        [COLUMN_SAMPLES] = { .name = "samples", .kind = PARQUET_INT64 },
        [COLUMN_STACK] = { .name = "stack", .kind = PARQUET_STRING },
        [COLUMN_FUNCTION] = { .name = "function", .kind = PARQUET_STRING },
        [COLUMN_FILE] = { .name = "file", .kind = PARQUET_STRING, .optional = true },
        [COLUMN_LINE] = { .name = "line", .kind = PARQUET_INT64, .optional = true },
        [COLUMN_LABELS_REST] = { .name = "labels_rest", .kind = PARQUET_STRING, .optional = true },
};

struct export
{
        struct profile_store *store;
        const struct export_options *o;
        struct selector selector;
        struct arena arena; /* of label names and types */
        const char **types; /* requested types; count 0: all */
        size_t type_count;
        const char **label_names; /* sorted; they have columns label_NAME after the fixed ones */
        size_t label_count;
        struct parquet_writer *writer; /* NULL: CSV */
        uint32_t *label_nodes;
        uint32_t nodes[COLUMN_COUNT];
        struct buf csv, stack, rest;
        struct export_result result;
};

static void export_deinit(struct export *e)
{
        parquet_writer_destroy(e->writer);
        free(e->types);
        free(e->label_names);
        free(e->label_nodes);
        buf_deinit(&e->csv);
        buf_deinit(&e->stack);
        buf_deinit(&e->rest);
        arena_deinit(&e->arena);
        selector_deinit(&e->selector);
}

static struct scan_filter make_export_filter(const struct export *e, int64_t from, int64_t to)
{
        return (struct scan_filter){ .from_unix_ns = from,
                                     .to_unix_ns = to,
                                     .type = e->type_count == 1 ? e->types[0] : NULL,
                                     .matchers = e->selector.matchers,
                                     .matcher_count = e->selector.count };
}

/* ---- types ---- */

static bool is_export_type(const struct export *e, const char *type)
{
        for (size_t i = 0; i < e->type_count; i++)
                if (strcmp(e->types[i], type) == 0)
                        return true;
        return e->type_count == 0;
}

/* Copy the types of a scan that the request matches. */
static enum status keep_matching_types(struct export *e, const struct scan_names *types, const char *asked,
                                       struct error *err)
{
        size_t count;

        free(e->types);
        e->types = calloc(types->count + 1, sizeof *e->types);
        if (!e->types)
                return error_no_memory(err);
        count = find_matching_types(types, asked, e->types);
        for (size_t i = 0; i < count; i++) {
                e->types[i] = arena_strndup(&e->arena, e->types[i], strlen(e->types[i]));
                if (!e->types[i])
                        return error_no_memory(err);
        }
        e->type_count = count;
        return ST_OK;
}

/* Find the types that the request matches in its range, else in the store; if none, the error lists all. */
static enum status find_export_types(struct export *e, const char *asked, struct error *err)
{
        const struct scan_filter ranges[] = {
                { .from_unix_ns = e->o->from_unix_ns, .to_unix_ns = e->o->to_unix_ns },
                { .from_unix_ns = INT64_MIN, .to_unix_ns = INT64_MAX },
        };
        struct scan_names types = { 0 };
        struct store_scan *scan;
        enum status st = store_scan_begin(e->store, &scan, err);

        if (st)
                return st;
        for (size_t i = 0; !st && !e->type_count && i < sizeof ranges / sizeof *ranges; i++) {
                st = store_scan_list_types(scan, &ranges[i], &types, err);
                if (!st)
                        st = keep_matching_types(e, &types, asked, err);
        }
        if (!st && !e->type_count && types.count)
                st = refuse_type(&types, asked, "none of those in the store; there are", err);
        if (!st && !e->type_count) { /* no samples at all: a type that selects nothing */
                e->types[0] = asked;
                e->type_count = 1;
        }
        store_scan_end(scan);
        return st;
}

/* ---- columns ---- */

/* The first LIMIT_LABEL_COLUMNS names in byte order have columns; others, and names that appear later, do not. */
static enum status list_label_columns(struct export *e, struct error *err)
{
        const struct scan_filter whole_range = { .from_unix_ns = e->o->from_unix_ns, .to_unix_ns = e->o->to_unix_ns };
        struct store_scan *scan;
        struct scan_names names = { 0 };
        enum status st = store_scan_begin(e->store, &scan, err);

        if (st)
                return st;
        st = store_scan_list_label_names(scan, &whole_range, &names, err);
        e->label_names = st ? NULL : calloc(names.count + 1, sizeof *e->label_names);
        if (!st && !e->label_names)
                st = error_no_memory(err);
        for (size_t i = 0; !st && i < names.count && i < LIMIT_LABEL_COLUMNS; i++) {
                e->label_names[i] = arena_strndup(&e->arena, names.items[i], strlen(names.items[i]));
                if (!e->label_names[i])
                        st = error_no_memory(err);
                else
                        e->label_count++;
        }
        store_scan_end(scan);
        return st;
}

static char *make_label_column_name(struct export *e, const char *label)
{
        size_t n;
        char *name;

        assert(label);
        n = strlen("label_") + strlen(label) + 1;
        name = arena_alloc(&e->arena, n);
        if (name)
                snprintf(name, n, "label_%s", label);
        return name;
}

static enum status begin_parquet(struct export *e, struct error *err)
{
        size_t count = COLUMN_COUNT + e->label_count;
        _cleanup_free_ struct parquet_field *fields = calloc(count, sizeof *fields);
        enum status st;

        e->label_nodes = calloc(e->label_count + 1, sizeof *e->label_nodes);
        if (!fields || !e->label_nodes)
                return error_no_memory(err);
        memcpy(fields, fixed_fields, sizeof fixed_fields);
        for (size_t i = 0; i < e->label_count; i++) {
                fields[COLUMN_COUNT + i] = (struct parquet_field){ .name = make_label_column_name(e, e->label_names[i]),
                                                                   .kind = PARQUET_STRING,
                                                                   .optional = true };
                if (!fields[COLUMN_COUNT + i].name)
                        return error_no_memory(err);
        }
        st = parquet_writer_create(e->o->fd, e->o->name, fields, count, NULL, &e->writer, err);
        for (size_t i = 0; !st && i < COLUMN_COUNT; i++)
                e->nodes[i] = parquet_writer_node(e->writer, fixed_fields[i].name);
        for (size_t i = 0; !st && i < e->label_count; i++)
                e->label_nodes[i] = parquet_writer_node(e->writer, fields[COLUMN_COUNT + i].name);
        return st;
}

static enum status flush_csv(struct export *e, struct error *err)
{
        enum status st = buf_status(&e->csv, err, "the export");

        if (!st)
                st = file_write_all(e->o->fd, e->csv.data, e->csv.size, e->o->name, err);
        e->csv.size = 0;
        return st;
}

static enum status begin_csv(struct export *e, struct error *err)
{
        for (size_t i = 0; i < COLUMN_COUNT; i++)
                csv_put_text(&e->csv, fixed_fields[i].name, i + 1 < COLUMN_COUNT || e->label_count ? ',' : '\r');
        for (size_t i = 0; i < e->label_count; i++) {
                buf_append_str(&e->csv, "label_");
                csv_put_text(&e->csv, e->label_names[i], i + 1 < e->label_count ? ',' : '\r');
        }
        buf_append_u8(&e->csv, '\n');
        return flush_csv(e, err);
}

/* ---- rows ---- */

/* Texts are never NULL; "" becomes null in optional columns. */
struct export_row {
        int64_t time_us, period, value, line;
        uint64_t samples;
        const char *type, *unit, *stack, *function, *file;
        const struct scan_group_label *labels; /* sorted by name */
        uint32_t label_count;
};

static void put_export_text(struct export *e, uint32_t node, const char *text, char end)
{
        if (!e->writer)
                csv_put_text(&e->csv, text, end);
        else if (*text)
                parquet_put_str(e->writer, node, text);
        else
                parquet_put_null(e->writer, node);
}

/* The values of all label columns, in order. collect_other_labels() has the other labels. */
static void put_export_labels(struct export *e, const struct export_row *r)
{
        uint32_t at = 0;

        for (size_t i = 0; i < e->label_count; i++) {
                const char *value = "";

                while (at < r->label_count && strcmp(r->labels[at].name, e->label_names[i]) < 0)
                        at++;
                if (at < r->label_count && strcmp(r->labels[at].name, e->label_names[i]) == 0)
                        value = r->labels[at].value;
                put_export_text(e, e->writer ? e->label_nodes[i] : 0, value, i + 1 < e->label_count ? ',' : '\r');
        }
}

static void collect_other_labels(struct export *e, const struct export_row *r)
{
        size_t column = 0;

        e->rest.size = 0;
        for (uint32_t i = 0; i < r->label_count; i++) {
                while (column < e->label_count && strcmp(e->label_names[column], r->labels[i].name) < 0)
                        column++;
                if (column < e->label_count && strcmp(e->label_names[column], r->labels[i].name) == 0)
                        continue;
                buf_printf(&e->rest, "%s%s=%s", e->rest.size ? "," : "", r->labels[i].name, r->labels[i].value);
        }
}

static void put_csv_row(struct export *e, const struct export_row *r, const char *rest)
{
        time_t seconds = (time_t)(r->time_us / 1000000);
        char time_text[40];
        struct tm tm;

        gmtime_r(&seconds, &tm);
        strftime(time_text, sizeof time_text, "%Y-%m-%dT%H:%M:%SZ", &tm);
        buf_printf(&e->csv, "%s,", time_text);
        csv_put_text(&e->csv, r->type, ',');
        csv_put_text(&e->csv, r->unit, ',');
        if (r->period)
                buf_printf(&e->csv, "%" PRId64, r->period);
        buf_printf(&e->csv, ",%" PRId64 ",%" PRIu64 ",", r->value, r->samples);
        csv_put_text(&e->csv, r->stack, ',');
        csv_put_text(&e->csv, r->function, ',');
        csv_put_text(&e->csv, r->file, ',');
        if (r->line)
                buf_printf(&e->csv, "%" PRId64, r->line);
        buf_append_u8(&e->csv, ',');
        csv_put_text(&e->csv, rest, e->label_count ? ',' : '\r');
        put_export_labels(e, r);
        buf_append_u8(&e->csv, '\n');
}

static void put_parquet_row(struct export *e, const struct export_row *r, const char *rest)
{
        struct parquet_writer *w = e->writer;

        parquet_put_int(w, e->nodes[COLUMN_TIME], r->time_us);
        parquet_put_str(w, e->nodes[COLUMN_TYPE], r->type);
        parquet_put_str(w, e->nodes[COLUMN_UNIT], r->unit);
        if (r->period)
                parquet_put_int(w, e->nodes[COLUMN_PERIOD], r->period);
        else
                parquet_put_null(w, e->nodes[COLUMN_PERIOD]);
        parquet_put_int(w, e->nodes[COLUMN_VALUE], r->value);
        parquet_put_int(w, e->nodes[COLUMN_SAMPLES], (int64_t)r->samples);
        parquet_put_str(w, e->nodes[COLUMN_STACK], r->stack);
        parquet_put_str(w, e->nodes[COLUMN_FUNCTION], r->function);
        put_export_text(e, e->nodes[COLUMN_FILE], r->file, 0);
        if (r->line)
                parquet_put_int(w, e->nodes[COLUMN_LINE], r->line);
        else
                parquet_put_null(w, e->nodes[COLUMN_LINE]);
        put_export_text(e, e->nodes[COLUMN_LABELS_REST], rest, 0);
        put_export_labels(e, r);
}

static enum status put_export_row(struct export *e, const struct export_row *r, struct error *err)
{
        const char *rest;

        collect_other_labels(e, r);
        rest = buf_cstr(&e->rest);
        if (!rest)
                return buf_status(&e->rest, err, "labels");
        e->result.rows++;
        if (e->writer) {
                put_parquet_row(e, r, rest);
                return parquet_writer_end_rows(e->writer, 1, err);
        }
        put_csv_row(e, r, rest);
        return e->csv.size < CSV_FLUSH_BYTES && !e->csv.failed ? ST_OK : flush_csv(e, err);
}

/* ---- steps ---- */

/* The loaded data of one step. */
struct export_step {
        struct store_scan *scan;
        struct scan_group_sums sums;
        const struct scan_stacks *stacks;
        struct frame_table frames;
        struct location_frames locations;
};

static void export_step_deinit(struct export_step *s)
{
        location_frames_deinit(&s->locations);
        frame_table_deinit(&s->frames);
        scan_group_sums_deinit(&s->sums);
        store_scan_end(s->scan);
}

static enum status load_export_step(struct export *e, int64_t from, int64_t to, struct export_step *s,
                                    struct error *err)
{
        const struct scan_filter filter = make_export_filter(e, from, to);
        const struct scan_group_by by = { .types = e->types, .type_count = e->type_count, .all_labels = true };
        enum status st;

        frame_table_init(&s->frames, NULL);
        st = store_scan_begin(e->store, &s->scan, err);
        if (!st)
                st = store_scan_sum_groups(s->scan, &filter, &by, &s->sums, err);
        if (!st)
                st = store_scan_resolve(s->scan, &s->sums.stacks, &s->stacks, err);
        return st ? st : location_frames_build(&s->frames, s->stacks, &s->locations, err);
}

/* The names of a stack, root first, joined by ';', which is replaced by ':' inside names. */
static void put_stack_text(struct buf *to, const struct export_step *s, size_t stack)
{
        const struct scan_stacks *stacks = s->stacks;

        to->size = 0;
        for (size_t i = stacks->first[stack + 1]; i-- > stacks->first[stack];) {
                uint32_t location = stacks->indexes[i];

                for (uint32_t k = s->locations.first[location]; k < s->locations.end[location]; k++) {
                        const char *name = s->frames.items[s->locations.frames[k]].function;
                        size_t start;

                        if (to->size)
                                buf_append_u8(to, ';');
                        start = to->size;
                        buf_append_str(to, name);
                        for (size_t c = start; c < to->size; c++)
                                if (to->data[c] == ';')
                                        to->data[c] = ':';
                }
        }
        if (!to->size)
                buf_append_str(to, "[no stack]");
}

/* The innermost frame of the leaf. */
static void get_leaf_frame(const struct export_step *s, size_t stack, struct export_row *row)
{
        const struct scan_stacks *stacks = s->stacks;
        uint32_t last;

        row->function = "[no stack]";
        row->file = "";
        if (stacks->first[stack] == stacks->first[stack + 1])
                return;
        last = s->locations.end[stacks->indexes[stacks->first[stack]]];
        if (last == s->locations.first[stacks->indexes[stacks->first[stack]]])
                return;
        row->function = s->frames.items[s->locations.frames[last - 1]].function;
        row->file = s->frames.items[s->locations.frames[last - 1]].file;
        row->line = s->locations.lines[last - 1];
}

/* Samples that several types count are in the total once. */
static enum status count_step_samples(struct export *e, const struct export_step *s,
                                      const struct sample_count_rule *rules, struct error *err)
{
        _cleanup_free_ struct counted_samples *counts = calloc(s->sums.stacks.count + 1, sizeof *counts);
        enum status st;

        if (!counts)
                return error_no_memory(err);
        st = scan_group_sums_count_stacks(&s->sums, rules, NULL, counts, err);
        for (size_t i = 0; !st && i < s->sums.stacks.count; i++)
                sample_count_add(&e->result.samples, counts[i]);
        return st;
}

static enum status export_step_rows(struct export *e, const struct export_step *s, int64_t from, struct error *err)
{
        _cleanup_free_ struct sample_count_rule *rules = scan_group_sums_list_count_rules(&s->sums);
        enum status st = rules ? count_step_samples(e, s, rules, err) : error_no_memory(err);

        for (size_t i = 0; !st && i < s->sums.count; i++) {
                const struct scan_group_sum *sum = &s->sums.items[i];
                const struct scan_group *group = &s->sums.groups[sum->group];
                struct export_row row = { .time_us = from / NS_PER_US,
                                          .type = group->type,
                                          .unit = group->unit,
                                          .period = group->period,
                                          .value = sum->value,
                                          .samples = sample_count_round(
                                                  compute_sample_count(&rules[sum->group], sum->value, sum->samples)),
                                          .labels = group->labels,
                                          .label_count = group->label_count };

                put_stack_text(&e->stack, s, sum->item);
                row.stack = buf_cstr(&e->stack);
                if (!row.stack)
                        return buf_status(&e->stack, err, "a stack");
                get_leaf_frame(s, sum->item, &row);
                st = put_export_row(e, &row, err);
        }
        return st;
}

/* Export [from, to), split in halves when it exceeds the limits of a scan. */
static enum status export_range(struct export *e, int64_t from, int64_t to, struct error *err)
{
        struct memory_reservation counts = { .use = MEMORY_QUERIES };
        struct export_step s = { 0 };
        int64_t middle = from + (to - from) / 2;
        enum status st = load_export_step(e, from, to, &s, err);
        bool halve;

        if (!st) /* for count_step_samples(), which needs as much again while it counts */
                st = memory_reserve(&counts, 2 * (s.sums.stacks.count + 1) * sizeof(struct counted_samples), err);
        halve = st == ST_TOO_BIG && to - from >= 2 * EXPORT_STEP_LEAST_NS;
        if (!st)
                st = export_step_rows(e, &s, from, err);
        export_step_deinit(&s);
        memory_release(&counts);
        if (!halve)
                return st;
        st = export_range(e, from, middle, err); /* depth at most 33: from 64 bits of nanoseconds down to a second */
        return st ? st : export_range(e, middle, to, err);
}

/* Whether [from, to) has selected samples. */
static enum status has_selected_samples(struct export *e, int64_t from, int64_t to, bool *ret, struct error *err)
{
        const struct scan_filter filter = make_export_filter(e, from, to);
        struct scan_names types = { 0 };
        struct store_scan *scan;
        enum status st = store_scan_begin(e->store, &scan, err);

        if (st)
                return st;
        st = store_scan_list_types(scan, &filter, &types, err);
        *ret = false;
        for (size_t i = 0; !st && i < types.count; i++)
                *ret = *ret || is_export_type(e, types.items[i]);
        store_scan_end(scan);
        return st;
}

static int64_t add_time(int64_t at, int64_t step, int64_t end)
{
        int64_t next;

        return __builtin_add_overflow(at, step, &next) || next > end ? end : next;
}

/* Export step by step; gaps are skipped in doubling strides. */
static enum status export_all_steps(struct export *e, int64_t from, int64_t to, struct error *err)
{
        int64_t step = e->o->step_ns, at = from, end = add_time(from - from % step, step, to);
        enum status st = ST_OK;

        while (!st && at < to) {
                uint64_t rows = e->result.rows;
                bool found = false;

                st = export_range(e, at, end, err);
                at = end;
                for (int64_t stride = 2 * step; !st && e->result.rows == rows && !found && at < to; stride *= 2) {
                        st = has_selected_samples(e, at, add_time(at, stride, to), &found, err);
                        if (!st && !found)
                                at = add_time(at, stride, to);
                        if (stride > INT64_MAX / 4)
                                break;
                }
                end = add_time(at, step, to);
        }
        return st;
}

/* Clip the range to the samples of the store; its start is rounded down to a whole step. */
static enum status clip_export_range(struct export *e, int64_t *from, int64_t *to, struct error *err)
{
        struct profile_store_stat stat;
        enum status st = profile_store_stat(e->store, &stat, err);

        if (st)
                return st;
        *from = e->o->from_unix_ns > stat.oldest_unix_ns ? e->o->from_unix_ns : stat.oldest_unix_ns;
        *to = e->o->to_unix_ns <= stat.newest_unix_ns ? e->o->to_unix_ns
              : stat.newest_unix_ns < INT64_MAX       ? stat.newest_unix_ns + 1
                                                      : INT64_MAX;
        if (*from > 0 && *from - *from % e->o->step_ns >= e->o->from_unix_ns)
                *from -= *from % e->o->step_ns;
        return ST_OK;
}

enum status export_stacks(struct profile_store *store, const struct export_options *o, struct export_result *ret,
                          struct error *err)
{
        _cleanup_(export_deinit) struct export e = { .store = store, .o = o };
        int64_t from = 0, to = 0;
        const char *asked;
        enum status st;

        assert(o->step_ns >= EXPORT_STEP_LEAST_NS);
        arena_init(&e.arena, MiB(1));
        buf_init(&e.csv, MiB(64));
        buf_init(&e.stack, MiB(64));
        buf_init(&e.rest, MiB(16));
        st = selector_parse(o->selector, NULL, &e.selector, err);
        if (!st && o->type && e.selector.type && strcmp(o->type, e.selector.type) != 0)
                st = error_set(err, ST_USAGE, "--type and the selector name different profile types");
        asked = o->type ? o->type : e.selector.type;
        if (!st && asked)
                st = find_export_types(&e, asked, err);
        if (!st)
                st = clip_export_range(&e, &from, &to, err);
        if (!st)
                st = list_label_columns(&e, err);
        if (!st)
                st = o->csv ? begin_csv(&e, err) : begin_parquet(&e, err);
        if (!st && from < to)
                st = export_all_steps(&e, from, to, err);
        if (!st)
                st = o->csv ? flush_csv(&e, err) : parquet_writer_finish(e.writer, err);
        if (!st)
                *ret = e.result;
        return st;
}
