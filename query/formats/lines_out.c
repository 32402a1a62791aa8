/* SPDX-License-Identifier: Apache-2.0 */
/* The table of lines as JSON, CSV and text. */
#include <inttypes.h>

#include "common/limits.h"
#include "common/text/csv.h"
#include "common/text/utf8.h"
#include "query/engine/lines.h"
#include "query/engine/top.h"
#include "query/engine/unit_text.h"

static void put_costs_json(const struct line_table *t, const int64_t flat[2], const int64_t cumulative[2],
                           struct json_out *j)
{
        json_out_int(j, "flat", flat[0]);
        json_out_int(j, "cumulative", cumulative[0]);
        if (t->l->side_count > 1) {
                json_out_int(j, "flat_after", flat[1]);
                json_out_int(j, "cumulative_after", cumulative[1]);
        }
}

static void put_sites_json(struct line_table *t, uint32_t row, struct json_out *j)
{
        size_t i = line_table_find_first_site(t, row);

        if (i == t->site_count || t->sites[i].row != row)
                return;
        json_out_array(j, "inlined");
        for (; i < t->site_count && t->sites[i].row == row; i++) {
                const struct query_frame *f = &t->l->frames.items[t->sites[i].frame];

                json_out_object(j, NULL);
                json_out_str(j, "function", f->function);
                json_out_str(j, "file", f->file);
                put_costs_json(t, t->sites[i].flat, t->sites[i].cumulative, j);
                json_out_object_end(j);
        }
        json_out_array_end(j);
}

static void put_row_json(struct line_table *t, struct line_file *file, const struct line_row *r, void *context)
{
        const struct query_frame *f = &t->l->frames.items[r->frame];
        struct json_out *j = context;
        size_t n = 0;
        const char *text = line_file_get_row_text(file, r, &n);

        json_out_object(j, NULL);
        json_out_str(j, "function", f->function);
        json_out_str(j, "file", f->file);
        json_out_int(j, "line", r->line);
        if (file->is_aligned) {
                if (r->line_before)
                        json_out_int(j, "line_before", r->line_before);
                else
                        json_out_str(j, "line_before", NULL);
                json_out_bool(j, "is_removed", r->is_removed);
        }
        json_out_str(j, "object", f->mapping);
        put_costs_json(t, r->flat, r->cumulative, j);
        if (text)
                json_out_strn(j, "source", text, n);
        put_sites_json(t, r->number, j);
        json_out_object_end(j);
}

/* Why the source is missing, and the command that uploads it. */
static void put_missing_source_json(const struct line_table *t, const struct line_file *f, const char *object,
                                    struct json_out *j)
{
        _cleanup_buf_ struct buf command;
        bool has_file = *f->file;

        buf_init(&command, LIMIT_PATH_BYTES * 2);
        upload_command_put(&command, has_file ? UPLOAD_SOURCES : UPLOAD_DEBUGINFO, t->server, object);
        json_out_object(j, "missing");
        json_out_str(j, "reason", f->source.why.text);
        if (f->source.state == ST_BUSY)
                json_out_str(j, "next_step",
                             "repeat the query later, or upload the sources with the object; DIR is the directory that "
                             "has them");
        else if (f->source.state == ST_NOT_FOUND)
                json_out_str(j, "next_step",
                             has_file ? "upload the sources with the object; DIR is the directory that has them"
                                      : "upload debuginfo of the object");
        if (f->source.state == ST_BUSY || f->source.state == ST_NOT_FOUND)
                json_out_str(j, "command", buf_cstr(&command));
        json_out_object_end(j);
}

/* The text, and in an aligned file the text before, and the line before of each line. */
static void put_file_texts_json(const struct line_file *f, struct json_out *j)
{
        json_out_strn(j, "text", (const char *)f->source.text.data, f->source.text.size);
        if (!f->is_aligned || !f->has_base_source || f->base_source.state)
                return;
        json_out_strn(j, "base_text", (const char *)f->base_source.text.data, f->base_source.text.size);
        json_out_array(j, "lines_before");
        for (uint32_t i = 1; i <= f->alignment.after_count; i++)
                json_out_uint(j, NULL, f->alignment.before_of[i]);
        json_out_array_end(j);
}

static void put_file_json(const struct line_table *t, const struct line_file *f, struct json_out *j)
{
        const struct scan_location *l = line_table_find_location(t, f);
        char id[BUILD_ID_HEX_MAX];

        json_out_object(j, NULL);
        json_out_str(j, "file", f->file);
        json_out_str(j, "object", l->mapping);
        json_out_str(j, "build_id", build_id_hex(l->build_id, id));
        put_costs_json(t, f->flat, f->cumulative, j);
        if (f->has_text && f->source.state == ST_OK)
                put_file_texts_json(f, j);
        else if (t->form != SOURCE_NONE && f->source.state)
                put_missing_source_json(t, f, l->mapping, j);
        json_out_object_end(j);
}

static enum status put_lines_json(struct line_table *t, struct json_out *j)
{
        enum status st;

        json_out_object(j, NULL);
        loaded_sides_put_head(t->l, j);
        put_costs_json(t, t->flat, t->cumulative, j);
        json_out_array(j, "rows");
        st = line_table_visit_rows(t, put_row_json, j);
        json_out_array_end(j);
        json_out_array(j, "files");
        for (size_t i = 0; !st && i < t->file_count; i++) {
                st = work_meter_add(t->q->meter, 64, t->q->err);
                put_file_json(t, &t->files[i], j);
        }
        json_out_array_end(j);
        json_out_object_end(j);
        return st;
}

/* ---- CSV ---- */

static void put_row_csv(struct line_table *t, struct line_file *file, const struct line_row *r, void *context)
{
        const struct query_frame *f = &t->l->frames.items[r->frame];
        struct buf *ret = context;
        char line[LIMIT_SHOWN_LINE_BYTES + 1] = "";
        size_t n = 0;
        const char *text = line_file_get_row_text(file, r, &n);

        if (text)
                snprintf(line, sizeof line, "%.*s", (int)n, text);
        csv_put_text(ret, f->function, ',');
        csv_put_text(ret, f->file, ',');
        if (!r->is_removed)
                buf_printf(ret, "%" PRId64, r->line);
        buf_append_str(ret, ",");
        csv_put_text(ret, f->mapping, ',');
        for (unsigned side = 0; side < t->l->side_count; side++)
                buf_printf(ret, "%" PRId64 ",%" PRId64 ",", r->flat[side], r->cumulative[side]);
        if (t->l->side_count > 1) {
                if (!file->is_aligned || r->line_before)
                        buf_printf(ret, "%" PRId64, file->is_aligned ? r->line_before : r->line);
                buf_append_str(ret, ",");
        }
        csv_put_text(ret, line, '\r');
        buf_append_u8(ret, '\n');
}

/* ---- text ---- */

static void put_costs_text(const struct line_table *t, const int64_t flat[2], const int64_t cumulative[2],
                           struct buf *ret)
{
        const char *unit = t->l->sides[0].unit;
        char v[2][40];

        if (t->l->side_count > 1) {
                loaded_sides_put_change(t->l, flat, ret);
                buf_append_u8(ret, ' ');
                loaded_sides_put_change(t->l, cumulative, ret);
        } else {
                buf_printf(ret, "%12s %12s", format_value(*flat, unit, v[0], 40),
                           format_value(*cumulative, unit, v[1], 40));
        }
}

static void put_file_heading(const struct line_table *t, const struct line_file *f, struct buf *ret)
{
        buf_append_str(ret, "\n");
        utf8_append_escaped(ret, *f->file ? f->file : "(unknown file)");
        if (t->l->side_count > 1)
                buf_printf(ret, "\n%46s %46s\n%11s %11s %11s %10s %11s %11s %11s %10s  %6s%s\n", "flat", "cumulative",
                           "before", "after", "change", "of share", "before", "after", "change", "of share",
                           f->is_aligned ? "before" : "line", f->is_aligned ? "   line" : "");
        else
                buf_printf(ret, "\n%12s %12s  %6s\n", "flat", "cumulative", "line");
}

static void put_sites_text(struct line_table *t, uint32_t row, struct buf *ret)
{
        for (size_t i = line_table_find_first_site(t, row); i < t->site_count && t->sites[i].row == row; i++) {
                put_costs_text(t, t->sites[i].flat, t->sites[i].cumulative, ret);
                buf_append_str(ret, "          inlined ");
                utf8_append_escaped(ret, t->l->frames.items[t->sites[i].frame].function);
                buf_append_u8(ret, '\n');
        }
}

/* Of an aligned file the lines before and after, "-" for none. */
static void put_line_numbers(const struct line_file *file, const struct line_row *r, struct buf *ret)
{
        if (!file->is_aligned)
                buf_printf(ret, "  %6" PRId64 "  ", r->line);
        else if (r->is_removed)
                buf_printf(ret, "  %6" PRId64 " %6s  ", r->line_before, "-");
        else if (r->line_before)
                buf_printf(ret, "  %6" PRId64 " %6" PRId64 "  ", r->line_before, r->line);
        else
                buf_printf(ret, "  %6s %6" PRId64 "  ", "-", r->line);
}

static void put_row_text(struct line_table *t, struct line_file *file, const struct line_row *r, void *context)
{
        const struct query_frame *f = &t->l->frames.items[r->frame];
        struct buf *ret = context;
        size_t n = 0;
        const char *text = line_file_get_row_text(file, r, &n);

        if (r == &t->rows[file->first])
                put_file_heading(t, file, ret);
        put_costs_text(t, r->flat, r->cumulative, ret);
        put_line_numbers(file, r, ret);
        if (text)
                utf8_append_source_line(ret, text, n);
        else
                utf8_append_escaped(ret, f->function);
        buf_append_u8(ret, '\n');
        put_sites_text(t, r->number, ret);
}

/* Text answers show the function instead of a missing line; the note has the reason. */
static void note_missing_source(struct line_table *t)
{
        const struct line_file *f = t->file_count ? &t->files[0] : NULL;
        struct buf *note = &t->q->note;

        if (!f || !t->q->sources || !f->has_text || f->source.state == ST_OK)
                return;
        buf_printf(note, "%sno text of '", note->size ? "; " : "");
        utf8_append_escaped(note, f->file);
        buf_printf(note, "': %s", f->source.why.text);
        if (f->source.state != ST_NOT_FOUND)
                return;
        buf_append_str(note, "; upload it: ");
        upload_command_put(note, *f->file ? UPLOAD_SOURCES : UPLOAD_DEBUGINFO, t->server,
                           line_table_find_location(t, f)->mapping);
}

enum status line_table_put_answer(struct line_table *t)
{
        struct query_call *q = t->q;
        bool is_diff = t->l->side_count > 1;
        struct json_out j;
        enum status st = ST_OK;

        q->content_type = query_call_content_type(q);
        switch (q->r.format) {
        case FORMAT_TEXT:
                note_missing_source(t);
                if (is_diff)
                        top_put_text_header(&t->l->sides[0], &t->l->sides[1], q->ret);
                st = line_table_visit_rows(t, put_row_text, q->ret);
                break;
        case FORMAT_CSV:
                buf_printf(q->ret, "function,file,line,object,flat,cumulative,%ssource\r\n",
                           is_diff ? "flat_after,cumulative_after,line_before," : "");
                st = line_table_visit_rows(t, put_row_csv, q->ret);
                break;
        default:
                json_out_init(&j, q->ret);
                st = put_lines_json(t, &j);
                break;
        }
        return st ? st : buf_status(q->ret, q->err, "lines");
}
