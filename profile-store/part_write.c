/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-store/part_write.h"

#include <string.h>

#include "common/file.h"
#include "common/limits.h"
#include "parquet/writer.h"
#include "profile-store/delta_log.h"

/* A part under its temporary name. */
struct part {
        const char *path;
        char *tmp;
        int fd;
        struct parquet_writer *w;
};

static enum status make_folder(const char *path, struct error *err)
{
        _cleanup_free_ char *folder = strndup(path, (size_t)(path_base(path) - path - 1));

        return folder ? file_make_dirs(folder, err) : error_no_memory(err);
}

static enum status part_begin(struct part *p, const char *path, enum table t, const struct label_columns *columns,
                              const struct parquet_sort *sort, struct error *err)
{
        struct parquet_writer_options options = PARQUET_WRITER_OPTIONS;
        _cleanup_arena_ struct arena a;
        const struct parquet_field *fields;
        size_t count;
        enum status st;

        arena_init(&a, MiB(16));
        *p = (struct part){ .path = path, .fd = -1 };
        options.sort = sort;
        options.sort_count = 1;
        st = table_fields(&a, t, columns, false, &fields, &count, err);
        if (!st)
                st = make_folder(path, err);
        if (!st)
                st = file_create_temporary(path, &p->tmp, &p->fd, err);
        if (!st)
                st = parquet_writer_create(p->fd, path, fields, count, &options, &p->w, err);
        return st;
}

static enum status part_end(struct part *p, struct part_written *ret, struct error *err)
{
        enum status st = parquet_writer_finish(p->w, err);
        _cleanup_buf_ struct buf stats;
        char *text;

        buf_init(&stats, LIMIT_DELTA_LINE_BYTES);
        if (!st)
                st = delta_stats_append(p->w, &stats);
        if (st)
                return st;
        text = strndup((const char *)stats.data, stats.size);
        if (!text)
                return error_no_memory(err);
        st = file_publish(p->fd, p->tmp, p->path, err);
        p->fd = -1;
        free(steal_ptr(p->tmp));
        if (st) {
                free(text);
                return st;
        }
        *ret = (struct part_written){ .rows = parquet_writer_rows(p->w),
                                      .bytes = parquet_writer_bytes(p->w),
                                      .stats = text };
        return ST_OK;
}

static bool part_has_room(const struct parquet_writer *w, size_t rows, uint64_t max_rows)
{
        return !rows || (rows < max_rows && !parquet_writer_is_full(w));
}

static void part_deinit(struct part *p)
{
        parquet_writer_destroy(p->w);
        if (p->fd >= 0)
                close(p->fd);
        if (p->tmp)
                unlink(p->tmp);
        free(p->tmp);
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

struct frame_nodes {
        uint32_t function, linkage_name, file, line, inlined;
};

static void put_frame(struct parquet_writer *w, const struct frame_nodes *n, const struct scan_frame *f)
{
        put_optional_str(w, n->function, f->function);
        put_optional_str(w, n->linkage_name, f->linkage_name);
        put_optional_str(w, n->file, f->file);
        put_optional_int(w, n->line, f->line);
        parquet_put_int(w, n->inlined, f->inlined);
}

enum status part_write_locations(const char *path, const struct location_row *rows, size_t *count,
                                 uint64_t max_rows, struct part_written *ret, struct error *err)
{
        static const struct parquet_sort sort = { .path = "build_id", .nulls_first = true };
        _cleanup_(part_deinit) struct part p;
        struct frame_nodes frame;
        uint32_t id, build_id, address, kind, mapping, kernel, frames, state, quality, generation;
        size_t done = 0;
        enum status st = part_begin(&p, path, TABLE_LOCATIONS, NULL, &sort, err);

        if (st)
                return st;
        id = parquet_writer_node(p.w, "location_id");
        build_id = parquet_writer_node(p.w, "build_id");
        address = parquet_writer_node(p.w, "address");
        kind = parquet_writer_node(p.w, "address_kind");
        mapping = parquet_writer_node(p.w, "mapping");
        kernel = parquet_writer_node(p.w, "is_kernel");
        frames = parquet_writer_node(p.w, "frames");
        state = parquet_writer_node(p.w, "state");
        quality = parquet_writer_node(p.w, "quality");
        generation = parquet_writer_node(p.w, "generation");
        frame = (struct frame_nodes){ parquet_writer_node(p.w, "frames.list.element.function"),
                                      parquet_writer_node(p.w, "frames.list.element.linkage_name"),
                                      parquet_writer_node(p.w, "frames.list.element.file"),
                                      parquet_writer_node(p.w, "frames.list.element.line"),
                                      parquet_writer_node(p.w, "frames.list.element.inlined") };
        for (; !st && done < *count && part_has_room(p.w, done, max_rows); done++) {
                const struct location_row *row = &rows[done];
                char hex[BUILD_ID_HEX_MAX];

                parquet_put_int(p.w, id, (int64_t)row->shown.location_id);
                put_optional_str(p.w, build_id,
                                 row->shown.build_id.size ? build_id_hex(&row->shown.build_id, hex) : "");
                if (row->kind == ADDRESS_NONE)
                        parquet_put_null(p.w, address);
                else
                        parquet_put_int(p.w, address, (int64_t)row->shown.address);
                parquet_put_str(p.w, kind, address_kind_name(row->kind));
                put_optional_str(p.w, mapping, row->shown.mapping);
                parquet_put_int(p.w, kernel, row->shown.is_kernel);
                parquet_put_list(p.w, frames, row->shown.frame_count);
                for (uint32_t k = 0; k < row->shown.frame_count; k++)
                        put_frame(p.w, &frame, &row->shown.frames[k]);
                parquet_put_str(p.w, state, row->shown.state);
                parquet_put_str(p.w, quality, symbol_quality_name(row->shown.quality));
                parquet_put_int(p.w, generation, (int64_t)row->generation);
                st = parquet_writer_end_rows(p.w, 1, err);
        }
        if (!st)
                st = part_end(&p, ret, err);
        if (!st)
                *count = done;
        return st;
}

/* ---- stacks --------------------------------------------------------------------------- */

enum status part_write_stacks(const char *path, const struct batch_stack *const *stacks, size_t *count,
                              uint64_t max_rows, struct part_written *ret, struct error *err)
{
        static const struct parquet_sort sort = { .path = "stack_id" };
        _cleanup_(part_deinit) struct part p;
        uint32_t id, list;
        size_t done = 0;
        enum status st = part_begin(&p, path, TABLE_STACKS, NULL, &sort, err);

        if (st)
                return st;
        id = parquet_writer_node(p.w, "stack_id");
        list = parquet_writer_node(p.w, "location_ids");
        for (; !st && done < *count && part_has_room(p.w, done, max_rows); done++) {
                parquet_put_bytes(p.w, id, stacks[done]->id.bytes, sizeof stacks[done]->id.bytes);
                parquet_put_int_list(p.w, list, (const int64_t *)stacks[done]->location_ids,
                                     stacks[done]->location_count);
                st = parquet_writer_end_rows(p.w, 1, err);
        }
        if (!st)
                st = part_end(&p, ret, err);
        if (!st)
                *count = done;
        return st;
}

/* ---- samples --------------------------------------------------------------------------- */

struct sample_writer {
        struct part part;
        const struct label_columns *columns;
        uint32_t *label_nodes;
        const char **label_values; /* of one row, by column */
        uint32_t time, duration, period, type, unit, value, stack, trace, span, rest, rest_key, rest_value;
};

static void sample_writer_deinit(struct sample_writer *s)
{
        part_deinit(&s->part);
        free(s->label_nodes);
        free(s->label_values);
}

static enum status sample_writer_begin(struct sample_writer *s, const char *path, struct error *err)
{
        static const struct parquet_sort sort = { .path = "profile_type" };
        size_t n = s->columns->count;
        struct parquet_writer *w;
        enum status st;

        s->part.fd = -1;
        s->label_nodes = calloc(n + 1, sizeof *s->label_nodes);
        s->label_values = calloc(n + 1, sizeof *s->label_values);
        if (!s->label_nodes || !s->label_values)
                return error_no_memory(err);
        st = part_begin(&s->part, path, TABLE_SAMPLES, s->columns, &sort, err);
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

static size_t column_of(const struct label_columns *columns, const char *name)
{
        size_t i = 0;

        while (i < columns->count && strcmp(columns->names[i], name) != 0)
                i++;
        return i;
}

static void put_labels(struct sample_writer *s, const struct batch_label_set *set)
{
        struct parquet_writer *w = s->part.w;
        uint32_t rest = 0;

        memset(s->label_values, 0, s->columns->count * sizeof *s->label_values);
        for (uint32_t i = 0; i < set->count; i++) {
                size_t column = column_of(s->columns, set->labels[i].name);

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
                if (column_of(s->columns, set->labels[i].name) < s->columns->count)
                        continue;
                parquet_put_str(w, s->rest_key, set->labels[i].name);
                parquet_put_str(w, s->rest_value, set->labels[i].value);
        }
}

static void put_sample(struct sample_writer *s, const struct sample_row *row)
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
        put_labels(s, &row->batch->label_sets[sample->label_set]);
}

enum status part_write_samples(const char *path, const struct label_columns *columns, const struct sample_row *rows,
                               size_t *count, uint64_t max_rows, struct part_written *ret, struct error *err)
{
        _cleanup_(sample_writer_deinit) struct sample_writer s = { .columns = columns };
        size_t done = 0;
        enum status st = sample_writer_begin(&s, path, err);

        for (; !st && done < *count && part_has_room(s.part.w, done, max_rows); done++) {
                put_sample(&s, &rows[done]);
                st = parquet_writer_end_rows(s.part.w, 1, err);
        }
        if (!st)
                st = part_end(&s.part, ret, err);
        if (!st)
                *count = done;
        return st;
}
