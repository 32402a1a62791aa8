/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of functions over time, by the hour: from the history of functions where it has the hour, and from samples
 * elsewhere (profile-store/history_scan.h), so a year is read as fast as a day.
 *
 * Each row of a matching function is added to the step of its series; each row of any function adds its self cost to
 * the step's total, to which shares refer. A series is one function and file name, and the values of `by`.
 *
 * In the file: series; rows; answers as text, CSV and JSON; the entry point.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/files/file.h"
#include "common/hash/hash_table.h"
#include "common/json/json_out.h"
#include "common/limits.h"
#include "common/memory/array.h"
#include "common/text/csv.h"
#include "common/text/regex_match.h"
#include "profile-store/history_scan.h"
#include "query/engine/history_type.h"
#include "query/engine/query_call.h"
#include "query/engine/unit_text.h"
#include "symbol-index/comparison_name.h"
#include "symbol-index/short_name.h"

#define NS_PER_HOUR INT64_C(3600000000000)
#define DAY_HOURS 24
#define HOURLY_RANGE_HOURS (14 * DAY_HOURS) /* of the default step; longer ranges have a step of a day */
#define MOST_DAYS 10000                     /* of a step of a day; longer ranges have a step of a week */
#define LIMIT_TREND_POINTS (1u << 20)       /* of all series of an answer */
#define DEFAULT_SHOWN_TRENDS 20

enum trend_label { TREND_SERVICE, TREND_VERSION, TREND_BUILD_ID, TREND_LABELS };
static const char *const label_names[TREND_LABELS] = { HISTORY_SERVICE, HISTORY_VERSION, "build_id" };

struct trend_point {
        int64_t self, total;
        uint64_t samples;
};

struct trend_series {
        const char *normal_name, *file_name; /* what the function is in all builds (symbol-index/comparison_name.h) */
        const char *function, *file;         /* of the latest hour */
        int64_t latest_hour_us;
        const char *labels[TREND_LABELS]; /* "" unless it is in `by` */
        struct trend_point sum, *points;  /* owned */
};

struct trend {
        struct query_call *q;
        struct regex_match *function;
        bool by[TREND_LABELS];
        int64_t first_ns, step_ns;
        size_t count;                /* steps */
        struct trend_series *series; /* owned */
        size_t series_count, series_capacity;
        struct hash_table series_by_key;
        struct trend_point *all; /* by step: self and samples of all functions; owned */
        struct arena arena;
        struct buf scratch, normal;       /* for a short name, and the normal form of one */
        struct memory_reservation memory; /* of the points */
        struct history_sources sources;
        struct history_type type;
        char unit[32];
};

static void trend_deinit(struct trend *t)
{
        regex_match_destroy(t->function);
        for (size_t i = 0; i < t->series_count; i++)
                free(t->series[i].points);
        free(t->series);
        free(t->all);
        hash_table_deinit(&t->series_by_key);
        arena_deinit(&t->arena);
        buf_deinit(&t->scratch);
        buf_deinit(&t->normal);
        memory_release(&t->memory);
        history_type_deinit(&t->type);
}

/* ---- series ---- */

static bool is_same_series(const void *context, uint32_t number, const void *key, size_t size)
{
        const struct trend_series *have = &((const struct trend *)context)->series[number], *wanted = key;

        (void)size;
        for (int i = 0; i < TREND_LABELS; i++)
                if (strcmp(have->labels[i], wanted->labels[i]) != 0)
                        return false;
        return strcmp(have->normal_name, wanted->normal_name) == 0 && strcmp(have->file_name, wanted->file_name) == 0;
}

static uint32_t hash_series(const struct trend_series *s)
{
        uint64_t hashes[2 + TREND_LABELS] = { keyed_hash(s->normal_name, strlen(s->normal_name)),
                                              keyed_hash(s->file_name, strlen(s->file_name)) };

        for (int i = 0; i < TREND_LABELS; i++)
                hashes[2 + i] = keyed_hash(s->labels[i], strlen(s->labels[i]));
        return hash_table_hash(hashes, sizeof hashes);
}

static const char *copy_trend_text(struct trend *t, const char *text)
{
        return arena_strndup(&t->arena, text, strlen(text));
}

static enum status add_series(struct trend *t, const struct trend_series *key, uint32_t hash, uint32_t *ret,
                              struct error *err)
{
        struct trend_series s = { .normal_name = copy_trend_text(t, key->normal_name),
                                  .file_name = copy_trend_text(t, key->file_name),
                                  .latest_hour_us = INT64_MIN };
        size_t bytes = (t->count + 1) * sizeof *s.points;
        enum status st;

        if ((t->series_count + 1) * (t->count + 1) > LIMIT_TREND_POINTS)
                return error_set(err, ST_TOO_BIG,
                                 "the trends have more than %u points: name fewer functions or use a longer step",
                                 LIMIT_TREND_POINTS);
        st = memory_reserve(&t->memory, bytes, err);
        if (!st)
                st = hash_table_reserve(&t->series_by_key, err);
        if (st)
                return st;
        for (int i = 0; i < TREND_LABELS; i++) {
                s.labels[i] = copy_trend_text(t, key->labels[i]);
                if (!s.labels[i])
                        return arena_error(&t->arena, err, "the names of trends");
        }
        if (!s.normal_name || !s.file_name)
                return arena_error(&t->arena, err, "the names of trends");
        if (!array_reserve(&t->series, &t->series_capacity, t->series_count))
                return error_no_memory(err);
        s.points = calloc(t->count + 1, sizeof *s.points);
        if (!s.points)
                return error_no_memory(err);
        *ret = (uint32_t)t->series_count;
        t->series[t->series_count++] = s;
        hash_table_insert(&t->series_by_key, hash, *ret);
        return ST_OK;
}

/* A build may rename a function, or lie in another directory: the names shown are those of the latest hour. */
static enum status name_series(struct trend *t, struct trend_series *s, const struct history_row *row,
                               struct error *err)
{
        if (row->hour_us <= s->latest_hour_us)
                return ST_OK;
        s->latest_hour_us = row->hour_us;
        if (!s->function || strcmp(s->function, row->function) != 0)
                s->function = copy_trend_text(t, row->function);
        if (!s->file || strcmp(s->file, row->file) != 0)
                s->file = copy_trend_text(t, row->file);
        return s->function && s->file ? ST_OK : arena_error(&t->arena, err, "the names of trends");
}

static void add_to_point(struct trend_point *p, int64_t self, int64_t total, uint64_t samples)
{
        add_saturating(&p->self, self);
        add_saturating(&p->total, total);
        p->samples += samples;
}

/* ---- rows ---- */

static bool is_function_matched(struct trend *t, const struct history_row *row)
{
        const char *short_name;

        if (regex_match_text(t->function, row->function, strlen(row->function)))
                return true;
        short_name = symbol_short_name(row->function, "", &t->scratch);
        return short_name != row->function && regex_match_text(t->function, short_name, strlen(short_name));
}

static enum status add_trend_row(void *context, const struct history_row *as_stored, struct error *err)
{
        struct trend *t = context;
        struct history_row converted = *as_stored, *row = &converted;
        const char *const labels[TREND_LABELS] = { row->service, row->version, row->build_id };
        int64_t step = (row->hour_us * 1000 - t->first_ns) / t->step_ns;
        struct trend_series key = { .file_name = path_base(row->file) };
        uint32_t hash, number = 0;
        enum status st = work_meter_add(t->q->meter, 16, err);

        if (st || step < 0 || step >= (int64_t)t->count || !history_type_convert(&t->type, row))
                return st;
        if (!*t->unit)
                snprintf(t->unit, sizeof t->unit, "%s", row->unit);
        add_to_point(&t->all[step], row->self, row->self, row->self_samples);
        if (!row->samples || !*row->function || !is_function_matched(t, row))
                return ST_OK;
        for (int i = 0; i < TREND_LABELS; i++)
                key.labels[i] = t->by[i] ? labels[i] : "";
        key.normal_name = symbol_comparison_name(row->function, row->file, COMPARISON_NUMBERED, &t->normal);
        hash = hash_series(&key);
        if (!hash_table_find(&t->series_by_key, hash, is_same_series, t, &key, sizeof key, &number))
                st = add_series(t, &key, hash, &number, err);
        if (!st)
                st = name_series(t, &t->series[number], row, err);
        if (st)
                return st;
        add_to_point(&t->series[number].points[step], row->self, row->total, row->samples);
        add_to_point(&t->series[number].sum, row->self, row->total, row->samples);
        return ST_OK;
}

static int compare_trends(const void *a, const void *b)
{
        const struct trend_series *x = a, *y = b;
        int order = x->sum.total != y->sum.total ? (x->sum.total > y->sum.total ? -1 : 1)
                                                 : strcmp(x->function, y->function);

        order = order ? order : strcmp(x->file, y->file);
        for (int i = 0; !order && i < TREND_LABELS; i++)
                order = strcmp(x->labels[i], y->labels[i]);
        return order;
}

/* ---- answers ---- */

static size_t count_shown_trends(const struct trend *t)
{
        uint64_t limit = t->q->r.limit ? t->q->r.limit : DEFAULT_SHOWN_TRENDS;

        return t->series_count < limit ? t->series_count : (size_t)limit;
}

static int64_t get_step_ms(const struct trend *t, size_t step)
{
        return (t->first_ns + (int64_t)step * t->step_ns) / 1000000;
}

static void put_trend_text(const struct trend *t, struct buf *ret)
{
        for (size_t i = 0; i < count_shown_trends(t); i++) {
                const struct trend_series *s = &t->series[i];

                buf_printf(ret, "%s%s%s", s->function, *s->file ? "  " : "", s->file);
                for (int k = 0; k < TREND_LABELS; k++)
                        if (t->by[k])
                                buf_printf(ret, "  %s=\"%s\"", label_names[k], s->labels[k]);
                buf_append_str(ret, "\n");
                for (size_t k = 0; k < t->count && !work_meter_add(t->q->meter, 16, NULL); k++) {
                        const struct trend_point *p = &s->points[k];
                        char time[32], total[40], self[40];

                        if (!t->all[k].samples)
                                continue;
                        buf_printf(ret, "%s  total %12s  %6.2f%%  self %12s  %6.2f%%\n",
                                   format_time_utc(get_step_ms(t, k) * 1000000, time, sizeof time),
                                   format_value(p->total, t->unit, total, sizeof total),
                                   compute_percent(p->total, t->all[k].self),
                                   format_value(p->self, t->unit, self, sizeof self),
                                   compute_percent(p->self, t->all[k].self));
                }
        }
}

static void put_trend_csv(const struct trend *t, struct buf *ret)
{
        buf_append_str(ret, "time_ms,function,file,");
        for (int k = 0; k < TREND_LABELS; k++)
                if (t->by[k])
                        csv_put_text(ret, label_names[k], ',');
        buf_append_str(ret, "self,total,samples,all\r\n");
        for (size_t i = 0; i < count_shown_trends(t); i++) {
                const struct trend_series *s = &t->series[i];

                for (size_t k = 0; k < t->count && !work_meter_add(t->q->meter, 16, NULL); k++) {
                        buf_printf(ret, "%" PRId64 ",", get_step_ms(t, k));
                        csv_put_text(ret, s->function, ',');
                        csv_put_text(ret, s->file, ',');
                        for (int n = 0; n < TREND_LABELS; n++)
                                if (t->by[n])
                                        csv_put_text(ret, s->labels[n], ',');
                        buf_printf(ret, "%" PRId64 ",%" PRId64 ",%" PRIu64 ",%" PRId64 "\r\n", s->points[k].self,
                                   s->points[k].total, s->points[k].samples, t->all[k].self);
                }
        }
}

/* Each point is [time in ms, self, total, samples]. */
static void put_trend_series(const struct trend *t, const struct trend_series *s, struct json_out *j)
{
        json_out_object(j, NULL);
        json_out_str(j, "function", s->function);
        json_out_str(j, "file", s->file);
        json_out_object(j, "labels");
        for (int k = 0; k < TREND_LABELS; k++)
                if (t->by[k])
                        json_out_str(j, label_names[k], s->labels[k]);
        json_out_object_end(j);
        json_out_int(j, "self", s->sum.self);
        json_out_int(j, "total", s->sum.total);
        json_out_uint(j, "samples", s->sum.samples);
        json_out_array(j, "points");
        for (size_t k = 0; k < t->count && !work_meter_add(t->q->meter, 16, NULL); k++) {
                json_out_array(j, NULL);
                json_out_int(j, NULL, get_step_ms(t, k));
                json_out_int(j, NULL, s->points[k].self);
                json_out_int(j, NULL, s->points[k].total);
                json_out_uint(j, NULL, s->points[k].samples);
                json_out_array_end(j);
        }
        json_out_array_end(j);
        json_out_object_end(j);
}

static void put_trend_json(const struct trend *t, struct buf *ret)
{
        struct json_out j;

        json_out_init(&j, ret);
        json_out_object(&j, NULL);
        json_out_str(&j, "type", t->type.id);
        json_out_str(&j, "unit", t->unit);
        json_out_int(&j, "step_ms", t->step_ns / 1000000);
        json_out_uint(&j, "history_hours", t->sources.history_hours);
        json_out_uint(&j, "sample_hours", t->sources.sample_hours);
        type_plan_put_json(&t->type.plan, &j);
        json_out_uint(&j, "series_count", t->series_count);
        json_out_array(&j, "all");
        for (size_t k = 0; k < t->count && !work_meter_add(t->q->meter, 16, NULL); k++) {
                json_out_array(&j, NULL);
                json_out_int(&j, NULL, get_step_ms(t, k));
                json_out_int(&j, NULL, t->all[k].self);
                json_out_uint(&j, NULL, t->all[k].samples);
                json_out_array_end(&j);
        }
        json_out_array_end(&j);
        json_out_array(&j, "series");
        for (size_t i = 0; i < count_shown_trends(t); i++)
                put_trend_series(t, &t->series[i], &j);
        json_out_array_end(&j);
        json_out_object_end(&j);
}

/* ---- the entry point ---- */

static enum status set_trend_steps(struct trend *t)
{
        const struct query_selection *s = &t->q->r.selection;
        int64_t hours = (s->to_unix_ns - 1) / NS_PER_HOUR - s->from_unix_ns / NS_PER_HOUR + 1, rest;

        t->step_ns = t->q->r.step_ns                 ? t->q->r.step_ns
                     : hours <= HOURLY_RANGE_HOURS   ? NS_PER_HOUR
                     : hours / DAY_HOURS < MOST_DAYS ? DAY_HOURS * NS_PER_HOUR
                                                     : 7 * DAY_HOURS * NS_PER_HOUR;
        if (t->step_ns % NS_PER_HOUR)
                return error_set(t->q->err, ST_USAGE,
                                 "the step of a trend is a number of whole hours, such as 1h or 1d");
        rest = s->from_unix_ns % t->step_ns;
        t->first_ns = s->from_unix_ns - (rest < 0 ? rest + t->step_ns : rest);
        if ((s->to_unix_ns - t->first_ns - 1) / t->step_ns >= LIMIT_SERIES_POINTS)
                return error_set(t->q->err, ST_USAGE, "a trend may have up to %d points: use a longer step",
                                 LIMIT_SERIES_POINTS);
        t->count = (size_t)((s->to_unix_ns - t->first_ns - 1) / t->step_ns + 1);
        t->all = calloc(t->count + 1, sizeof *t->all);
        return t->all ? ST_OK : error_no_memory(t->q->err);
}

static enum status parse_trend_labels(struct trend *t)
{
        const struct label_list *by = &t->q->r.by;

        for (size_t i = 0; i < by->count; i++) {
                int label = 0;

                while (label < TREND_LABELS && strcmp(by->names[i], label_names[label]) != 0)
                        label++;
                if (label == TREND_LABELS)
                        return error_set(t->q->err, ST_USAGE,
                                         "trends are by service_name, service_version or build_id, not by '%.60s'",
                                         by->names[i]);
                t->by[label] = true;
        }
        return ST_OK;
}

static enum status load_trend(struct trend *t)
{
        struct query_call *q = t->q;
        const char *function = query_param_get(&q->params, "", "function");
        struct scan_filter filter;
        enum status st;

        if (!function)
                return error_set(q->err, ST_USAGE,
                                 "the parameter function is missing: a regular expression for the whole name");
        st = parse_trend_labels(t);
        if (!st)
                st = regex_match_create(function, q->meter, &t->function, q->err);
        if (!st)
                st = set_trend_steps(t);
        if (!st)
                st = history_choose_type(t->q, &t->type);
        if (st || !*t->type.id)
                return st;
        filter = history_type_make_filter(&t->type, &q->r.selection);
        st = history_visit_selection(q->scan, &filter, add_trend_row, t, &t->sources, q->err);
        if (!st && t->series_count)
                qsort(t->series, t->series_count, sizeof *t->series, compare_trends);
        return st;
}

enum status query_answer_trend(struct query_call *q)
{
        _cleanup_(trend_deinit) struct trend t = { .q = q, .memory.use = MEMORY_QUERIES };
        enum status st;

        arena_init_budget(&t.arena, LIMIT_SCAN_MEMORY_BYTES, MEMORY_QUERIES);
        buf_init(&t.scratch, KiB(128));
        buf_init(&t.normal, KiB(128));
        st = load_trend(&t);
        if (st)
                return st;
        if (!t.series_count && *t.type.id && !profile_type_is_gauge(t.type.id))
                buf_printf(&q->note, "%sno selected sample has such a function", q->note.size ? "; " : "");
        q->content_type = query_call_content_type(q);
        if (q->r.format == FORMAT_TEXT)
                put_trend_text(&t, q->ret);
        else if (q->r.format == FORMAT_CSV)
                put_trend_csv(&t, q->ret);
        else
                put_trend_json(&t, q->ret);
        return buf_status(q->ret, q->err, "trends");
}
