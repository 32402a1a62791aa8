/* SPDX-License-Identifier: Apache-2.0 */
#include "query/engine/history_type.h"

#include <string.h>

#include "common/text/utf8.h"
#include "query/engine/no_samples.h"

void history_type_deinit(struct history_type *t)
{
        type_plan_deinit(&t->plan);
}

struct type_count {
        const char *asked; /* NULL: any */
        char type[HISTORY_TYPE_SIZE];
        uint64_t samples;
        bool is_cpu;
};

static enum status count_type(void *context, const struct history_row *row, struct error *err)
{
        struct type_count *best = context;
        bool is_cpu = is_cpu_time_type(row->type);

        (void)err;
        if (best->asked && !is_matching_type(row->type, best->asked))
                return ST_OK;
        if ((is_cpu && !best->is_cpu) || (is_cpu == best->is_cpu && row->self_samples > best->samples)) {
                snprintf(best->type, sizeof best->type, "%s", row->type);
                best->samples = row->self_samples;
                best->is_cpu = is_cpu;
        }
        return ST_OK;
}

/* An id has all five parts. */
static bool is_whole_type(const char *type)
{
        size_t colons = 0;

        for (; *type; type++)
                colons += *type == ':';
        return colons == 4;
}

/* Gauges have no rows, since their sums mean nothing. */
static void note_gauge(struct query_call *q, const char *type)
{
        buf_printf(&q->note, "%sno history: values of type ", q->note.size ? "; " : "");
        utf8_append_escaped(&q->note, type);
        buf_append_str(&q->note, " are averaged, not added up; choose another one with type, or see their series");
}

static enum status choose_type_of_samples(struct query_call *q, struct history_type *t)
{
        const struct query_selection *selection = &q->r.selection;
        enum status st = type_plan_make_for_request(q->scan, &selection, 1, &q->r, &t->plan, q->err);

        if (!st)
                st = type_plan_omit_counts(&t->plan, q->err);
        if (!st && t->plan.type)
                snprintf(t->id, sizeof t->id, "%s", t->plan.type);
        return st;
}

static enum status choose_type_of_history(struct query_call *q, struct history_type *t)
{
        const struct scan_filter filter = query_selection_make_filter(&q->r.selection, NULL);
        struct type_count best = { .asked = q->r.type };
        struct history_sources sources;
        enum status st = history_visit_selection(q->scan, &filter, count_type, &best, &sources, q->err);

        memcpy(t->id, best.type, sizeof best.type);
        return st;
}

enum status history_choose_type(struct query_call *q, struct history_type *ret)
{
        struct history_type t = { .asked = q->r.type };
        bool is_exact = q->r.is_type_exact || (q->r.type && is_whole_type(q->r.type));
        enum status st = ST_OK;

        if (is_exact)
                snprintf(t.id, sizeof t.id, "%s", q->r.type);
        else
                st = choose_type_of_samples(q, &t);
        if (!st && !*t.id)
                st = choose_type_of_history(q, &t);
        if (!st && !*t.id)
                st = note_empty_selection(q, &q->r.selection);
        if (st) {
                history_type_deinit(&t);
                return st;
        }
        t.converts = !is_exact && is_cpu_time_type(t.id);
        if (t.converts)
                snprintf(t.id, sizeof t.id, "%s", CPU_TIME_TYPE);
        if (profile_type_is_gauge(t.id))
                note_gauge(q, t.id);
        else
                type_plan_put_note(&t.plan, &q->note);
        *ret = t;
        return ST_OK;
}

struct scan_filter history_type_make_filter(const struct history_type *t, const struct query_selection *s)
{
        return query_selection_make_filter(s, t->converts ? NULL : t->id);
}

static int64_t multiply_saturating(int64_t value, int64_t factor)
{
        int64_t product;

        return __builtin_mul_overflow(value, factor, &product) ? (value < 0 ? INT64_MIN : INT64_MAX) : product;
}

bool history_type_convert(const struct history_type *t, struct history_row *row)
{
        int64_t factor;

        if (!t->converts)
                return strcmp(row->type, t->id) == 0;
        if (!is_cpu_time_type(row->type) || (t->asked && !is_matching_type(row->type, t->asked)))
                return false;
        factor = profile_type_get_time_unit(row->type, TYPE_SAMPLE_UNIT);
        row->self = multiply_saturating(row->self, factor);
        row->total = multiply_saturating(row->total, factor);
        row->type = t->id;
        row->unit = "nanoseconds";
        return true;
}
