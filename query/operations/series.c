/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scan sums by step: the item of a sum is the number of its step (store_scan_sum_groups()). sum_steps() turns the
 * sums into points, an array with a row of steps for each shown group: gauges are averaged, values converted to the
 * type of the answer, groups of the scan replaced by label groups, and these ranked.
 *
 * What steps alone do not tell is loaded before, for the whole range (load_whole_range()): the stacks that frame
 * filters keep, which then select samples of the steps, and the totals of averages, which are not sums of the points.
 * For answers with averages of profiles a step is divided into parts of about a second (count_step_parts()), and
 * points count profiles.
 *
 * In the file: steps; sums; answers as text, CSV and JSON; series_load(), also used by query/querier/.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "common/json/json_out.h"
#include "common/text/csv.h"
#include "profile-formats/profile_type.h"
#include "profile-store/scan_groups.h"
#include "query/engine/gauge_average.h"
#include "query/engine/label_groups.h"
#include "query/engine/merged_profile.h"
#include "query/engine/no_samples.h"
#include "query/engine/unit_text.h"
#include "query/engine/service_versions.h"
#include "query/operations/series.h"

#define NS_PER_S INT64_C(1000000000)

/* Total of points of all series of an answer: 96 MiB. */
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

/*
 * Load what steps alone do not tell: the totals of averages, and the stacks that the filters keep.
 * @param m  its kept_ids are those of the filters; merged_profile_deinit() it.
 */
static enum status load_whole_range(struct series *s, const struct frame_filter *filter, struct merged_profile *m,
                                    struct error *err)
{
        struct frame_table frames;
        const struct merged_profile_request request = { .plan = &s->plan,
                                                        .filter = filter,
                                                        .frames = &frames,
                                                        .groups = &s->groups,
                                                        .wants_ids = frame_filter_is_set(filter) };
        enum status st;

        frame_table_init(&frames, s->q->meter);
        st = merged_profile_load(s->q->scan, &s->q->r.selection, &request, m, err);
        if (!st)
                s->snapshots = m->snapshots;
        location_frames_deinit(&m->locations); /* they refer to the frames */
        frame_table_deinit(&frames);
        return st;
}

/* The sum of a group in a step, to be averaged over the series' snapshots in it. */
struct step_part {
        uint64_t series;
        struct scan_group_sum *sum;
};

static int compare_step_parts(const void *x, const void *y)
{
        const struct step_part *a = x, *b = y;

        if (a->series != b->series)
                return a->series < b->series ? -1 : 1;
        if (a->sum->item != b->sum->item)
                return a->sum->item < b->sum->item ? -1 : 1;
        return a->sum->group < b->sum->group ? -1 : a->sum->group > b->sum->group;
}

static int64_t floor_to_us(int64_t ns)
{
        return ns / 1000 - (ns % 1000 < 0);
}

/* Replace the sums of a gauge by averages over the snapshots of each series and step. */
static enum status average_steps(const struct series *s, const struct gauge_snapshots *g,
                                 const struct scan_group_sums *sums, struct error *err)
{
        _cleanup_free_ struct step_part *parts = calloc(sums->count + 1, sizeof *parts);
        struct gauge_average average = { 0 };

        if (!parts)
                return error_no_memory(err);
        for (size_t i = 0; i < sums->count; i++)
                parts[i] = (struct step_part){ gauge_snapshots_find_series(g, &sums->groups[sums->items[i].group]),
                                               &sums->items[i] };
        qsort(parts, sums->count, sizeof *parts, compare_step_parts);
        for (size_t i = 0; i < sums->count; i++) {
                int64_t from_ns = s->first_ns + (int64_t)parts[i].sum->item * s->step_ns;

                if (!i || parts[i].series != parts[i - 1].series || parts[i].sum->item != parts[i - 1].sum->item)
                        average = (struct gauge_average){ .snapshots = gauge_snapshots_count(
                                                                  g, parts[i].series, floor_to_us(from_ns),
                                                                  floor_to_us(from_ns + s->step_ns)) };
                parts[i].sum->value = gauge_average_add(&average, parts[i].sum->value);
        }
        return ST_OK;
}

/*
 * Convert values, replace groups of the scan by label groups, and remove sums that the plan omits.
 * @param adds_totals  the totals of the label groups are not known yet.
 * @param samples      set for each sum that remains.
 */
static enum status convert_step_sums(struct series *s, bool adds_totals, struct scan_group_sums *sums,
                                     struct counted_samples *samples, struct error *err)
{
        _cleanup_free_ struct sample_count_rule *rules = scan_group_sums_list_count_rules(sums);
        struct scan_series_set with_time = { 0 };
        size_t count = 0;
        enum status st = rules ? scan_series_set_build(sums, is_cpu_time_type, &with_time, err) : error_no_memory(err);

        for (size_t i = 0; !st && i < sums->count; i++) {
                struct scan_group_sum sum = sums->items[i];
                const struct scan_group *g = &sums->groups[sum.group];

                samples[count] = compute_sample_count(&rules[sum.group], sum.value, sum.samples);
                if (!type_plan_convert(&s->plan, g, &with_time, &sum.value))
                        continue;
                st = label_groups_find_or_add(&s->groups, g->labels, &sum.group, err);
                if (!st && adds_totals)
                        label_groups_add_value(&s->groups, sum.group, 0, sum.value, samples[count]);
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

static enum status sum_steps(struct series *s, const struct gauge_snapshots *gauge, const struct merged_profile *whole,
                             struct error *err)
{
        const char *type = s->plan.type_count == 1 ? s->plan.types[0] : NULL;
        const struct scan_filter filter = query_selection_make_filter(&s->q->r.selection, type);
        const uint32_t parts = count_step_parts(s);
        _cleanup_free_ const char **labels = calloc(LIMIT_GROUP_LABELS + gauge->label_count, sizeof *labels);
        struct scan_group_by by = { .types = s->plan.types,
                                    .type_count = s->plan.type_count,
                                    .labels = labels,
                                    .series = s->plan.by_series || s->q->r.average,
                                    .selects_stack = whole && whole->kept_ids ? merged_profile_keeps_stack : NULL,
                                    .stack_context = whole,
                                    .first_unix_ns = s->first_ns,
                                    .step_ns = s->step_ns / parts,
                                    .step_count = s->count * parts };
        _cleanup_free_ struct counted_samples *samples = NULL;
        struct scan_group_sums sums = { 0 };
        enum status st;

        if (!labels)
                return error_no_memory(err);
        for (size_t i = 0; i < s->groups.labels->count; i++)
                labels[by.label_count++] = s->groups.labels->names[i];
        for (size_t i = 0; i < gauge->label_count; i++)
                labels[by.label_count++] = gauge->labels[i];
        st = store_scan_sum_groups(s->q->scan, &filter, &by, &sums, err);
        if (!st && gauge->type)
                st = average_steps(s, gauge, &sums, err);
        if (!st)
                samples = calloc(sums.count + 1, sizeof *samples);
        if (!st)
                st = samples ? convert_step_sums(s, !whole, &sums, samples, err) : error_no_memory(err);
        if (!st)
                st = label_groups_rank(&s->groups, s->q->r.groups, err);
        if (!st)
                st = allocate_points(s, err);
        for (size_t i = 0; !st && i < sums.count; i++) {
                const struct scan_group_sum *sum = &sums.items[i];
                size_t at = s->groups.shown_as[sum->group] * s->count + sum->item / parts;
                const struct counted_samples profile = { .whole = 1 };

                add_magnitude(&s->magnitude, sum->value);
                add_saturating(&s->values[at], sum->value);
                sample_count_add(&s->samples[at], s->q->r.average ? profile : samples[i]);
        }
        scan_group_sums_deinit(&sums);
        return st;
}

static enum status sum_series(struct series *s, struct error *err)
{
        _cleanup_gauge_snapshots_ struct gauge_snapshots gauge = { 0 };
        _cleanup_merged_profile_ struct merged_profile whole = { 0 };
        _cleanup_(frame_filter_deinit) struct frame_filter filter = { 0 };
        bool needs_whole;
        enum status st = frame_filter_parse(&s->q->params, &filter, err);

        s->is_average = !s->q->r.average && s->plan.type && profile_type_is_gauge(s->plan.type);
        needs_whole = frame_filter_is_set(&filter) || s->is_average;
        if (!st && s->is_average)
                st = gauge_snapshots_load(s->q->scan, &s->q->r.selection, s->plan.type, &gauge, err);
        if (!st && needs_whole)
                st = load_whole_range(s, &filter, &whole, err);
        if (!st && !s->groups.labels->count && !s->groups.count) { /* an answer without labels has one series */
                uint32_t group;

                st = label_groups_find_or_add(&s->groups, NULL, &group, err);
        }
        return st ? st : sum_steps(s, &gauge, needs_whole ? &whole : NULL, err);
}

/* ---- answers ---- */

static bool series_counts_stacks(const struct series *s)
{
        for (uint32_t g = 0; g < s->groups.shown_count; g++)
                if (s->groups.shown[g].samples[0].are_stacks)
                        return true;
        return false;
}

static void put_series_text(const struct series *s, struct buf *ret)
{
        const char *count_name = series_counts_stacks(s) ? "stacks" : "samples";
        bool grouped = s->groups.labels->count > 0;

        for (uint32_t g = 0; g < s->groups.shown_count; g++) {
                if (grouped) {
                        label_group_put_text(&s->groups, &s->groups.shown[g], ret);
                        buf_append_u8(ret, '\n');
                }
                for (size_t i = 0; i < s->count && !work_meter_add(s->q->meter, 16, NULL); i++) {
                        char time[32], value[40];
                        size_t at = g * s->count + i;

                        buf_printf(ret, "%s  %12s  %8" PRIu64 " %s\n",
                                   format_time_utc(s->first_ns + (int64_t)i * s->step_ns, time, sizeof time),
                                   format_value(s->values[at], s->unit, value, sizeof value),
                                   sample_count_round(s->samples[at]), count_name);
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
                        buf_printf(ret, "%" PRId64 ",%" PRIu64 "\r\n", s->values[at],
                                   sample_count_round(s->samples[at]));
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
                json_out_uint(j, NULL, sample_count_round(s->samples[at]));
                json_out_array_end(j);
        }
        json_out_array_end(j);
}

static const struct label_list service_label = { .names = { "service_name" }, .count = 1 };

/* The versions of each service in the range, if they are requested. */
static enum status put_series_versions(const struct series *s, struct json_out *j)
{
        _cleanup_service_versions_ struct service_versions v = { 0 };
        bool wanted;
        enum status st = query_param_get_flag(&s->q->params, "versions", &wanted, s->q->err);

        if (st || !wanted)
                return st;
        service_versions_init(&v, &service_label, s->q->meter);
        st = service_versions_add(&v, s->q->scan, &s->q->r.selection, &s->plan, s->step_ns, s->q->err);
        if (!st)
                st = service_versions_merge(&v, s->q->err);
        json_out_array(j, "versions");
        for (uint32_t service = 0; !st && service < v.services.count; service++) {
                size_t count;
                const struct service_version *items = service_versions_find(&v, service, &count);

                for (size_t i = 0; i < count; i++) {
                        json_out_object(j, NULL);
                        json_out_str(j, "service_name", v.services.items[service].values[0]);
                        service_version_put_json(&items[i], j);
                        json_out_object_end(j);
                }
        }
        json_out_array_end(j);
        return st;
}

static enum status put_series_json(const struct series *s, struct buf *ret)
{
        enum status st;
        struct json_out j;

        json_out_init(&j, ret);
        json_out_object(&j, NULL);
        json_out_str(&j, "type", s->plan.type ? s->plan.type : "");
        json_out_str(&j, "unit", s->unit);
        json_out_int(&j, "step_ms", s->step_ns / 1000000);
        if (series_counts_stacks(s))
                json_out_str(&j, "samples_are", "stacks");
        if (s->is_average) {
                json_out_uint(&j, "snapshots", s->snapshots);
                json_out_str(&j, "aggregation", "average");
        }
        type_plan_put_json(&s->plan, &j);
        if (!s->groups.labels->count) {
                json_out_int(&j, "total", s->groups.shown[0].total[0]);
                json_out_uint(&j, "samples", sample_count_round(s->groups.shown[0].samples[0]));
                put_series_points(s, 0, &j);
        } else {
                json_out_array(&j, "groups");
                for (uint32_t g = 0; g < s->groups.shown_count; g++) {
                        json_out_object(&j, NULL);
                        label_group_put_json(&s->groups, &s->groups.shown[g], "labels", &j);
                        json_out_int(&j, "total", s->groups.shown[g].total[0]);
                        json_out_uint(&j, "samples", sample_count_round(s->groups.shown[g].samples[0]));
                        put_series_points(s, g, &j);
                        json_out_object_end(&j);
                }
                json_out_array_end(&j);
        }
        st = put_series_versions(s, &j);
        json_out_object_end(&j);
        return st;
}

static enum status fill_series(struct query_call *q, const struct query_selection *base, struct series *s)
{
        const struct query_selection *sides[2] = { &q->r.selection, base };
        enum status st = set_steps(s, q->err);

        if (!st)
                st = type_plan_make_for_request(q->scan, sides, base ? 2 : 1, &q->r, &s->plan, q->err);
        if (!st)
                st = sum_series(s, q->err);
        type_plan_copy_unit(&s->plan, s->unit, sizeof s->unit);
        return st;
}

enum status series_load(struct query_call *q, const struct query_selection *base, struct series *ret)
{
        enum status st;

        *ret = (struct series){ .q = q };
        label_groups_init(&ret->groups, &q->r.by, q->meter);
        st = fill_series(q, base, ret);
        if (st)
                series_deinit(ret);
        return st;
}

enum status query_answer_series(struct query_call *q)
{
        _cleanup_series_ struct series s = { 0 };
        enum status st = series_load(q, NULL, &s);

        if (st)
                return st;
        type_plan_put_note(&s.plan, &q->note);
        if (!s.plan.type)
                st = note_no_samples(q, &q->r.selection, q->r.type);
        if (st)
                return st;
        query_call_note_magnitude(q, s.magnitude);
        q->content_type = query_call_content_type(q);
        if (q->r.format == FORMAT_TEXT)
                put_series_text(&s, q->ret);
        else if (q->r.format == FORMAT_CSV)
                put_series_csv(&s, q->ret);
        else
                st = put_series_json(&s, q->ret);
        return st ? st : buf_status(q->ret, q->err, "series");
}
