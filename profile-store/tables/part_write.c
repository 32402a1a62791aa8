/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct part_writer is common to all tables: it begins an upload, counts rows, and on finish takes the statistics for
 * the log from the Parquet writer and publishes the upload. Above it each table has a function
 * that puts rows, column by column; the numbers of the columns' nodes are looked up once per file. Merges use struct
 * part_writer directly, and re-symbolizations struct location_part.
 *
 * Null stands for what is unknown: "" and 0 of optional columns, and lists without a known start line.
 *
 * In the file: the part; locations; stacks; samples, whose labels are distributed over label columns and labels_rest.
 */
#include "profile-store/tables/part_write.h"

#include <assert.h>
#include <string.h>

#include "common/limits.h"
#include "parquet/parquet_writer.h"
#include "profile-store/delta/delta_log.h"

/* Reserve memory for one row group. Returns the bytes it may use. */
static uint64_t reserve_row_group(struct memory_reservation *memory, uint64_t bytes)
{
        if (memory->use == MEMORY_BASE)
                return bytes;
        while (bytes > PART_LEAST_GROUP_BYTES && memory_reserve(memory, bytes, NULL))
                bytes /= 2;
        return bytes;
}

/* The first column of a table's order. */
static const struct parquet_sort table_order[TABLE_COUNT] = {
        [TABLE_SAMPLES] = { .path = "profile_type" },
        [TABLE_STACKS] = { .path = "stack_id" },
        [TABLE_LOCATIONS] = { .path = "build_id", .nulls_first = true },
        [TABLE_HISTORY] = { .path = "hour" },
};

enum status part_writer_begin(struct part_writer *p, struct storage *s, const char *key, enum table t,
                              const struct label_columns *columns, const struct part_limits *limits, struct error *err)
{
        struct parquet_writer_options options = PARQUET_WRITER_OPTIONS;
        _cleanup_arena_ struct arena a;
        const struct parquet_field *fields;
        size_t count;
        enum status st;

        arena_init(&a, MiB(16));
        assert(limits->max_rows > 0);
        *p = (struct part_writer){ .upload.fd = -1, .max_rows = limits->max_rows, .memory.use = limits->use };
        options.row_group_bytes =
                reserve_row_group(&p->memory, limits->group_bytes ? limits->group_bytes : PART_GROUP_BYTES);
        options.sort = &table_order[t];
        options.sort_count = 1;
        st = make_table_fields(&a, t, columns, false, &fields, &count, err);
        if (!st)
                st = storage_make_folder(s, key, err);
        if (!st)
                st = storage_begin(s, key, &p->upload, err);
        if (!st)
                st = parquet_writer_create(p->upload.fd, p->upload.name, fields, count, &options, &p->w, err);
        return st;
}

/* Columns by which queries and re-symbolization select files. Label columns are in order of first appearance. */
static const char *const stats_names[] = {
        "time", "profile_type", "build_id", "label_service_name", "hour", "source_version",
};
static const struct delta_stats_columns stats_columns = {
        .names = stats_names,
        .count = sizeof stats_names / sizeof *stats_names,
        .prefix = "label_",
        .prefix_count = LABELS_WITH_STATS,
};

enum status part_writer_finish(struct part_writer *p, struct part_written *ret, struct error *err)
{
        enum status st = parquet_writer_finish(p->w, err);
        _cleanup_buf_ struct buf stats;
        char *text;

        buf_init(&stats, LIMIT_DELTA_LINE_BYTES);
        if (!st)
                st = delta_stats_append(p->w, &stats_columns, &stats);
        if (st)
                return st;
        text = strndup((const char *)stats.data, stats.size);
        if (!text)
                return error_no_memory(err);
        st = storage_publish(&p->upload, STORAGE_REPLACE, err);
        if (st) {
                free(text);
                return st;
        }
        *ret = (struct part_written){ .rows = parquet_writer_rows(p->w),
                                      .bytes = parquet_writer_bytes(p->w),
                                      .stats = text };
        return ST_OK;
}

bool part_writer_has_room(const struct part_writer *p)
{
        return !p->rows || (p->rows < p->max_rows && !parquet_writer_is_full(p->w));
}

enum status part_writer_end_rows(struct part_writer *p, uint64_t count, struct error *err)
{
        assert(part_writer_has_room(p));
        p->rows += count;
        return parquet_writer_end_rows(p->w, count, err);
}

void part_writer_deinit(struct part_writer *p)
{
        parquet_writer_destroy(p->w);
        storage_discard(&p->upload);
        if (p->memory.use != MEMORY_BASE)
                memory_release(&p->memory);
}

static void put_optional_str(struct parquet_writer *w, uint32_t node, const char *s)
{
        if (*s)
                parquet_put_str(w, node, s);
        else
                parquet_put_null(w, node);
}

static void put_optional_int(struct parquet_writer *w, uint32_t node, int64_t v)
{
        if (v)
                parquet_put_int(w, node, v);
        else
                parquet_put_null(w, node);
}

/* ---- locations ---------------------------------------------------------------------- */

enum status location_part_begin(struct location_part *l, struct storage *s, const char *key,
                                const struct part_limits *limits, struct error *err)
{
        const struct {
                const char *path;
                uint32_t *node;
        } nodes[] = {
                { "location_id", &l->id },
                { "build_id", &l->build_id },
                { "address", &l->address },
                { "address_kind", &l->kind },
                { "mapping", &l->mapping },
                { "is_kernel", &l->is_kernel },
                { "frames", &l->frames },
                { "state", &l->state },
                { "quality", &l->quality },
                { "generation", &l->generation },
                { START_LINES_COLUMN, &l->start_lines },
                { START_LINES_COLUMN ".list.element", &l->start_line },
                { "frames.list.element.function", &l->frame.function },
                { "frames.list.element.linkage_name", &l->frame.linkage_name },
                { "frames.list.element.file", &l->frame.file },
                { "frames.list.element.line", &l->frame.line },
                { "frames.list.element.inlined", &l->frame.inlined },
        };
        enum status st = part_writer_begin(&l->part, s, key, TABLE_LOCATIONS, NULL, limits, err);

        for (size_t i = 0; !st && i < sizeof nodes / sizeof *nodes; i++)
                *nodes[i].node = parquet_writer_node(l->part.w, nodes[i].path);
        return st;
}

/* Null when no function has a start line. */
static void put_start_lines(struct location_part *l, const struct scan_location *shown)
{
        uint32_t count = shown->frame_count, known = 0;

        for (uint32_t i = 0; i < count; i++)
                known += shown->frames[i].start_line != 0;
        if (!known) {
                parquet_put_null(l->part.w, l->start_lines);
                return;
        }
        parquet_put_list(l->part.w, l->start_lines, count);
        for (uint32_t i = 0; i < count; i++)
                put_optional_int(l->part.w, l->start_line, shown->frames[i].start_line);
}

enum status location_part_put(struct location_part *l, const struct location_row *row, struct error *err)
{
        struct parquet_writer *w = l->part.w;
        char hex[BUILD_ID_HEX_MAX];

        parquet_put_int(w, l->id, (int64_t)row->shown.location_id);
        put_optional_str(w, l->build_id, row->shown.build_id->size ? build_id_hex(row->shown.build_id, hex) : "");
        if (row->kind == ADDRESS_NONE)
                parquet_put_null(w, l->address);
        else
                parquet_put_int(w, l->address, (int64_t)row->shown.address);
        parquet_put_str(w, l->kind, address_kind_name(row->kind));
        put_optional_str(w, l->mapping, row->shown.mapping);
        parquet_put_int(w, l->is_kernel, row->shown.is_kernel);
        parquet_put_list(w, l->frames, row->shown.frame_count);
        for (uint32_t i = 0; i < row->shown.frame_count; i++) {
                const struct scan_frame *f = &row->shown.frames[i];

                put_optional_str(w, l->frame.function, f->function);
                put_optional_str(w, l->frame.linkage_name, f->linkage_name);
                put_optional_str(w, l->frame.file, f->file);
                put_optional_int(w, l->frame.line, f->line);
                parquet_put_int(w, l->frame.inlined, f->inlined);
        }
        parquet_put_str(w, l->state, row->shown.state);
        parquet_put_str(w, l->quality, symbol_quality_name(row->shown.quality));
        parquet_put_int(w, l->generation, (int64_t)row->generation);
        put_start_lines(l, &row->shown);
        return part_writer_end_rows(&l->part, 1, err);
}

enum status part_write_locations(struct storage *s, const char *key, const struct location_row *rows, size_t *count,
                                 const struct part_limits *limits, struct part_written *ret, struct error *err)
{
        struct location_part l;
        size_t done = 0;
        enum status st = location_part_begin(&l, s, key, limits, err);

        for (; !st && done < *count && part_writer_has_room(&l.part); done++) {
                assert(!done || compare_location_rows(&rows[done - 1], &rows[done]) <= 0);
                st = location_part_put(&l, &rows[done], err);
        }
        if (!st)
                st = part_writer_finish(&l.part, ret, err);
        if (!st)
                *count = done;
        part_writer_deinit(&l.part);
        return st;
}

/* ---- stacks --------------------------------------------------------------------------- */

enum status part_write_stacks(struct storage *s, const char *key, const struct batch_stack *const *stacks,
                              size_t *count, const struct part_limits *limits, struct part_written *ret,
                              struct error *err)
{
        _cleanup_part_writer_ struct part_writer p;
        uint32_t id, list;
        size_t done = 0;
        enum status st = part_writer_begin(&p, s, key, TABLE_STACKS, NULL, limits, err);

        if (st)
                return st;
        id = parquet_writer_node(p.w, "stack_id");
        list = parquet_writer_node(p.w, "location_ids");
        for (; !st && done < *count && part_writer_has_room(&p); done++) {
                assert(!done || memcmp(&stacks[done - 1]->id, &stacks[done]->id, sizeof stacks[done]->id) < 0);
                parquet_put_bytes(p.w, id, stacks[done]->id.bytes, sizeof stacks[done]->id.bytes);
                parquet_put_int_list(p.w, list, (const int64_t *)stacks[done]->location_ids,
                                     stacks[done]->location_count);
                st = part_writer_end_rows(&p, 1, err);
        }
        if (!st)
                st = part_writer_finish(&p, ret, err);
        if (!st)
                *count = done;
        return st;
}

/* ---- samples --------------------------------------------------------------------------- */

struct sample_writer {
        struct part_writer part;
        const struct label_columns *columns;
        uint32_t *label_nodes;
        const char **label_values; /* of one row, by column */
        uint32_t time, duration, period, type, unit, value, stack, trace, span, rest, rest_key, rest_value;
};

static void sample_writer_deinit(struct sample_writer *s)
{
        part_writer_deinit(&s->part);
        free(s->label_nodes);
        free(s->label_values);
}

static enum status sample_writer_begin(struct sample_writer *s, struct storage *storage, const char *key,
                                       const struct part_limits *limits, struct error *err)
{
        size_t n = s->columns->count;
        struct parquet_writer *w;
        enum status st;

        s->label_nodes = calloc(n + 1, sizeof *s->label_nodes);
        s->label_values = calloc(n + 1, sizeof *s->label_values);
        if (!s->label_nodes || !s->label_values)
                return error_no_memory(err);
        st = part_writer_begin(&s->part, storage, key, TABLE_SAMPLES, s->columns, limits, err);
        if (st)
                return st;
        w = s->part.w;
        s->time = parquet_writer_node(w, "time");
        s->duration = parquet_writer_node(w, "duration_ns");
        s->period = parquet_writer_node(w, "period");
        s->type = parquet_writer_node(w, "profile_type");
        s->unit = parquet_writer_node(w, "unit");
        s->value = parquet_writer_node(w, "value");
        s->stack = parquet_writer_node(w, "stack_id");
        s->trace = parquet_writer_node(w, "trace_id");
        s->span = parquet_writer_node(w, "span_id");
        s->rest = parquet_writer_node(w, "labels_rest");
        s->rest_key = parquet_writer_node(w, "labels_rest.key_value.key");
        s->rest_value = parquet_writer_node(w, "labels_rest.key_value.value");
        for (size_t i = 0; i < n; i++) {
                _cleanup_free_ char *name = label_column(s->columns->names[i]);

                if (!name)
                        return error_no_memory(err);
                s->label_nodes[i] = parquet_writer_node(w, name);
        }
        return ST_OK;
}

static size_t find_label_column(const struct label_columns *columns, const char *name)
{
        size_t i = 0;

        while (i < columns->count && strcmp(columns->names[i], name) != 0)
                i++;
        return i;
}

static void put_sample_labels(struct sample_writer *s, const struct batch_label_set *set)
{
        struct parquet_writer *w = s->part.w;
        uint32_t rest = 0;

        memset(s->label_values, 0, s->columns->count * sizeof *s->label_values);
        for (uint32_t i = 0; i < set->count; i++) {
                size_t column = find_label_column(s->columns, set->labels[i].name);

                if (column < s->columns->count)
                        s->label_values[column] = set->labels[i].value;
                else
                        rest++;
        }
        for (size_t i = 0; i < s->columns->count; i++) {
                if (s->label_values[i])
                        parquet_put_str(w, s->label_nodes[i], s->label_values[i]);
                else
                        parquet_put_null(w, s->label_nodes[i]);
        }
        if (!rest) {
                parquet_put_null(w, s->rest);
                return;
        }
        parquet_put_list(w, s->rest, rest);
        for (uint32_t i = 0; i < set->count; i++) {
                if (find_label_column(s->columns, set->labels[i].name) < s->columns->count)
                        continue;
                parquet_put_str(w, s->rest_key, set->labels[i].name);
                parquet_put_str(w, s->rest_value, set->labels[i].value);
        }
}

static void put_sample_row(struct sample_writer *s, const struct sample_row *row)
{
        const struct batch_sample *sample = row->sample;
        const struct batch_type *type = &row->batch->types[sample->type];
        struct parquet_writer *w = s->part.w;

        parquet_put_int(w, s->time, sample->time_us);
        put_optional_int(w, s->duration, sample->duration_ns);
        put_optional_int(w, s->period, type->period);
        parquet_put_str(w, s->type, type->id);
        parquet_put_str(w, s->unit, type->unit);
        parquet_put_int(w, s->value, sample->value);
        parquet_put_bytes(w, s->stack, row->batch->stacks[sample->stack].id.bytes, sizeof(struct hash128));
        if (sample->has_trace)
                parquet_put_bytes(w, s->trace, sample->trace_id, sizeof sample->trace_id);
        else
                parquet_put_null(w, s->trace);
        if (sample->has_span)
                parquet_put_bytes(w, s->span, sample->span_id, sizeof sample->span_id);
        else
                parquet_put_null(w, s->span);
        put_sample_labels(s, &row->batch->label_sets[sample->label_set]);
}

enum status part_write_samples(struct storage *s, const char *key, const struct label_columns *columns,
                               const struct sample_row *rows, size_t *count, const struct part_limits *limits,
                               struct part_written *ret, struct error *err)
{
        _cleanup_(sample_writer_deinit) struct sample_writer w = { .columns = columns };
        size_t done = 0;
        enum status st = sample_writer_begin(&w, s, key, limits, err);

        for (; !st && done < *count && part_writer_has_room(&w.part); done++) {
                put_sample_row(&w, &rows[done]);
                st = part_writer_end_rows(&w.part, 1, err);
        }
        if (!st)
                st = part_writer_finish(&w.part, ret, err);
        if (!st)
                *count = done;
        return st;
}
