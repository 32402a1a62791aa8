/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>

#include "common/json/json_out.h"
#include "common/utf8.h"
#include "profile-store/scan_groups.h"
#include "query/formats/csv.h"
#include "query/label_groups.h"
#include "query/series.h"
#include "query/unit_text.h"

#define NS_PER_S INT64_C(1000000000)

/* Total of points of all series of an answer: 64 MiB. */
#define LIMIT_SERIES_VALUES (1u << 22)

/* Total of parts of all steps, for averages; a scan holds 28 bytes per part and thread. */
#define LIMIT_STEP_PARTS 1000000

void series_deinit(struct series *s)
{
        type_plan_deinit(&s->plan);
        label_groups_deinit(&s->groups);
        free(s->values);
        free(s->samples);
        *s = (struct series){ 0 };
}

/* ---- steps ---- */

static int64_t choose_step(int64_t range_ns)
{
        static const int64_t steps_s[] = {
                1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 43200
        };

        for (size_t i = 0; i < sizeof steps_s / sizeof *steps_s; i++)
                if (range_ns / (steps_s[i] * NS_PER_S) <= 120)
                        return steps_s[i] * NS_PER_S;
        return 86400 * NS_PER_S;
}

/* The default step gives about 120 points. */
static enum status set_steps(struct series *s, struct error *err)
{
        const struct query_selection *sel = &s->q->r.selection;
        uint64_t range = (uint64_t)sel->to_unix_ns - (uint64_t)sel->from_unix_ns, count;
        int64_t rest;

        if (range > INT64_MAX)
                return error_set(err, ST_USAGE, "the time range is longer than 292 years");
        s->step_ns = s->q->r.step_ns ? s->q->r.step_ns : choose_step((int64_t)range);
        rest = sel->from_unix_ns % s->step_ns;
        s->first_ns = sel->from_unix_ns - (rest < 0 ? rest + s->step_ns : rest);
        count = ((uint64_t)sel->to_unix_ns - (uint64_t)s->first_ns + (uint64_t)s->step_ns - 1) / (uint64_t)s->step_ns;
        if (count > LIMIT_SERIES_POINTS)
                return error_set(err, ST_USAGE, "a series may have up to %d points: use a longer step",
                                 LIMIT_SERIES_POINTS);
        s->count = (size_t)count;
        return ST_OK;
}

static enum status allocate_points(struct series *s, struct error *err)
{
        uint64_t values = (uint64_t)s->count * (s->groups.shown_count + 1u);

        if (values > LIMIT_SERIES_VALUES)
                return error_set(err, ST_TOO_BIG,
                                 "the series have more than %u points: use a longer step or fewer groups",
                                 LIMIT_SERIES_VALUES);
        s->values = calloc(values + 1, sizeof *s->values);
        s->samples = calloc(values + 1, sizeof *s->samples);
        return s->values && s->samples ? ST_OK : error_no_memory(err);
}

/* ---- sums ---- */

static enum status add_series_sample(void *context, int64_t time_unix_ns, int64_t value, const stack_id id)
{
        struct series *s = context;
        uint64_t at; /* may be out of range if the statistics of a file are wrong */

        (void)id;
        if (time_unix_ns < s->first_ns)
                return ST_OK;
        at = ((uint64_t)time_unix_ns - (uint64_t)s->first_ns) / (uint64_t)s->step_ns;
        if (at < s->count) {
                add_wrapping(&s->values[at], value);
                s->samples[at]++;
        }
        return ST_OK;
}

/* One type, not grouped by labels. */
static enum status sum_one_series(struct series *s, struct error *err)
{
        const struct scan_filter filter = query_selection_make_filter(&s->q->r.selection, s->plan.type);
        uint32_t group;
        enum status st = label_groups_find_or_add(&s->groups, NULL, &group, err);

        if (!st)
                st = label_groups_rank(&s->groups, 0, err);
        if (!st)
                st = allocate_points(s, err);
        if (!st && s->plan.type)
                st = store_scan_visit(s->q->scan, &filter, add_series_sample, s, err);
        return st;
}

/* Convert values, replace groups of the scan by label groups, and remove sums that the plan omits. */
static enum status convert_step_sums(struct series *s, struct scan_group_sums *sums, struct error *err)
{
        struct scan_series_set with_time = { 0 };
        size_t count = 0;
        enum status st = scan_series_set_build(sums, is_cpu_time_type, &with_time, err);

        for (size_t i = 0; !st && i < sums->count; i++) {
                struct scan_group_sum sum = sums->items[i];
                const struct scan_group *g = &sums->groups[sum.group];

                if (!type_plan_convert(&s->plan, g, &with_time, &sum.value))
                        continue;
                st = label_groups_find_or_add(&s->groups, g->labels, &sum.group, err);
                if (!st)
                        label_groups_add_value(&s->groups, sum.group, 0, sum.value, sum.samples);
                sums->items[count++] = sum;
        }
        sums->count = count;
        free(with_time.items);
        return st;
}

/* The number of parts of about a second in a step. For averages, the samples of one series in one part count as one
 * profile. */
static uint32_t count_step_parts(const struct series *s)
{
        uint64_t parts = (uint64_t)(s->step_ns / NS_PER_S), most = LIMIT_STEP_PARTS / (s->count + 1);

        if (!s->q->r.average)
                return 1;
        parts = parts < most ? parts : most;
        while (parts > 1 && (uint64_t)s->step_ns % parts)
                parts--;
        return parts ? (uint32_t)parts : 1;
}

static enum status sum_series_groups(struct series *s, struct error *err)
{
        const struct scan_filter filter = query_selection_make_filter(&s->q->r.selection, NULL);
        const uint32_t parts = count_step_parts(s);
        const struct scan_group_by by = { .types = s->plan.types,
                                          .type_count = s->plan.type_count,
                                          .labels = s->groups.labels->names,
                                          .label_count = s->groups.labels->count,
                                          .series = s->plan.by_series || s->q->r.average,
                                          .first_unix_ns = s->first_ns,
                                          .step_ns = s->step_ns / parts,
                                          .step_count = s->count * parts };
        struct scan_group_sums sums = { 0 };
        enum status st = store_scan_sum_groups(s->q->scan, &filter, &by, &sums, err);

        if (!st)
                st = convert_step_sums(s, &sums, err);
        if (!st)
                st = label_groups_rank(&s->groups, s->q->r.groups, err);
        if (!st)
                st = allocate_points(s, err);
        for (size_t i = 0; !st && i < sums.count; i++) {
                const struct scan_group_sum *sum = &sums.items[i];
                size_t at = s->groups.shown_as[sum->group] * s->count + sum->item / parts;

                add_wrapping(&s->values[at], sum->value);
                s->samples[at] += s->q->r.average ? 1 : sum->samples;
        }
        scan_group_sums_deinit(&sums);
        return st;
}

/* ---- answers ---- */

static void put_series_text(const struct series *s, struct buf *ret)
{
        bool grouped = s->groups.labels->count > 0;

        for (uint32_t g = 0; g < s->groups.shown_count; g++) {
                if (grouped) {
                        label_group_put_text(&s->groups, &s->groups.shown[g], ret);
                        buf_append_u8(ret, '\n');
                }
                for (size_t i = 0; i < s->count && !work_meter_add(s->q->meter, 16, NULL); i++) {
                        char time[32], value[40];
                        size_t at = g * s->count + i;

                        buf_printf(ret, "%s  %12s  %8" PRIu64 " samples\n",
                                   format_time_utc(s->first_ns + (int64_t)i * s->step_ns, time, sizeof time),
                                   format_value(s->values[at], s->unit, value, sizeof value), s->samples[at]);
                }
        }
}

static void put_series_csv(const struct series *s, struct buf *ret)
{
        buf_append_str(ret, "time_ms,");
        for (size_t i = 0; i < s->groups.labels->count; i++)
                csv_put_text(ret, s->groups.labels->names[i], ',');
        buf_append_str(ret, "value,samples\r\n");
        for (uint32_t g = 0; g < s->groups.shown_count; g++) {
                for (size_t i = 0; i < s->count && !work_meter_add(s->q->meter, 16, NULL); i++) {
                        size_t at = g * s->count + i;

                        buf_printf(ret, "%" PRId64 ",", (s->first_ns + (int64_t)i * s->step_ns) / 1000000);
                        label_group_put_csv(&s->groups, &s->groups.shown[g], ret);
                        buf_printf(ret, "%" PRId64 ",%" PRIu64 "\r\n", s->values[at], s->samples[at]);
                }
        }
}

/* Each point is [time in ms, value, samples]. */
static void put_series_points(const struct series *s, uint32_t group, struct json_out *j)
{
        json_out_array(j, "points");
        for (size_t i = 0; i < s->count && !work_meter_add(s->q->meter, 16, NULL); i++) {
                size_t at = group * s->count + i;

                json_out_array(j, NULL);
                json_out_int(j, NULL, (s->first_ns + (int64_t)i * s->step_ns) / 1000000);
                json_out_int(j, NULL, s->values[at]);
                json_out_uint(j, NULL, s->samples[at]);
                json_out_array_end(j);
        }
        json_out_array_end(j);
}

static void put_series_json(const struct series *s, struct buf *ret)
{
        struct json_out j;

        json_out_init(&j, ret);
        json_out_object(&j, NULL);
        json_out_str(&j, "type", s->plan.type ? s->plan.type : "");
        json_out_str(&j, "unit", s->unit);
        json_out_int(&j, "step_ms", s->step_ns / 1000000);
        type_plan_put_json(&s->plan, &j);
        if (!s->groups.labels->count) {
                put_series_points(s, 0, &j);
        } else {
                json_out_array(&j, "groups");
                for (uint32_t g = 0; g < s->groups.shown_count; g++) {
                        json_out_object(&j, NULL);
                        label_group_put_json(&s->groups, &s->groups.shown[g], "labels", &j);
                        json_out_int(&j, "total", s->groups.shown[g].total[0]);
                        json_out_uint(&j, "samples", s->groups.shown[g].samples[0]);
                        put_series_points(s, g, &j);
                        json_out_object_end(&j);
                }
                json_out_array_end(&j);
        }
        json_out_object_end(&j);
}

static enum status fill_series(struct query_call *q, struct series *s)
{
        const struct query_selection *selection = &q->r.selection;
        enum status st = set_steps(s, q->err);

        if (!st)
                st = type_plan_make_for_request(q->scan, &selection, 1, &q->r, &s->plan, q->err);
        if (!st)
                st = s->plan.type_count <= 1 && !s->plan.converts && !q->r.by.count && !q->r.average
                             ? sum_one_series(s, q->err)
                             : sum_series_groups(s, q->err);
        type_plan_copy_unit(&s->plan, s->unit, sizeof s->unit);
        return st;
}

enum status series_load(struct query_call *q, struct series *ret)
{
        enum status st;

        *ret = (struct series){ .q = q };
        label_groups_init(&ret->groups, &q->r.by, q->meter);
        st = fill_series(q, ret);
        if (st)
                series_deinit(ret);
        return st;
}

enum status query_answer_series(struct query_call *q)
{
        _cleanup_series_ struct series s = { 0 };
        enum status st = query_call_refuse_filters(q, "series");

        if (!st)
                st = series_load(q, &s);
        if (st)
                return st;
        type_plan_put_note(&s.plan, &q->note);
        q->content_type = query_call_content_type(q);
        if (q->r.format == FORMAT_TEXT)
                put_series_text(&s, q->ret);
        else if (q->r.format == FORMAT_CSV)
                put_series_csv(&s, q->ret);
        else
                put_series_json(&s, q->ret);
        return buf_status(q->ret, q->err, "series");
}
