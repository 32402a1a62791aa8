/* SPDX-License-Identifier: Apache-2.0 */
#include "query/series.h"

#include <inttypes.h>
#include <stdlib.h>

#include "common/json_out.h"
#include "profile-formats/profile_type.h"
#include "query/unit_text.h"

#define NS_PER_S INT64_C(1000000000)

struct series {
        int64_t first_ns, step_ns;
        size_t count;
        int64_t *values;   /* owned */
        uint64_t *samples; /* owned */
};

static enum status add_series_sample(void *context, int64_t time_unix_ns, int64_t value, const stack_id id)
{
        struct series *s = context;
        int64_t at = (time_unix_ns - s->first_ns) / s->step_ns;

        (void)id;
        if (time_unix_ns >= s->first_ns && (uint64_t)at < s->count) {
                add_wrapping(&s->values[at], value);
                s->samples[at]++;
        }
        return ST_OK;
}

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

static void put_series_points(const struct series *s, const struct query_request *r, const char *type, struct buf *ret)
{
        size_t n = 0;
        const char *unit = type ? profile_type_part(type, TYPE_SAMPLE_UNIT, &n) : "";
        struct json_out j;

        if (r->format == FORMAT_TEXT) {
                char unit_text[32], time[32], value[40];

                snprintf(unit_text, sizeof unit_text, "%.*s", (int)n, unit);
                for (size_t i = 0; i < s->count; i++)
                        buf_printf(ret, "%s  %12s  %8" PRIu64 " samples\n",
                                   format_time_utc(s->first_ns + (int64_t)i * s->step_ns, time, sizeof time),
                                   format_value(s->values[i], unit_text, value, sizeof value), s->samples[i]);
                return;
        }
        json_out_init(&j, ret);
        json_out_object(&j, NULL);
        json_out_str(&j, "type", type ? type : "");
        json_out_strn(&j, "unit", unit, n);
        json_out_int(&j, "step_ms", s->step_ns / 1000000);
        json_out_array(&j, "points"); /* [time in ms, value, samples] */
        for (size_t i = 0; i < s->count; i++) {
                json_out_array(&j, NULL);
                json_out_int(&j, NULL, (s->first_ns + (int64_t)i * s->step_ns) / 1000000);
                json_out_int(&j, NULL, s->values[i]);
                json_out_uint(&j, NULL, s->samples[i]);
                json_out_array_end(&j);
        }
        json_out_array_end(&j);
        json_out_object_end(&j);
}

enum status put_series(struct store_scan *scan, const struct query_request *r, const char *type, struct buf *ret,
                       struct error *err)
{
        const struct query_selection *sel = &r->selection;
        const struct scan_filter filter = query_selection_make_filter(sel, type);
        struct series s = { .step_ns = r->step_ns };
        uint64_t range = (uint64_t)sel->to_unix_ns - (uint64_t)sel->from_unix_ns, count;
        int64_t rest;
        enum status st;

        if (range > INT64_MAX)
                return error_set(err, ST_USAGE, "the time range is longer than 292 years");
        if (!s.step_ns)
                s.step_ns = choose_step((int64_t)range);
        rest = sel->from_unix_ns % s.step_ns;
        s.first_ns = sel->from_unix_ns - (rest < 0 ? rest + s.step_ns : rest);
        count = ((uint64_t)sel->to_unix_ns - (uint64_t)s.first_ns + (uint64_t)s.step_ns - 1) / (uint64_t)s.step_ns;
        if (count > LIMIT_SERIES_POINTS)
                return error_set(err, ST_USAGE, "a series may have up to %d points: take a longer step",
                                 LIMIT_SERIES_POINTS);
        s.count = (size_t)count;
        s.values = calloc(s.count + 1, sizeof *s.values);
        s.samples = calloc(s.count + 1, sizeof *s.samples);
        st = s.values && s.samples ? ST_OK : error_no_memory(err);
        if (!st && type)
                st = store_scan_visit(scan, &filter, add_series_sample, &s, err);
        if (!st) {
                put_series_points(&s, r, type, ret);
                st = buf_status(ret, err, "series");
        }
        free(s.values);
        free(s.samples);
        return st;
}
