/* SPDX-License-Identifier: Apache-2.0 */
#include "query/top.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/utf8.h"
#include "query/unit_text.h"

static void update_row_line(struct top_row *row, int64_t line, int64_t value, bool leaf)
{
        if (!line || (row->line_of_leaf && !leaf))
                return;
        if (leaf > row->line_of_leaf || value > row->line_value) {
                row->line = line;
                row->line_value = value;
                row->line_of_leaf = leaf;
        }
}

/* seen: per name, the number of the last stack that contains it, plus one. */
static enum status add_selection_rows(struct top_row *rows, const struct frame_table *frames,
                                      const struct merged_profile *m, unsigned side, size_t *seen, struct error *err)
{
        const struct location_frames *l = &m->locations;
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < m->stacks->count; i++) {
                int64_t value = m->sums.items[i].value;
                bool leaf = true;

                for (size_t j = m->stacks->first[i]; !st && j < m->stacks->first[i + 1]; j++) {
                        uint32_t location = m->stacks->indexes[j];

                        st = work_meter_add(frames->meter, l->end[location] - l->first[location], err);
                        for (uint32_t k = l->end[location]; k-- > l->first[location];) { /* from the innermost */
                                uint32_t name = frames->items[l->frames[k]].name;
                                struct top_row *row = &rows[name];

                                assert(name < frames->name_count);
                                row->frame = l->frames[k];
                                update_row_line(row, l->lines[k], value, leaf);
                                if (leaf)
                                        add_wrapping(&row->flat[side], value);
                                leaf = false;
                                if (seen[name] != i + 1)
                                        add_wrapping(&row->cumulative[side], value);
                                seen[name] = i + 1;
                        }
                }
        }
        return st;
}

static int compare_top_rows(const void *x, const void *y, void *context)
{
        const struct top_row *a = x, *b = y;

        (void)context;
        if (a->flat[0] != b->flat[0])
                return a->flat[0] > b->flat[0] ? -1 : 1;
        if (a->cumulative[0] != b->cumulative[0])
                return a->cumulative[0] > b->cumulative[0] ? -1 : 1;
        return a->frame < b->frame ? -1 : a->frame > b->frame;
}

static uint64_t get_absolute_change(const int64_t v[2])
{
        return v[1] > v[0] ? (uint64_t)v[1] - (uint64_t)v[0] : (uint64_t)v[0] - (uint64_t)v[1];
}

static int compare_row_changes(const void *x, const void *y, void *context)
{
        const struct top_row *a = x, *b = y;

        (void)context;
        if (get_absolute_change(a->flat) != get_absolute_change(b->flat))
                return get_absolute_change(a->flat) > get_absolute_change(b->flat) ? -1 : 1;
        if (get_absolute_change(a->cumulative) != get_absolute_change(b->cumulative))
                return get_absolute_change(a->cumulative) > get_absolute_change(b->cumulative) ? -1 : 1;
        return a->frame < b->frame ? -1 : a->frame > b->frame;
}

enum status top_build(const struct frame_table *frames, const struct merged_profile *a, const struct merged_profile *b,
                      struct top *ret, struct error *err)
{
        size_t count = frames->name_count, kept = 0;
        struct top_row *rows = calloc(count + 1, sizeof *rows);
        _cleanup_free_ size_t *seen = calloc(count + 1, sizeof *seen);
        enum status st;

        if (!rows || !seen) {
                free(rows);
                return error_no_memory(err);
        }
        st = add_selection_rows(rows, frames, a, 0, seen, err);
        if (!st && b) {
                memset(seen, 0, (count + 1) * sizeof *seen);
                st = add_selection_rows(rows, frames, b, 1, seen, err);
        }
        for (size_t i = 0; i < count; i++) /* locations that no stack uses leave empty rows */
                if (rows[i].cumulative[0] || rows[i].cumulative[1] || rows[i].flat[0] || rows[i].flat[1])
                        rows[kept++] = rows[i];
        if (!st)
                st = work_meter_sort(frames->meter, rows, kept, sizeof *rows,
                                     b ? compare_row_changes : compare_top_rows, NULL, err);
        if (st) {
                free(rows);
                return st;
        }
        *ret = (struct top){ rows, kept };
        return ST_OK;
}

void top_deinit(struct top *t)
{
        free(t->rows);
        *t = (struct top){ 0 };
}

static size_t count_shown_rows(const struct top *t, uint64_t limit)
{
        return limit && limit < t->count ? (size_t)limit : t->count;
}

enum status top_filter(struct top *t, const struct frame_table *frames,
                       bool (*matches)(void *context, const char *text, size_t n), void *context, struct error *err)
{
        size_t kept = 0;
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < t->count; i++) {
                const struct query_frame *f = &frames->items[t->rows[i].frame];

                if (matches(context, f->function, strlen(f->function)) ||
                    matches(context, f->short_name, strlen(f->short_name)) ||
                    matches(context, f->linkage_name, strlen(f->linkage_name)))
                        t->rows[kept++] = t->rows[i];
                st = work_meter_add(frames->meter, 16, err);
        }
        t->count = kept;
        return st;
}

void top_put_rows(const struct top *t, const struct frame_table *frames, const struct top_form *form, const char *key,
                  struct json_out *j)
{
        json_out_array(j, key);
        for (size_t i = 0; i < count_shown_rows(t, form->limit) && !work_meter_add(frames->meter, 64, NULL); i++) {
                const struct top_row *r = &t->rows[i];
                const struct query_frame *f = &frames->items[r->frame];

                json_out_object(j, NULL);
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
        json_out_array_end(j);
}

static double compute_percent(int64_t v, int64_t total)
{
        return total ? 100.0 * (double)v / (double)total : 0;
}

static void put_selection_header(const struct merged_profile *m, const char *name, struct buf *ret)
{
        char from[32], to[32], total[40];

        buf_printf(ret, "%s%s in %" PRIu64 " samples, %s to %s UTC%s", name,
                   format_value(m->total, m->sums.unit, total, sizeof total), m->samples,
                   format_time_utc(m->selection->from_unix_ns, from, sizeof from),
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

static void put_diff_text(const struct top *t, const struct frame_table *frames, const struct merged_profile *a,
                          const struct merged_profile *b, const struct top_form *form, struct buf *ret)
{
        put_selection_header(a, "before: ", ret);
        put_selection_header(b, "after:  ", ret);
        utf8_append_escaped(ret, *a->sums.type ? a->sums.type : b->sums.type);
        buf_printf(ret, "\n\n%12s %7s %12s %7s %12s %8s\n", "flat before", "", "flat after", "", "change", "of share");
        for (size_t i = 0; i < count_shown_rows(t, form->limit) && !work_meter_add(frames->meter, 64, NULL); i++) {
                const struct top_row *r = &t->rows[i];
                const char *unit = *a->sums.unit ? a->sums.unit : b->sums.unit;
                double before = compute_percent(r->flat[0], a->total), after = compute_percent(r->flat[1], b->total);
                int64_t delta = (int64_t)((uint64_t)r->flat[1] - (uint64_t)r->flat[0]);
                char v[3][40];

                buf_printf(ret, "%12s %6.2f%% %12s %6.2f%% %12s %+7.2f%%", format_value(r->flat[0], unit, v[0], 40),
                           before, format_value(r->flat[1], unit, v[1], 40), after, format_value(delta, unit, v[2], 40),
                           after - before);
                put_function_place(&frames->items[r->frame], form->is_short, r->line, ret);
        }
}

void top_put_text(const struct top *t, const struct frame_table *frames, const struct merged_profile *a,
                  const struct merged_profile *b, const struct top_form *form, struct buf *ret)
{
        if (b) {
                put_diff_text(t, frames, a, b, form, ret);
                return;
        }
        put_selection_header(a, "", ret);
        if (t->count == 0)
                return;
        utf8_append_escaped(ret, a->sums.type);
        buf_printf(ret, "\n\n%12s %7s %12s %7s\n", "flat", "", "cumulative", "");
        for (size_t i = 0; i < count_shown_rows(t, form->limit) && !work_meter_add(frames->meter, 64, NULL); i++) {
                const struct top_row *r = &t->rows[i];
                char v[2][40];

                buf_printf(ret, "%12s %6.2f%% %12s %6.2f%%", format_value(r->flat[0], a->sums.unit, v[0], 40),
                           compute_percent(r->flat[0], a->total),
                           format_value(r->cumulative[0], a->sums.unit, v[1], 40),
                           compute_percent(r->cumulative[0], a->total));
                put_function_place(&frames->items[r->frame], form->is_short, r->line, ret);
        }
        if (count_shown_rows(t, form->limit) < t->count)
                buf_printf(ret, "... %zu more\n", t->count - count_shown_rows(t, form->limit));
}
