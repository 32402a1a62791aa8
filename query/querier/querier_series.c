/* SPDX-License-Identifier: Apache-2.0 */
/* SelectSeries. */
#include <math.h>
#include <string.h>

#include "query/operations/series.h"
#include "query/querier/querier.h"
#include "query/querier/querier_call.h"

#define NS_PER_S 1e9
#define NS_PER_MS INT64_C(1000000)
#define OTHER_SERIES "other"

static enum status set_step(struct querier_call *c, double step_s)
{
        if (step_s == 0)
                return ST_OK; /* default: chosen by the range */
        if (!(step_s >= 0.001 && step_s <= 366 * 86400.0))
                return error_set(c->q.err, ST_USAGE, "step must be a number of seconds from 0.001 to a year");
        c->q.r.step_ns = (int64_t)llround(step_s * NS_PER_S);
        return ST_OK;
}

/* Labels of the type are equal for all samples: they do not form groups, but are added to every series. */
static enum status set_groups(struct querier_call *c, const Querier__SelectSeriesRequest *r)
{
        struct label_list *by = &c->q.r.by;

        if (r->n_group_by > LIMIT_GROUP_LABELS + TYPE_LABEL_COUNT)
                return error_set(c->q.err, ST_USAGE, "group_by may have up to %d labels, and those of the type",
                                 LIMIT_GROUP_LABELS);
        for (size_t i = 0; i < r->n_group_by; i++) {
                if (!*r->group_by[i])
                        return error_set(c->q.err, ST_USAGE, "a label in group_by has no name");
                if (querier_is_type_label(r->group_by[i]))
                        continue;
                if (by->count == LIMIT_GROUP_LABELS)
                        return error_set(c->q.err, ST_USAGE, "group_by may have up to %d labels", LIMIT_GROUP_LABELS);
                by->names[by->count++] = r->group_by[i];
        }
        if (r->limit < 0)
                return error_set(c->q.err, ST_USAGE, "limit is negative");
        c->q.r.groups = r->limit && r->limit < LIMIT_SHOWN_GROUPS ? (uint64_t)r->limit : LIMIT_SHOWN_GROUPS;
        return ST_OK;
}

static enum status add_series_label(struct querier_call *c, Querier__Series *series, const char *name,
                                    const char *value, size_t n)
{
        Querier__LabelPair *pair;

        if (!n)
                return ST_OK; /* the samples lack this label */
        pair = querier_make_label_pair(c, name, value, n);
        if (!pair)
                return querier_get_failure(c);
        series->labels[series->n_labels++] = pair;
        return ST_OK;
}

static bool is_named_before(const Querier__SelectSeriesRequest *r, size_t i)
{
        for (size_t k = 0; k < i; k++)
                if (strcmp(r->group_by[k], r->group_by[i]) == 0)
                        return true;
        return false;
}

static enum status make_series_labels(struct querier_call *c, const Querier__SelectSeriesRequest *r,
                                      const struct label_group *g, Querier__Series *ret)
{
        enum status st = ST_OK;

        ret->labels = querier_alloc(c, r->n_group_by + 1, sizeof(*ret->labels));
        if (!ret->labels)
                return querier_get_failure(c);
        for (size_t i = 0, at = 0; !st && i < r->n_group_by; i++) {
                const char *name = r->group_by[i], *value;
                size_t n;

                if (querier_is_type_label(name)) {
                        value = querier_get_type_label(name, c->q.r.type, &n);
                } else {
                        value = g->values ? g->values[at] : OTHER_SERIES;
                        at++;
                        if (!*value && strcmp(name, "service_name") == 0)
                                value = UNKNOWN_SERVICE;
                        n = strlen(value);
                }
                if (!is_named_before(r, i))
                        st = add_series_label(c, ret, name, value, n);
        }
        return st;
}

int64_t querier_round_point(double value)
{
        if (isnan(value))
                return 0;
        return value >= 0x1p63 ? INT64_MAX : value < -0x1p63 ? INT64_MIN : (int64_t)value;
}

/* Steps without samples get no point. */
static enum status make_series_points(struct querier_call *c, const struct series *s, uint32_t group,
                                      Querier__Series *ret)
{
        Querier__Point *points;
        size_t count = 0;

        for (size_t i = 0; i < s->count; i++)
                count += sample_count_round(s->samples[group * s->count + i]) != 0;
        points = querier_alloc(c, count + 1, sizeof *points);
        ret->points = querier_alloc(c, count + 1, sizeof(*ret->points));
        if (!points || !ret->points)
                return querier_get_failure(c);
        for (size_t i = 0; i < s->count; i++) {
                size_t at = group * s->count + i;
                Querier__Point *p = &points[ret->n_points];
                uint64_t samples;

                samples = sample_count_round(s->samples[at]);
                if (!samples)
                        continue;
                querier__point__init(p);
                p->timestamp = (s->first_ns + (int64_t)i * s->step_ns) / NS_PER_MS;
                p->value = (double)s->values[at];
                if (c->q.r.average)
                        p->value /= (double)samples;
                ret->points[ret->n_points++] = p;
        }
        return work_meter_add(c->q.meter, 16 * s->count, c->q.err);
}

static enum status make_series_answer(struct querier_call *c, const Querier__SelectSeriesRequest *r,
                                      const struct series *s)
{
        Querier__SelectSeriesResponse *answer = querier_alloc(c, 1, sizeof *answer);
        enum status st = ST_OK;

        if (!answer)
                return querier_get_failure(c);
        querier__select_series_response__init(answer);
        c->answer = &answer->base;
        answer->series = querier_alloc(c, s->groups.shown_count + (size_t)1, sizeof(*answer->series));
        if (!answer->series)
                return querier_get_failure(c);
        for (uint32_t g = 0; !st && g < s->groups.shown_count; g++) {
                Querier__Series *series;

                if (!s->groups.shown[g].values && s->groups.labels->count && r->limit)
                        continue; /* the merged series beyond the limit */
                series = querier_alloc(c, 1, sizeof *series);
                if (!series)
                        return querier_get_failure(c);
                querier__series__init(series);
                st = make_series_labels(c, r, &s->groups.shown[g], series);
                if (!st)
                        st = make_series_points(c, s, g, series);
                if (!st && series->n_points)
                        answer->series[answer->n_series++] = series;
        }
        return st;
}

enum status querier_answer_select_series(struct querier_call *c, const void *request)
{
        const Querier__SelectSeriesRequest *r = request;
        const struct querier_choice choice = {
                .type = r->profile_typeid, .selector = r->label_selector, .start_ms = r->start, .end_ms = r->end
        };
        _cleanup_querier_selection_ struct querier_selection selection = { 0 };
        _cleanup_series_ struct series s = { 0 };
        enum status st;

        if (!*r->profile_typeid)
                return error_set(c->q.err, ST_USAGE, "profile_typeID is missing");
        if (!r->start && !r->end)
                return error_set(c->q.err, ST_USAGE, "start and end are missing");
        if (r->stack_trace_selector && r->stack_trace_selector->n_call_site)
                return error_set(c->q.err, ST_UNSUPPORTED,
                                 "stack_trace_selector is not supported for series, which sum whole samples");
        st = set_step(c, r->step);
        if (!st)
                st = set_groups(c, r);
        if (!st)
                st = querier_selection_init(&selection, c, &choice);
        if (st)
                return st;
        querier_call_select(c, &selection);
        c->q.r.average = r->aggregation == QUERIER__TIME_SERIES_AGGREGATION_TYPE__TIME_SERIES_AGGREGATION_TYPE_AVERAGE;
        st = series_load(&c->q, NULL, &s);
        return st ? st : make_series_answer(c, r, &s);
}
