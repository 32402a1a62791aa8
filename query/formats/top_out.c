/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of a top table as JSON, text and CSV. */
#include <inttypes.h>
#include <string.h>

#include "common/text/csv.h"
#include "common/text/utf8.h"
#include "common/threads/work_threads.h"
#include "query/engine/top.h"
#include "query/engine/unit_text.h"

static size_t count_shown_rows(const struct top *t, uint64_t limit)
{
        return limit && limit < t->count ? (size_t)limit : t->count;
}

#define ROWS_OF_PIECE 1024
#define PIECES 64 /* written before they are appended to the answer; bounds the memory */

/* Rows as JSON, in pieces written by several threads. */
struct row_pieces {
        const struct top *top;
        const struct frame_table *frames;
        const struct top_form *form;
        const struct label_groups *groups; /* NULL: without the group's labels */
        const struct label_group *group;
        size_t first; /* row of the first piece */
        struct work_ranges ranges;
        struct buf texts[PIECES];
};

static void put_top_row(const struct row_pieces *p, const struct top_row *r, struct json_out *j)
{
        const struct query_frame *f = &p->frames->items[r->frame];
        const struct top_form *form = p->form;

        json_out_object(j, NULL);
        if (p->groups && p->group)
                label_group_put_json(p->groups, p->group, "labels", j);
        json_out_str(j, "function", query_frame_name(f, form->is_short));
        if (!form->is_short && f->short_name != f->function)
                json_out_str(j, "short_name", f->short_name);
        json_out_str(j, "file", f->file);
        json_out_int(j, "line", r->line);
        json_out_str(j, "object", f->mapping);
        json_out_str(j, "kind", frame_kind_name(f->kind));
        json_out_int(j, "flat", r->flat[0]);
        json_out_int(j, "cumulative", r->cumulative[0]);
        if (form->diff) {
                json_out_int(j, "flat_after", r->flat[1]);
                json_out_int(j, "cumulative_after", r->cumulative[1]);
        }
        json_out_object_end(j);
}

static enum status write_row_pieces(void *context, struct work_thread *t, struct error *err)
{
        struct row_pieces *p = context;
        size_t i, end;
        enum status st = ST_OK;

        while (!st && take_work_range(&p->ranges, &i, &end)) {
                struct buf *text = &p->texts[i / ROWS_OF_PIECE];
                struct json_out j;

                buf_clear(text);
                json_out_init(&j, text);
                for (; !st && i < end; i++) {
                        put_top_row(p, &p->top->rows[p->first + i], &j);
                        st = work_meter_add(&t->meter, 64, err);
                }
                if (!st)
                        st = buf_status(text, err, "the answer");
        }
        return st;
}

/* Write rows from p->first on. @return false: the meter ended the query, or the answer failed. */
static bool put_row_pieces(struct row_pieces *p, size_t rows, struct json_out *j)
{
        size_t count = (rows + ROWS_OF_PIECE - 1) / ROWS_OF_PIECE;
        struct work_meter *meter = p->frames->meter;
        enum status st;

        p->ranges = (struct work_ranges){ .count = rows, .step = ROWS_OF_PIECE };
        st = share_work(meter, count, write_row_pieces, p, NULL);
        if (st && !(meter && meter->failed) && !j->buf->failed)
                j->buf->failed = st;
        for (size_t i = 0; !st && i < count; i++)
                json_out_values(j, p->texts[i].data, p->texts[i].size);
        return !st && !j->buf->failed;
}

void top_put_rows(const struct top *t, const struct frame_table *frames, const struct top_form *form,
                  const struct label_groups *groups, const struct label_group *group, struct json_out *j)
{
        struct row_pieces p = { .top = t, .frames = frames, .form = form, .groups = groups, .group = group };
        size_t shown = count_shown_rows(t, form->limit);

        for (size_t i = 0; i < PIECES; i++) {
                buf_init_budget(&p.texts[i], j->buf->max, j->buf->memory.use);
                p.texts[i].memory.group = j->buf->memory.group;
        }
        for (size_t rows; p.first < shown; p.first += rows) {
                rows = shown - p.first < PIECES * ROWS_OF_PIECE ? shown - p.first : PIECES * ROWS_OF_PIECE;
                if (!put_row_pieces(&p, rows, j))
                        break;
        }
        for (size_t i = 0; i < PIECES; i++)
                buf_deinit(&p.texts[i]);
}

static void put_selection_header(const struct merged_profile *m, const char *name, struct buf *ret)
{
        char from[32], to[32];

        buf_append_str(ret, name);
        merged_profile_put_total(m, ret);
        buf_printf(ret, ", %s to %s UTC%s", format_time_utc(m->selection->from_unix_ns, from, sizeof from),
                   format_time_utc(m->selection->to_unix_ns, to, sizeof to), *m->selection->text ? ", " : "");
        utf8_append_escaped(ret, m->selection->text);
        buf_append_u8(ret, '\n');
}

static void put_function_place(const struct query_frame *f, bool is_short, int64_t line, struct buf *ret)
{
        buf_append_str(ret, "  ");
        utf8_append_escaped(ret, query_frame_name(f, is_short));
        if (*f->file) {
                buf_append_str(ret, "  ");
                utf8_append_escaped(ret, f->file);
        }
        if (*f->file && line)
                buf_printf(ret, ":%" PRId64, line);
        buf_append_u8(ret, '\n');
}

void top_put_text_header(const struct merged_profile *a, const struct merged_profile *b, struct buf *ret)
{
        put_selection_header(a, b ? "before: " : "", ret);
        if (b)
                put_selection_header(b, "after:  ", ret);
        if (b || a->count) {
                utf8_append_escaped(ret, *a->type || !b ? a->type : b->type);
                buf_append_u8(ret, '\n');
        }
}

static void put_side_values(const int64_t values[2], const char *unit, struct buf *ret)
{
        char v[3][40];

        buf_printf(ret, "%12s %12s %12s", format_value(values[0], unit, v[0], 40),
                   format_value(values[1], unit, v[1], 40), format_change(values, unit, v[2], 40));
}

static void put_side_shares(const int64_t values[2], const int64_t totals[2], struct buf *ret)
{
        char change[40];

        buf_printf(ret, "%7.2f%% %7.2f%% %10s", compute_percent(values[0], totals[0]),
                   compute_percent(values[1], totals[1]), format_share_change(values, totals, change, sizeof change));
}

static void put_diff_text(const struct top *t, const struct frame_table *frames, const char *unit,
                          const int64_t totals[2], const struct top_form *form, struct buf *ret)
{
        if (form->by_value)
                buf_printf(ret, "\n%38s %38s\n%12s %12s %12s %12s %12s %12s\n", "flat", "cumulative", "before", "after",
                           "change", "before", "after", "change");
        else
                buf_printf(ret, "\n%28s %28s\n%8s %8s %10s %8s %8s %10s\n", "flat", "cumulative", "before", "after",
                           "change", "before", "after", "change");
        for (size_t i = 0; i < count_shown_rows(t, form->limit) && !work_meter_add(frames->meter, 64, NULL); i++) {
                const struct top_row *r = &t->rows[i];

                if (form->by_value) {
                        put_side_values(r->flat, unit, ret);
                        buf_append_u8(ret, ' ');
                        put_side_values(r->cumulative, unit, ret);
                } else {
                        put_side_shares(r->flat, totals, ret);
                        buf_append_u8(ret, ' ');
                        put_side_shares(r->cumulative, totals, ret);
                }
                put_function_place(&frames->items[r->frame], form->is_short, r->line, ret);
        }
}

static void put_cost_text(const struct top *t, const struct frame_table *frames, const char *unit, int64_t total,
                          const struct top_form *form, struct buf *ret)
{
        buf_printf(ret, "\n%12s %7s %12s %7s\n", "flat", "", "cumulative", "");
        for (size_t i = 0; i < count_shown_rows(t, form->limit) && !work_meter_add(frames->meter, 64, NULL); i++) {
                const struct top_row *r = &t->rows[i];
                char v[2][40];

                buf_printf(ret, "%12s %6.2f%% %12s %6.2f%%", format_value(r->flat[0], unit, v[0], 40),
                           compute_percent(r->flat[0], total), format_value(r->cumulative[0], unit, v[1], 40),
                           compute_percent(r->cumulative[0], total));
                put_function_place(&frames->items[r->frame], form->is_short, r->line, ret);
        }
}

void top_put_text(const struct top *t, const struct frame_table *frames, const char *unit, const int64_t totals[2],
                  const struct top_form *form, struct buf *ret)
{
        if (t->count == 0)
                return;
        if (form->diff)
                put_diff_text(t, frames, unit, totals, form, ret);
        else
                put_cost_text(t, frames, unit, totals[0], form, ret);
        if (count_shown_rows(t, form->limit) < t->count)
                buf_printf(ret, "... %zu more\n", t->count - count_shown_rows(t, form->limit));
}

/* ---- CSV ---- */

void top_put_csv_header(const struct label_groups *groups, const struct top_form *form, struct buf *ret)
{
        for (size_t i = 0; i < groups->labels->count; i++)
                csv_put_text(ret, groups->labels->names[i], ',');
        buf_append_str(ret, "function,file,line,object,kind,flat,cumulative");
        buf_append_str(ret, form->diff ? ",flat_after,cumulative_after\r\n" : "\r\n");
}

void top_put_csv(const struct top *t, const struct frame_table *frames, const struct top_form *form,
                 const struct label_groups *groups, const struct label_group *group, struct buf *ret)
{
        for (size_t i = 0; i < count_shown_rows(t, form->limit) && !work_meter_add(frames->meter, 64, NULL); i++) {
                const struct top_row *r = &t->rows[i];
                const struct query_frame *f = &frames->items[r->frame];

                label_group_put_csv(groups, group, ret);
                csv_put_text(ret, query_frame_name(f, form->is_short), ',');
                csv_put_text(ret, f->file, ',');
                buf_printf(ret, "%" PRId64 ",", r->line);
                csv_put_text(ret, f->mapping, ',');
                buf_printf(ret, "%s,%" PRId64 ",%" PRId64, frame_kind_name(f->kind), r->flat[0], r->cumulative[0]);
                if (form->diff)
                        buf_printf(ret, ",%" PRId64 ",%" PRId64, r->flat[1], r->cumulative[1]);
                buf_append_str(ret, "\r\n");
        }
}
