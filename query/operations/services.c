/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operation "services": a table of the values of a label, by default service_name, with what a first look needs:
 * cost, cost before, the part of it in functions with names, the cost over time, and the versions that ran.
 *
 * Costs are those of "diff" with the same labels, and points those of "series", since the same code sums them. Versions
 * are sums of their own, without the filters: when a service was deployed does not depend on the functions of interest.
 *
 * In the file: rows; versions; the sides; answers.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/json/json_out.h"
#include "common/limits.h"
#include "common/text/csv.h"
#include "common/text/utf8.h"
#include "query/engine/loaded_sides.h"
#include "query/engine/service_versions.h"
#include "query/engine/unit_text.h"
#include "query/operations/series.h"

#define DEFAULT_SERVICE_LABEL "service_name"

struct services {
        struct query_call *q; /* borrowed */
        struct query_selection base;
        struct loaded_sides l;
        struct series trend;
        uint32_t *order; /* of the rows l.groups.shown, by falling cost, the rest last; owned */
        uint32_t row_count;
        int64_t *named;                   /* by row: cost in functions with a name; owned */
        int64_t *points;                  /* trend.count values for each row; owned */
        int64_t named_total;              /* of all rows */
        struct service_versions versions; /* of rows */
        struct memory_reservation memory; /* of the arrays */
};

static void services_deinit(struct services *s)
{
        query_selection_deinit(&s->base);
        loaded_sides_deinit(&s->l);
        series_deinit(&s->trend);
        free(s->order);
        free(s->named);
        free(s->points);
        service_versions_deinit(&s->versions);
        memory_release(&s->memory);
}

/* ---- rows ---- */

static int compare_service_rows(const void *x, const void *y, void *context)
{
        const struct label_group *rows = context;
        uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;

        if (!rows[a].values != !rows[b].values)
                return rows[a].values ? -1 : 1;
        if (rows[a].total[1] != rows[b].total[1])
                return rows[a].total[1] > rows[b].total[1] ? -1 : 1;
        return a < b ? -1 : a > b;
}

static enum status order_service_rows(struct services *s, struct error *err)
{
        struct label_groups *g = &s->l.groups;

        for (uint32_t i = 0; i < g->shown_count; i++)
                if (sample_count_round(g->shown[i].samples[0]) ||
                    sample_count_round(g->shown[i].samples[1])) /* else the filters dropped all */
                        s->order[s->row_count++] = i;
        return work_meter_sort(s->q->meter, s->order, s->row_count, sizeof *s->order, compare_service_rows, g->shown,
                               err);
}

static enum status sum_named_costs(struct services *s, struct error *err)
{
        const struct merged_profile *m = &s->l.sides[1];
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < m->count; i++) {
                uint32_t leaf;

                st = work_meter_add(s->q->meter, 8, err);
                if (!merged_profile_find_leaf(m, m->entries[i].stack, &leaf) ||
                    s->l.frames.items[leaf].kind == FRAME_UNRESOLVED)
                        continue;
                add_saturating(&s->named[s->l.groups.shown_as[m->entries[i].group]], m->entries[i].value);
                add_saturating(&s->named_total, m->entries[i].value);
        }
        return st;
}

/* The row of the samples with these values of the labels. @return false: no row has them. */
static bool find_service_row(struct services *s, const struct scan_group_label *values, uint32_t *ret)
{
        struct label_groups *g = &s->l.groups;
        const uint32_t known = g->count; /* those that were ranked */
        uint32_t group;

        if (label_groups_find_or_add(g, values, &group, NULL) || group >= known)
                return false;
        *ret = g->shown_as[group];
        return true;
}

/* Add the points of the series to the rows. Series that are combined are in the combined row: it has at least these. */
static enum status add_trend_points(struct services *s, struct error *err)
{
        const struct series *t = &s->trend;
        struct scan_group_label values[LIMIT_GROUP_LABELS] = { 0 };
        enum status st = ST_OK;

        for (uint32_t g = 0; !st && g < t->groups.shown_count; g++) {
                const struct label_group *group = &t->groups.shown[g];
                uint32_t row = s->l.groups.shown_count - 1;

                for (size_t k = 0; group->values && k < t->groups.labels->count; k++)
                        values[k].value = group->values[k];
                if (!s->l.groups.shown_count || (group->values && !find_service_row(s, values, &row)))
                        continue;
                st = work_meter_add(s->q->meter, t->count, err);
                for (size_t i = 0; i < t->count; i++)
                        add_saturating(&s->points[row * t->count + i], t->values[g * t->count + i]);
        }
        return st;
}

/* ---- versions ---- */

/* Replace the services of the versions by rows. */
static enum status load_row_versions(struct services *s, struct error *err)
{
        struct service_versions *v = &s->versions;
        struct scan_group_label values[LIMIT_GROUP_LABELS] = { 0 };
        size_t kept = 0;
        enum status st = service_versions_add(v, s->q->scan, &s->base, &s->l.plan, s->trend.step_ns, err);

        if (!st)
                st = service_versions_add(v, s->q->scan, &s->q->r.selection, &s->l.plan, s->trend.step_ns, err);
        for (size_t i = 0; !st && i < v->count; i++) {
                struct service_version item = v->items[i];

                for (size_t k = 0; k < s->q->r.by.count; k++)
                        values[k].value = v->services.items[item.service].values[k];
                if (find_service_row(s, values, &item.service))
                        v->items[kept++] = item;
        }
        v->count = kept;
        return st ? st : service_versions_merge(v, err);
}

/* ---- the sides ---- */

/* By default the range of the same length before. */
static enum status parse_service_base(struct services *s)
{
        const struct query_selection *head = &s->q->r.selection;
        struct query_selection fallback = { .text = head->text, .to_unix_ns = head->from_unix_ns };

        if (__builtin_sub_overflow(head->to_unix_ns, head->from_unix_ns, &fallback.from_unix_ns) ||
            __builtin_sub_overflow(head->from_unix_ns, fallback.from_unix_ns, &fallback.from_unix_ns))
                return error_set(s->q->err, ST_USAGE, "there is no time before this range: give base_from and base_to");
        if (query_param_get(&s->q->params, "base_", "selector") && !query_param_get(&s->q->params, "base_", "from") &&
            !query_param_get(&s->q->params, "base_", "to"))
                fallback = (struct query_selection){ head->text, { 0 }, head->from_unix_ns, head->to_unix_ns };
        fallback.selector.type = head->selector.type; /* borrowed */
        return query_selection_parse(&s->q->params, "base_", &fallback, s->q->now_unix_ns, &s->base, s->q->err);
}

static enum status allocate_service_rows(struct services *s, struct error *err)
{
        const size_t rows = s->l.groups.shown_count, points = rows * s->trend.count;
        enum status st = memory_reserve(&s->memory,
                                        rows * (sizeof *s->named + sizeof *s->order) + points * sizeof *s->points, err);

        if (st)
                return st;
        s->order = calloc(rows + 1, sizeof *s->order);
        s->named = calloc(rows + 1, sizeof *s->named);
        s->points = calloc(points + 1, sizeof *s->points);
        return s->order && s->named && s->points ? ST_OK : error_no_memory(err);
}

static enum status load_services(struct services *s)
{
        struct query_call *q = s->q;
        enum status st = q->r.by.count ? ST_OK : label_list_parse(DEFAULT_SERVICE_LABEL, &q->r.by, q->err);

        q->r.is_match_exact = true; /* no function is compared */
        if (!st)
                st = parse_service_base(s);
        if (!st)
                st = loaded_sides_load(q, &s->base, &s->l);
        q->r.groups = 0; /* points of all rows */
        if (!st)
                st = series_load(q, &s->base, &s->trend);
        if (!st)
                st = allocate_service_rows(s, q->err);
        if (!st)
                st = order_service_rows(s, q->err);
        if (!st)
                st = sum_named_costs(s, q->err);
        if (!st)
                st = add_trend_points(s, q->err);
        return st ? st : load_row_versions(s, q->err);
}

/* ---- answers ---- */

static double get_range_seconds(const struct query_selection *s)
{
        return ((double)s->to_unix_ns - (double)s->from_unix_ns) / 1e9;
}

/* "+12.3%": of the cost per second, as the ranges may differ in length. Returns out. */
static const char *format_rate_change(const struct services *s, const struct label_group *row, char *out, size_t size)
{
        double before = (double)row->total[0], now = (double)row->total[1];

        if (!s->l.sides[1].is_average) {
                before /= get_range_seconds(&s->base);
                now /= get_range_seconds(&s->q->r.selection);
        }
        if (!(before > 0))
                snprintf(out, size, "%s", now > 0 ? "new" : "-");
        else if (!(now > 0))
                snprintf(out, size, "gone");
        else
                snprintf(out, size, "%+.1f%%", 100 * (now - before) / before);
        return out;
}

/* CPU time per second is the number of cores in use. Returns out. */
static const char *format_service_cost(const struct services *s, int64_t value, char *out, size_t size)
{
        double seconds = (double)value * get_unit_ns(s->trend.unit) / 1e9,
               cores = seconds / get_range_seconds(&s->q->r.selection);

        if (s->l.plan.type && is_cpu_time_type(s->l.plan.type))
                snprintf(out, size, cores > 0 && cores < 0.1 ? "%.2g cores" : "%.2f cores", cores);
        else
                format_value(value, s->trend.unit, out, size);
        return out;
}

static void put_row_versions_text(const struct services *s, uint32_t row, struct buf *ret)
{
        size_t count;
        const struct service_version *items = service_versions_find(&s->versions, row, &count), *shown[2];
        char text[LIMIT_LABEL_BYTES];

        shown[1] = service_versions_get_current(items, count, &shown[0]);
        for (int i = 0; i < 2; i++) {
                if (!shown[i])
                        continue;
                buf_append_str(ret, i && shown[0] ? " -> " : "  ");
                utf8_append_escaped(ret, service_version_format(shown[i], text, sizeof text));
        }
}

static void put_services_text(const struct services *s, struct buf *ret)
{
        const struct label_groups *g = &s->l.groups;
        const struct merged_profile *m = &s->l.sides[1];
        char cost[40], change[32], from[32], to[32];

        merged_profile_put_total(m, ret);
        buf_printf(ret, ", compared with %s to %s\n", format_time_utc(s->base.from_unix_ns, from, sizeof from),
                   format_time_utc(s->base.to_unix_ns, to, sizeof to));
        if (s->row_count)
                buf_printf(ret, "\n%14s %7s %8s %7s %9s\n", "value", "share", "change", "named",
                           m->samples.are_stacks ? "stacks" : "samples");
        for (uint32_t i = 0; i < s->row_count && !work_meter_add(s->q->meter, 64, NULL); i++) {
                const struct label_group *row = &g->shown[s->order[i]];

                buf_printf(ret, "%14s %6.2f%% %8s %6.2f%% %9" PRIu64 "  ",
                           format_service_cost(s, row->total[1], cost, sizeof cost),
                           compute_percent(row->total[1], m->total), format_rate_change(s, row, change, sizeof change),
                           compute_percent(s->named[s->order[i]], row->total[1]), sample_count_round(row->samples[1]));
                label_group_put_text(g, row, ret);
                put_row_versions_text(s, s->order[i], ret);
                buf_append_u8(ret, '\n');
        }
}

static void put_services_csv(const struct services *s, struct buf *ret)
{
        const struct label_groups *g = &s->l.groups;

        for (size_t i = 0; i < g->labels->count; i++)
                csv_put_text(ret, g->labels->names[i], ',');
        buf_append_str(ret, "value,samples,named,value_before,samples_before,version\r\n");
        for (uint32_t i = 0; i < s->row_count && !work_meter_add(s->q->meter, 64, NULL); i++) {
                const struct label_group *row = &g->shown[s->order[i]];
                size_t count;
                const struct service_version *v = service_versions_find(&s->versions, s->order[i], &count), *before;

                v = service_versions_get_current(v, count, &before);
                label_group_put_csv(g, row, ret);
                buf_printf(ret, "%" PRId64 ",%" PRIu64 ",%" PRId64 ",%" PRId64 ",%" PRIu64 ",", row->total[1],
                           sample_count_round(row->samples[1]), s->named[s->order[i]], row->total[0],
                           sample_count_round(row->samples[0]));
                csv_put_text(ret, v ? v->value : "", '\r');
                buf_append_u8(ret, '\n');
        }
}

static void put_row_versions_json(const struct services *s, uint32_t row, struct json_out *j)
{
        size_t count;
        const struct service_version *v = service_versions_find(&s->versions, row, &count);

        json_out_array(j, "versions");
        for (size_t i = 0; i < count; i++) {
                json_out_object(j, NULL);
                service_version_put_json(&v[i], j);
                json_out_object_end(j);
        }
        json_out_array_end(j);
}

static void put_service_row_json(const struct services *s, uint32_t at, struct json_out *j)
{
        const struct label_group *row = &s->l.groups.shown[at];

        json_out_object(j, NULL);
        label_group_put_json(&s->l.groups, row, "labels", j);
        json_out_int(j, "value", row->total[1]);
        json_out_uint(j, "samples", sample_count_round(row->samples[1]));
        json_out_int(j, "named", s->named[at]);
        json_out_int(j, "value_before", row->total[0]);
        json_out_uint(j, "samples_before", sample_count_round(row->samples[0]));
        json_out_array(j, "points");
        for (size_t i = 0; i < s->trend.count; i++)
                json_out_int(j, NULL, s->points[at * s->trend.count + i]);
        json_out_array_end(j);
        put_row_versions_json(s, at, j);
        json_out_object_end(j);
}

static void put_services_json(const struct services *s, struct buf *ret)
{
        const struct merged_profile *base = &s->l.sides[0], *head = &s->l.sides[1];
        struct json_out j;

        json_out_init(&j, ret);
        json_out_object(&j, NULL);
        json_out_str(&j, "type", s->l.plan.type ? s->l.plan.type : "");
        json_out_str(&j, "unit", s->trend.unit);
        json_out_int(&j, "from_ms", head->selection->from_unix_ns / 1000000);
        json_out_int(&j, "to_ms", head->selection->to_unix_ns / 1000000);
        json_out_int(&j, "base_from_ms", s->base.from_unix_ns / 1000000);
        json_out_int(&j, "base_to_ms", s->base.to_unix_ns / 1000000);
        json_out_int(&j, "first_ms", s->trend.first_ns / 1000000);
        json_out_int(&j, "step_ms", s->trend.step_ns / 1000000);
        json_out_int(&j, "total", head->total);
        merged_profile_put_samples(head, false, &j);
        if (head->is_average)
                json_out_str(&j, "aggregation", "average");
        json_out_int(&j, "named", s->named_total);
        json_out_int(&j, "total_before", base->total);
        put_counted_samples(&j, "samples_before", "samples_before_are", base->samples);
        type_plan_put_json(&s->l.plan, &j);
        json_out_array(&j, "rows");
        for (uint32_t i = 0; i < s->row_count && !work_meter_add(s->q->meter, s->trend.count, NULL); i++)
                put_service_row_json(s, s->order[i], &j);
        json_out_array_end(&j);
        json_out_object_end(&j);
}

enum status query_answer_services(struct query_call *q)
{
        _cleanup_(services_deinit) struct services s = { .q = q, .memory.use = MEMORY_QUERIES };
        enum status st;

        service_versions_init(&s.versions, &q->r.by, q->meter);
        st = load_services(&s);
        if (st)
                return st;
        q->content_type = query_call_content_type(q);
        if (q->r.format == FORMAT_TEXT)
                put_services_text(&s, q->ret);
        else if (q->r.format == FORMAT_CSV)
                put_services_csv(&s, q->ret);
        else
                put_services_json(&s, q->ret);
        return buf_status(q->ret, q->err, "services");
}
