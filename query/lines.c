/* SPDX-License-Identifier: Apache-2.0 */
/* The operation "lines": what each line of functions or files costs, with its text where a source file is stored. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/limits.h"
#include "common/utf8.h"
#include "query/csv.h"
#include "query/unit_text.h"
#include "query/views.h"

#define LIMIT_SHOWN_SOURCE_BYTES MiB(16) /* of one file */
#define LIMIT_SHOWN_LINE_BYTES 400

struct line_row {
        uint32_t frame;    /* one with that function and file */
        uint32_t location; /* one with that frame; tells the object */
        int64_t line;      /* 0 unknown */
        int64_t flat, cumulative;
        size_t seen; /* number of the last entry that passed it, plus one */
};

struct line_table {
        struct query_call *q;
        struct loaded_sides *l;
        struct function_targets targets;
        struct number_map numbers; /* of rows by name and line */
        struct line_row *rows;     /* owned */
        size_t count, capacity;
        struct buf source; /* the file at hand */
        bool has_source;
        const struct line_row *source_row; /* whose file it is; NULL: none was asked for yet */
        size_t source_at;                  /* start of line source_line */
        int64_t source_line;
};

static void line_table_deinit(struct line_table *t)
{
        function_targets_deinit(&t->targets);
        number_map_deinit(&t->numbers);
        free(t->rows);
        buf_deinit(&t->source);
}

/* ---- sums ---- */

static enum status find_or_add_line(struct line_table *t, uint32_t frame, uint32_t location, int64_t line,
                                    struct line_row **ret)
{
        const struct number_key key = { { t->l->frames.items[frame].name, (uint32_t)line,
                                          (uint32_t)((uint64_t)line >> 32) } };
        uint32_t number;
        bool fresh = false;
        enum status st = number_map_get(&t->numbers, &key, &number, &fresh, t->q->err);

        if (st)
                return st;
        if (fresh) {
                if (!array_reserve(&t->rows, &t->capacity, t->count))
                        return error_no_memory(t->q->err);
                t->rows[t->count++] = (struct line_row){ .frame = frame, .location = location, .line = line };
        }
        *ret = &t->rows[number];
        return ST_OK;
}

static enum status add_entry_lines(struct line_table *t, const struct merged_profile *m, size_t entry)
{
        const struct merged_entry *e = &m->entries[entry];
        const struct location_frames *l = &m->locations;
        bool leaf = true;
        enum status st = ST_OK;

        for (size_t j = m->stacks->first[e->stack]; !st && j < m->stacks->first[e->stack + 1]; j++) {
                uint32_t location = m->stacks->indexes[j];

                st = work_meter_add(t->q->meter, 1 + (uint64_t)(l->end[location] - l->first[location]), t->q->err);
                for (uint32_t k = l->end[location]; !st && k-- > l->first[location]; leaf = false) {
                        struct line_row *row = NULL;

                        if (!t->targets.is_target[l->frames[k]])
                                continue;
                        st = find_or_add_line(t, l->frames[k], location, l->lines[k], &row);
                        if (st)
                                break;
                        if (leaf)
                                add_wrapping(&row->flat, e->value);
                        if (row->seen != entry + 1)
                                add_wrapping(&row->cumulative, e->value);
                        row->seen = entry + 1;
                }
        }
        return st;
}

static int compare_line_costs(const void *x, const void *y, void *context)
{
        const struct line_row *a = x, *b = y;

        (void)context;
        if (a->flat != b->flat)
                return a->flat > b->flat ? -1 : 1;
        if (a->cumulative != b->cumulative)
                return a->cumulative > b->cumulative ? -1 : 1;
        return a->frame < b->frame ? -1 : a->frame > b->frame ? 1 : a->line < b->line ? -1 : a->line > b->line;
}

static int compare_line_places(const void *x, const void *y, void *context)
{
        const struct query_frame *frames = context;
        const struct line_row *a = x, *b = y;
        int c = strcmp(frames[a->frame].file, frames[b->frame].file);

        if (!c)
                c = a->line < b->line ? -1 : a->line > b->line;
        return c ? c : strcmp(frames[a->frame].function, frames[b->frame].function);
}

/* The lines that cost most, by file and line. */
static enum status sort_lines(struct line_table *t, uint64_t limit)
{
        enum status st =
                work_meter_sort(t->q->meter, t->rows, t->count, sizeof *t->rows, compare_line_costs, NULL, t->q->err);

        if (limit && limit < t->count)
                t->count = (size_t)limit;
        return st ? st
                  : work_meter_sort(t->q->meter, t->rows, t->count, sizeof *t->rows, compare_line_places,
                                    t->l->frames.items, t->q->err);
}

/* ---- source ---- */

static const struct build_id *get_row_build_id(const struct line_table *t, const struct line_row *row)
{
        return &t->l->sides[0].stacks->locations[row->location].build_id;
}

/* Load the file of a row, unless it is the one at hand. A file that is missing or too long is none. */
static void load_source(struct line_table *t, const struct line_row *row)
{
        const char *file = t->l->frames.items[row->frame].file;
        const struct build_id *id = get_row_build_id(t, row);

        if (t->source_row && strcmp(file, t->l->frames.items[t->source_row->frame].file) == 0 &&
            build_id_equal(id, get_row_build_id(t, t->source_row)))
                return;
        t->source_row = row;
        t->source_at = 0;
        t->source_line = 1;
        buf_clear(&t->source);
        t->has_source = t->q->sources && *file && id->size &&
                        t->q->sources->read(t->q->sources->context, id, file, &t->source, NULL) == ST_OK;
}

/* The text of a row's line, NULL when it is not stored; borrowed until the next call. */
static const char *get_line_text(struct line_table *t, const struct line_row *row, size_t *n_ret)
{
        const char *text, *end;

        load_source(t, row);
        if (!t->has_source || row->line <= 0)
                return NULL;
        if (row->line < t->source_line) {
                t->source_at = 0;
                t->source_line = 1;
        }
        for (; t->source_line < row->line; t->source_line++) {
                text = (const char *)t->source.data + t->source_at;
                end = memchr(text, '\n', t->source.size - t->source_at);
                if (!end)
                        return NULL;
                t->source_at += (size_t)(end - text) + 1;
        }
        if (t->source_at == t->source.size)
                return NULL;
        text = (const char *)t->source.data + t->source_at;
        end = memchr(text, '\n', t->source.size - t->source_at);
        *n_ret = end ? (size_t)(end - text) : t->source.size - t->source_at;
        if (*n_ret && text[*n_ret - 1] == '\r')
                --*n_ret;
        if (*n_ret > LIMIT_SHOWN_LINE_BYTES)
                *n_ret = LIMIT_SHOWN_LINE_BYTES;
        return text;
}

/* ---- answers ---- */

static void put_lines_json(struct line_table *t, struct json_out *j)
{
        bool is_short = t->q->r.names == NAMES_SHORT;

        json_out_object(j, NULL);
        loaded_sides_put_head(t->l, j);
        json_out_array(j, "rows");
        for (size_t i = 0; i < t->count && !work_meter_add(t->q->meter, 64, NULL); i++) {
                const struct line_row *r = &t->rows[i];
                const struct query_frame *f = &t->l->frames.items[r->frame];
                size_t n = 0;
                const char *text = get_line_text(t, r, &n);

                json_out_object(j, NULL);
                json_out_str(j, "function", query_frame_name(f, is_short));
                json_out_str(j, "file", f->file);
                json_out_int(j, "line", r->line);
                json_out_str(j, "object", f->mapping);
                json_out_int(j, "flat", r->flat);
                json_out_int(j, "cumulative", r->cumulative);
                if (text)
                        json_out_strn(j, "source", text, n);
                json_out_object_end(j);
        }
        json_out_array_end(j);
        json_out_object_end(j);
}

static void put_lines_csv(struct line_table *t, struct buf *ret)
{
        bool is_short = t->q->r.names == NAMES_SHORT;

        buf_append_str(ret, "function,file,line,object,flat,cumulative,source\r\n");
        for (size_t i = 0; i < t->count && !work_meter_add(t->q->meter, 64, NULL); i++) {
                const struct line_row *r = &t->rows[i];
                const struct query_frame *f = &t->l->frames.items[r->frame];
                char line[LIMIT_SHOWN_LINE_BYTES + 1] = "";
                size_t n = 0;
                const char *text = get_line_text(t, r, &n);

                if (text)
                        snprintf(line, sizeof line, "%.*s", (int)n, text);
                csv_put_text(ret, query_frame_name(f, is_short), ',');
                csv_put_text(ret, f->file, ',');
                buf_printf(ret, "%" PRId64 ",", r->line);
                csv_put_text(ret, f->mapping, ',');
                buf_printf(ret, "%" PRId64 ",%" PRId64 ",", r->flat, r->cumulative);
                csv_put_text(ret, line, '\r');
                buf_append_u8(ret, '\n');
        }
}

static void put_lines_text(struct line_table *t, struct buf *ret)
{
        const struct merged_profile *m = &t->l->sides[0];
        const char *last_file = NULL;

        for (size_t i = 0; i < t->count && !work_meter_add(t->q->meter, 64, NULL); i++) {
                const struct line_row *r = &t->rows[i];
                const struct query_frame *f = &t->l->frames.items[r->frame];
                size_t n = 0;
                const char *text = get_line_text(t, r, &n);
                char v[2][40];

                if (!last_file || strcmp(last_file, f->file) != 0) {
                        buf_append_str(ret, "\n");
                        utf8_append_escaped(ret, *f->file ? f->file : "(unknown file)");
                        buf_printf(ret, "\n%12s %12s  %6s\n", "flat", "cumulative", "line");
                        last_file = f->file;
                }
                buf_printf(ret, "%12s %12s  %6" PRId64 "  ", format_value(r->flat, m->unit, v[0], 40),
                           format_value(r->cumulative, m->unit, v[1], 40), r->line);
                if (text)
                        utf8_append_escaped_n(ret, text, n);
                else
                        utf8_append_escaped(ret, query_frame_name(f, t->q->r.names == NAMES_SHORT));
                buf_append_u8(ret, '\n');
        }
}

static enum status put_lines_answer(struct line_table *t)
{
        struct query_call *q = t->q;
        struct json_out j;

        q->content_type = query_call_content_type(q);
        switch (q->r.format) {
        case FORMAT_TEXT:
                put_lines_text(t, q->ret);
                break;
        case FORMAT_CSV:
                put_lines_csv(t, q->ret);
                break;
        case FORMAT_JSON:
                json_out_init(&j, q->ret);
                put_lines_json(t, &j);
                break;
        default:
                return error_set(q->err, ST_USAGE, "the formats of lines are json, text and csv");
        }
        return buf_status(q->ret, q->err, "lines");
}

enum status query_answer_lines(struct query_call *q)
{
        const char *function = query_param_get(&q->params, "", "function"),
                   *file = query_param_get(&q->params, "", "file");
        _cleanup_loaded_sides_ struct loaded_sides l = { 0 };
        _cleanup_(line_table_deinit) struct line_table t = { .q = q, .l = &l };
        enum status st;

        buf_init_budget(&t.source, LIMIT_SHOWN_SOURCE_BYTES, MEMORY_QUERIES);
        if (!function && !file)
                return error_set(q->err, ST_USAGE,
                                 "lines needs function, a regular expression for the whole name, or file, one for a "
                                 "part of the path");
        if (q->r.by.count)
                return error_set(q->err, ST_USAGE, "by is not a parameter of lines; narrow the selector");
        st = loaded_sides_load(q, NULL, &l);
        if (!st)
                st = function_targets_find(q, &l.frames, function, false, file, &t.targets);
        for (size_t i = 0; !st && i < l.sides[0].count; i++)
                st = add_entry_lines(&t, &l.sides[0], i);
        if (!st)
                st = sort_lines(&t, q->r.limit);
        return st ? st : put_lines_answer(&t);
}
