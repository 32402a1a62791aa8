/* SPDX-License-Identifier: Apache-2.0 */
/* The operation "spans": the spans or traces with the greatest cost, of samples that have their ids. */
#include <inttypes.h>
#include <stdlib.h>

#include "common/json/json_out.h"
#include "common/memory/array.h"
#include "common/text/csv.h"
#include "common/text/number_text.h"
#include "common/text/utf8.h"
#include "profile-formats/profile_type.h"
#include "query/engine/no_samples.h"
#include "query/engine/query_call.h"
#include "query/engine/type_plan.h"
#include "query/engine/unit_text.h"

static const struct label_list default_ids = { .names = { "trace_id", "span_id" }, .count = 2 };

/* Labels shown with a span. */
static const char *const detail_names[] = { "service_name", "span_name" };
#define SPAN_DETAILS (sizeof detail_names / sizeof *detail_names)

/* The details of a span, taken from its group of samples with the greatest value. */
struct span_detail {
        const char *values[SPAN_DETAILS]; /* "" unknown; borrowed from the scan */
        int64_t value;                    /* of the samples with these details */
};

struct span_list {
        struct query_call *q; /* borrowed */
        struct type_plan plan;
        struct label_groups spans;
        struct span_detail *details; /* by span; owned */
        size_t detail_capacity;
        uint32_t *order;                  /* spans by falling cost; owned */
        struct memory_reservation memory; /* of details and order */
        int64_t total, total_with_id;
        struct counted_samples samples, samples_with_id;
        value_magnitude magnitude;
        char unit[32];
};

static void span_list_deinit(struct span_list *l)
{
        type_plan_deinit(&l->plan);
        label_groups_deinit(&l->spans);
        free(l->details);
        free(l->order);
        memory_release(&l->memory);
}
#define _cleanup_span_list_ _cleanup_(span_list_deinit)

/* ---- sums ---- */

static bool has_any_id(const struct span_list *l, const struct scan_group_label *labels)
{
        for (size_t i = 0; i < l->spans.labels->count; i++)
                if (*labels[i].value)
                        return true;
        return false;
}

static enum status add_span_value(struct span_list *l, const struct scan_group_label *labels, int64_t value,
                                  struct counted_samples samples, struct error *err)
{
        const struct scan_group_label *details = labels + l->spans.labels->count;
        uint32_t before = l->spans.count, span;
        struct span_detail *detail;
        enum status st = label_groups_find_or_add(&l->spans, labels, &span, err);

        if (!st)
                st = array_charge_growth(&l->memory, l->detail_capacity, span, sizeof *l->details + sizeof *l->order,
                                         err);
        if (st)
                return st;
        if (!array_reserve(&l->details, &l->detail_capacity, span))
                return error_no_memory(err);
        detail = &l->details[span];
        if (span == before || value > detail->value) {
                for (size_t i = 0; i < SPAN_DETAILS; i++)
                        detail->values[i] = details[i].value;
                detail->value = value;
        }
        label_groups_add_value(&l->spans, span, 0, value, samples);
        add_saturating(&l->total_with_id, value);
        sample_count_add(&l->samples_with_id, samples);
        return ST_OK;
}

static enum status add_group_sums(struct span_list *l, const struct scan_group_sums *sums, struct error *err)
{
        _cleanup_free_ struct sample_count_rule *rules = scan_group_sums_list_count_rules(sums);
        struct scan_series_set with_time = { 0 };
        enum status st = rules ? scan_series_set_build(sums, is_cpu_time_type, &with_time, err) : error_no_memory(err);

        for (size_t i = 0; !st && i < sums->count; i++) {
                const struct scan_group_sum *sum = &sums->items[i];
                const struct scan_group *g = &sums->groups[sum->group];
                int64_t value = sum->value;
                struct counted_samples samples;

                if (!type_plan_convert(&l->plan, g, &with_time, &value))
                        continue;
                samples = compute_sample_count(&rules[sum->group], sum->value, sum->samples);
                add_magnitude(&l->magnitude, value);
                add_saturating(&l->total, value);
                sample_count_add(&l->samples, samples);
                if (has_any_id(l, g->labels))
                        st = add_span_value(l, g->labels, value, samples, err);
        }
        free(with_time.items);
        return st;
}

static enum status sum_spans(struct span_list *l, struct error *err)
{
        const struct scan_filter filter = query_selection_make_filter(&l->q->r.selection, NULL);
        const char *labels[LIMIT_GROUP_LABELS + SPAN_DETAILS];
        struct scan_group_by by = { .types = l->plan.types,
                                    .type_count = l->plan.type_count,
                                    .labels = labels,
                                    .series = l->plan.by_series,
                                    .totals = true };
        struct scan_group_sums sums = { 0 };
        enum status st;

        for (size_t i = 0; i < l->spans.labels->count; i++)
                labels[by.label_count++] = l->spans.labels->names[i];
        for (size_t i = 0; i < SPAN_DETAILS; i++)
                labels[by.label_count++] = detail_names[i];
        st = store_scan_sum_groups(l->q->scan, &filter, &by, &sums, err);
        if (!st)
                st = add_group_sums(l, &sums, err);
        scan_group_sums_deinit(&sums);
        return st;
}

/* Ties keep the order of the scan's groups, which are sorted by their labels. */
static int compare_span_costs(const void *x, const void *y, void *context)
{
        const struct label_group *spans = context;
        uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;

        if (spans[a].total[0] != spans[b].total[0])
                return spans[a].total[0] > spans[b].total[0] ? -1 : 1;
        return a < b ? -1 : a > b;
}

static enum status rank_spans(struct span_list *l, struct error *err)
{
        l->order = calloc(l->spans.count + (size_t)1, sizeof *l->order);
        if (!l->order)
                return error_no_memory(err);
        for (uint32_t i = 0; i < l->spans.count; i++)
                l->order[i] = i;
        return work_meter_sort(l->q->meter, l->order, l->spans.count, sizeof *l->order, compare_span_costs,
                               l->spans.items, err);
}

static enum status load_spans(struct span_list *l)
{
        struct query_call *q = l->q;
        const struct query_selection *selection = &q->r.selection;
        enum status st = type_plan_make_for_request(q->scan, &selection, 1, &q->r, &l->plan, q->err);

        if (!st && l->plan.type_count)
                st = sum_spans(l, q->err);
        if (!st)
                st = rank_spans(l, q->err);
        type_plan_copy_unit(&l->plan, l->unit, sizeof l->unit);
        return st;
}

/* ---- answers ---- */

static uint32_t count_shown_spans(const struct span_list *l)
{
        uint64_t limit = l->q->r.format == FORMAT_TEXT ? query_call_text_limit(l->q) : l->q->r.limit;

        return limit && limit < l->spans.count ? (uint32_t)limit : l->spans.count;
}

static void put_spans_text(const struct span_list *l, struct buf *ret)
{
        uint32_t shown = count_shown_spans(l);
        char value[40], total[40];

        buf_printf(ret, "%s of %s, %" PRIu64 " of %" PRIu64 " %s have ids, of %s\n",
                   format_value(l->total_with_id, l->unit, value, sizeof value),
                   format_value(l->total, l->unit, total, sizeof total), sample_count_round(l->samples_with_id),
                   sample_count_round(l->samples), l->samples.are_stacks ? "stacks" : "samples",
                   COUNTED(l->spans.count, "span", "spans"));
        if (!shown)
                return;
        buf_printf(ret, "\n%12s %7s %9s\n", "value", "", l->samples.are_stacks ? "stacks" : "samples");
        for (uint32_t i = 0; i < shown && !work_meter_add(l->q->meter, 64, NULL); i++) {
                const struct label_group *span = &l->spans.items[l->order[i]];
                const struct span_detail *detail = &l->details[l->order[i]];
                double percent = l->total ? 100.0 * (double)span->total[0] / (double)l->total : 0;

                buf_printf(ret, "%12s %6.2f%% %9" PRIu64 "  ",
                           format_value(span->total[0], l->unit, value, sizeof value), percent,
                           sample_count_round(span->samples[0]));
                label_group_put_text(&l->spans, span, ret);
                for (size_t k = 0; k < SPAN_DETAILS; k++) {
                        buf_append_str(ret, *detail->values[k] ? "  " : "");
                        utf8_append_escaped(ret, detail->values[k]);
                }
                buf_append_u8(ret, '\n');
        }
        if (shown < l->spans.count)
                buf_printf(ret, "... %" PRIu32 " more\n", l->spans.count - shown);
}

static void put_spans_csv(const struct span_list *l, struct buf *ret)
{
        for (size_t i = 0; i < l->spans.labels->count; i++)
                csv_put_text(ret, l->spans.labels->names[i], ',');
        buf_append_str(ret, "service_name,span_name,value,samples\r\n");
        for (uint32_t i = 0; i < count_shown_spans(l) && !work_meter_add(l->q->meter, 64, NULL); i++) {
                const struct label_group *span = &l->spans.items[l->order[i]];

                label_group_put_csv(&l->spans, span, ret);
                for (size_t k = 0; k < SPAN_DETAILS; k++)
                        csv_put_text(ret, l->details[l->order[i]].values[k], ',');
                buf_printf(ret, "%" PRId64 ",%" PRIu64 "\r\n", span->total[0], sample_count_round(span->samples[0]));
        }
}

static void put_span_rows(const struct span_list *l, struct json_out *j)
{
        json_out_array(j, "rows");
        for (uint32_t i = 0; i < count_shown_spans(l) && !work_meter_add(l->q->meter, 64, NULL); i++) {
                const struct label_group *span = &l->spans.items[l->order[i]];

                json_out_object(j, NULL);
                label_group_put_json(&l->spans, span, "labels", j);
                for (size_t k = 0; k < SPAN_DETAILS; k++)
                        json_out_str(j, detail_names[k], l->details[l->order[i]].values[k]);
                json_out_int(j, "value", span->total[0]);
                json_out_uint(j, "samples", sample_count_round(span->samples[0]));
                json_out_object_end(j);
        }
        json_out_array_end(j);
}

static void put_spans_json(const struct span_list *l, struct buf *ret)
{
        const struct query_selection *selection = &l->q->r.selection;
        struct json_out j;

        json_out_init(&j, ret);
        json_out_object(&j, NULL);
        json_out_str(&j, "type", l->plan.type ? l->plan.type : "");
        json_out_str(&j, "unit", l->unit);
        json_out_int(&j, "from_ms", selection->from_unix_ns / 1000000);
        json_out_int(&j, "to_ms", selection->to_unix_ns / 1000000);
        json_out_int(&j, "total", l->total);
        json_out_uint(&j, "samples", sample_count_round(l->samples));
        if (l->samples.are_stacks)
                json_out_str(&j, "samples_are", "stacks");
        type_plan_put_json(&l->plan, &j);
        json_out_object(&j, "with_id");
        json_out_int(&j, "total", l->total_with_id);
        json_out_uint(&j, "samples", sample_count_round(l->samples_with_id));
        json_out_uint(&j, "spans", l->spans.count);
        json_out_object_end(&j);
        put_span_rows(l, &j);
        json_out_object_end(&j);
}

enum status query_answer_spans(struct query_call *q)
{
        _cleanup_span_list_ struct span_list l = { .q = q, .memory.use = MEMORY_QUERIES };
        enum status st;

        label_groups_init(&l.spans, q->r.by.count ? &q->r.by : &default_ids, q->meter);
        st = load_spans(&l);
        if (st)
                return st;
        type_plan_put_note(&l.plan, &q->note);
        if (!l.plan.type)
                st = note_no_samples(q, &q->r.selection, q->r.type);
        if (st)
                return st;
        query_call_note_magnitude(q, l.magnitude);
        q->content_type = query_call_content_type(q);
        if (q->r.format == FORMAT_TEXT)
                put_spans_text(&l, q->ret);
        else if (q->r.format == FORMAT_CSV)
                put_spans_csv(&l, q->ret);
        else
                put_spans_json(&l, q->ret);
        return buf_status(q->ret, q->err, "spans");
}
