/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The methods of parca.query.v1alpha1.QueryService. Lists and series are those of querier.v1 in other messages; Query
 * has its own. docs/formats/parca.md
 */
#include <string.h>

#include "common/compress/compress.h"
#include "common/limits.h"
#include "profile-formats/proto/parca_query.pb-c.h"
#include "query/engine/top.h"
#include "query/querier/flamebearer.h"
#include "query/querier/parca_tree.h"
#include "query/querier/querier.h"

#define NS_PER_S INT64_C(1000000000)
#define MS_PER_S 1000
#define NS_PER_MS 1000000
#define TOP_ROWS_MOST 10000
#define DEFAULT_POINTS 250
#define PPROF_GZIP_LEVEL 1

enum parca_mode { MODE_SINGLE = 0, MODE_DIFF = 1, MODE_MERGE = 2 };
enum parca_report {
        REPORT_DEFAULT = 0,
        REPORT_PPROF = 1,
        REPORT_TOP = 2,
        REPORT_FLAMEGRAPH_TABLE = 4,
        REPORT_FLAMEGRAPH_ARROW = 5
};

/* ---- times ---- */

/* A time out of range becomes one that the selection rejects. */
static int64_t convert_time_to_ms(const ParcaQuery__Timestamp *t)
{
        int64_t ms;

        if (!t)
                return 0;
        if (__builtin_mul_overflow(t->seconds, MS_PER_S, &ms) || __builtin_add_overflow(ms, t->nanos / NS_PER_MS, &ms))
                return -1;
        return ms;
}

static ParcaQuery__Timestamp *make_timestamp(struct querier_call *c, int64_t ms)
{
        ParcaQuery__Timestamp *t = querier_alloc(c, 1, sizeof *t);

        if (!t)
                return NULL;
        parca_query__timestamp__init(t);
        t->seconds = ms / MS_PER_S;
        t->nanos = (int32_t)(ms % MS_PER_S) * NS_PER_MS;
        return t;
}

/* ---- lists ---- */

enum status parca_answer_profile_types(struct querier_call *c, const void *request)
{
        const ParcaQuery__ProfileTypesRequest *r = request;
        Querier__ProfileTypesRequest inner = QUERIER__PROFILE_TYPES_REQUEST__INIT;
        ParcaQuery__ProfileTypesResponse *answer = querier_alloc(c, 1, sizeof *answer);
        const Querier__ProfileTypesResponse *found;
        enum status st;

        if (!answer)
                return querier_get_failure(c);
        inner.start = convert_time_to_ms(r->start);
        inner.end = convert_time_to_ms(r->end);
        st = querier_answer_profile_types(c, &inner);
        if (st)
                return st;
        found = (const Querier__ProfileTypesResponse *)c->answer;
        parca_query__profile_types_response__init(answer);
        answer->types = querier_alloc(c, found->n_profile_types + 1, sizeof(*answer->types));
        if (!answer->types)
                return querier_get_failure(c);
        for (size_t i = 0; i < found->n_profile_types; i++) {
                const Querier__ProfileType *from = found->profile_types[i];
                ParcaQuery__ProfileType *t = querier_alloc(c, 1, sizeof *t);

                if (!t)
                        return querier_get_failure(c);
                parca_query__profile_type__init(t);
                t->name = from->name;
                t->sample_type = from->sample_type;
                t->sample_unit = from->sample_unit;
                t->period_type = from->period_type;
                t->period_unit = from->period_unit;
                answer->types[answer->n_types++] = t;
        }
        c->answer = &answer->base;
        return ST_OK;
}

/* The requested selectors, each preceded by the type; without selectors only the type. */
struct parca_match {
        char **selectors;
        size_t count;
};

static enum status join_type_and_matches(struct querier_call *c, const char *type, char **match, size_t count,
                                         struct parca_match *ret)
{
        *ret = (struct parca_match){ match, count };
        if (!*type)
                return ST_OK;
        ret->selectors = querier_alloc(c, count + 1, sizeof *ret->selectors);
        ret->count = count ? count : 1;
        for (size_t i = 0; ret->selectors && i < ret->count; i++) {
                const char *selector = count ? match[i] : "{}";
                size_t type_size = strlen(type), size = strlen(selector);

                ret->selectors[i] = querier_alloc(c, type_size + size + 1, 1);
                if (!ret->selectors[i])
                        return querier_get_failure(c);
                memcpy(ret->selectors[i], type, type_size);
                memcpy(ret->selectors[i] + type_size, selector, size);
        }
        return ret->selectors ? ST_OK : querier_get_failure(c);
}

/* Omits labels that begin with "__", which are derived from the type. */
enum status parca_answer_labels(struct querier_call *c, const void *request)
{
        const ParcaQuery__LabelsRequest *r = request;
        Querier__LabelNamesRequest inner = QUERIER__LABEL_NAMES_REQUEST__INIT;
        ParcaQuery__LabelsResponse *answer = querier_alloc(c, 1, sizeof *answer);
        struct parca_match m = { 0 };
        enum status st =
                answer ? join_type_and_matches(c, r->profile_type, r->match, r->n_match, &m) : querier_get_failure(c);

        if (st)
                return st;
        inner.matchers = m.selectors;
        inner.n_matchers = m.count;
        inner.start = convert_time_to_ms(r->start);
        inner.end = convert_time_to_ms(r->end);
        st = querier_answer_label_names(c, &inner);
        if (st)
                return st;
        parca_query__labels_response__init(answer);
        answer->label_names = ((const Querier__NamesResponse *)c->answer)->names;
        for (size_t i = 0; i < ((const Querier__NamesResponse *)c->answer)->n_names; i++)
                if (strncmp(answer->label_names[i], "__", 2) != 0)
                        answer->label_names[answer->n_label_names++] = answer->label_names[i];
        c->answer = &answer->base;
        return ST_OK;
}

enum status parca_answer_values(struct querier_call *c, const void *request)
{
        const ParcaQuery__ValuesRequest *r = request;
        Querier__LabelValuesRequest inner = QUERIER__LABEL_VALUES_REQUEST__INIT;
        ParcaQuery__ValuesResponse *answer = querier_alloc(c, 1, sizeof *answer);
        struct parca_match m = { 0 };
        enum status st =
                answer ? join_type_and_matches(c, r->profile_type, r->match, r->n_match, &m) : querier_get_failure(c);

        if (st)
                return st;
        inner.name = r->label_name;
        inner.matchers = m.selectors;
        inner.n_matchers = m.count;
        inner.start = convert_time_to_ms(r->start);
        inner.end = convert_time_to_ms(r->end);
        st = querier_answer_label_values(c, &inner);
        if (st)
                return st;
        parca_query__values_response__init(answer);
        answer->label_values = ((const Querier__NamesResponse *)c->answer)->names;
        answer->n_label_values = ((const Querier__NamesResponse *)c->answer)->n_names;
        c->answer = &answer->base;
        return ST_OK;
}

/* ---- a selector with its type: TYPE{...} ---- */

struct parca_query_text {
        const char *selector; /* borrowed */
        char *type;           /* in the memory of the answer */
};

static enum status split_parca_query(struct querier_call *c, const char *query, struct parca_query_text *ret)
{
        const char *brace = strchr(query, '{');
        size_t n = brace ? (size_t)(brace - query) : strlen(query);

        if (!n)
                return error_set(c->q.err, ST_USAGE, "the query '%.100s' does not begin with a profile type", query);
        ret->selector = brace ? brace : "";
        ret->type = querier_copy_text(c, query, n);
        return ret->type ? ST_OK : querier_get_failure(c);
}

static ParcaQuery__ValueType *make_parca_value_type(struct querier_call *c, const char *id, enum profile_type_part type,
                                                    enum profile_type_part unit)
{
        ParcaQuery__ValueType *v = querier_alloc(c, 1, sizeof *v);
        const char *text;
        size_t n;

        if (!v)
                return NULL;
        parca_query__value_type__init(v);
        text = profile_type_part(id, type, &n);
        v->type = querier_copy_text(c, text, n);
        text = profile_type_part(id, unit, &n);
        v->unit = querier_copy_text(c, text, n);
        return v->type && v->unit ? v : NULL;
}

/* ---- QueryRange ---- */

/* The step of a graph with at most `limit` points, at least a second. */
static double choose_step_s(const ParcaQuery__QueryRangeRequest *r, int64_t start_ms, int64_t end_ms)
{
        double range_s = ((double)end_ms - (double)start_ms) / MS_PER_S, points = r->limit ? r->limit : DEFAULT_POINTS;

        if (r->step && (r->step->seconds > 0 || r->step->nanos > 0))
                return (double)r->step->seconds + (double)r->step->nanos / (double)NS_PER_S;
        return range_s / points > 1 ? range_s / points : 1;
}

static enum status make_metrics_labels(struct querier_call *c, const Querier__Series *from,
                                       ParcaQuery__MetricsSeries *ret)
{
        ret->labelset = querier_alloc(c, 1, sizeof *ret->labelset);
        if (!ret->labelset)
                return querier_get_failure(c);
        parca_query__label_set__init(ret->labelset);
        ret->labelset->labels = querier_alloc(c, from->n_labels + 1, sizeof(*ret->labelset->labels));
        if (!ret->labelset->labels)
                return querier_get_failure(c);
        for (size_t i = 0; i < from->n_labels; i++) {
                ParcaQuery__Label *l = querier_alloc(c, 1, sizeof *l);

                if (!l)
                        return querier_get_failure(c);
                parca_query__label__init(l);
                l->name = from->labels[i]->name;
                l->value = from->labels[i]->value;
                ret->labelset->labels[ret->labelset->n_labels++] = l;
        }
        return ST_OK;
}

/* The value of a gauge is not per time. */
static enum status make_metrics_samples(struct querier_call *c, const Querier__Series *from, const char *type,
                                        int64_t step_ns, ParcaQuery__MetricsSeries *ret)
{
        ret->samples = querier_alloc(c, from->n_points + 1, sizeof(*ret->samples));
        if (!ret->samples)
                return querier_get_failure(c);
        for (size_t i = 0; i < from->n_points; i++) {
                ParcaQuery__MetricsSample *s = querier_alloc(c, 1, sizeof *s);

                if (!s)
                        return querier_get_failure(c);
                parca_query__metrics_sample__init(s);
                s->timestamp = make_timestamp(c, from->points[i]->timestamp);
                if (!s->timestamp)
                        return querier_get_failure(c);
                s->value = querier_round_point(from->points[i]->value);
                s->duration = step_ns;
                s->value_per_second = profile_type_is_gauge(type) ? from->points[i]->value
                                      : step_ns ? from->points[i]->value * (double)NS_PER_S / (double)step_ns
                                                : 0;
                ret->samples[ret->n_samples++] = s;
        }
        return work_meter_add(c->q.meter, 16 * from->n_points, c->q.err);
}

static enum status make_metrics_series(struct querier_call *c, const Querier__Series *from, const char *type,
                                       int64_t step_ns, ParcaQuery__MetricsSeries **ret)
{
        ParcaQuery__MetricsSeries *series = querier_alloc(c, 1, sizeof *series);
        enum status st;

        if (!series)
                return querier_get_failure(c);
        parca_query__metrics_series__init(series);
        st = make_metrics_labels(c, from, series);
        if (!st)
                st = make_metrics_samples(c, from, type, step_ns, series);
        if (st)
                return st;
        series->period_type = make_parca_value_type(c, type, TYPE_PERIOD_TYPE, TYPE_PERIOD_UNIT);
        series->sample_type = make_parca_value_type(c, type, TYPE_SAMPLE_TYPE, TYPE_SAMPLE_UNIT);
        if (!series->period_type || !series->sample_type)
                return querier_get_failure(c);
        *ret = series;
        return ST_OK;
}

enum status parca_answer_query_range(struct querier_call *c, const void *request)
{
        const ParcaQuery__QueryRangeRequest *r = request;
        Querier__SelectSeriesRequest inner = QUERIER__SELECT_SERIES_REQUEST__INIT;
        ParcaQuery__QueryRangeResponse *answer = querier_alloc(c, 1, sizeof *answer);
        const Querier__SelectSeriesResponse *found;
        struct parca_query_text text = { 0 };
        enum status st = answer ? split_parca_query(c, r->query, &text) : querier_get_failure(c);

        if (st)
                return st;
        inner.profile_typeid = text.type;
        inner.label_selector = (char *)(uintptr_t)text.selector;
        inner.start = convert_time_to_ms(r->start);
        inner.end = convert_time_to_ms(r->end);
        inner.group_by = r->sum_by;
        inner.n_group_by = r->n_sum_by;
        inner.step = choose_step_s(r, inner.start, inner.end);
        st = querier_answer_select_series(c, &inner);
        if (st)
                return st;
        found = (const Querier__SelectSeriesResponse *)c->answer;
        parca_query__query_range_response__init(answer);
        answer->series = querier_alloc(c, found->n_series + 1, sizeof(*answer->series));
        if (!answer->series)
                return querier_get_failure(c);
        for (size_t i = 0; !st && i < found->n_series; i++)
                st = make_metrics_series(c, found->series[i], text.type, c->q.r.step_ns,
                                         &answer->series[answer->n_series++]);
        c->answer = &answer->base;
        return st;
}

/* ---- Query: which samples ---- */

struct parca_side {
        const char *query;
        int64_t start_ms, end_ms;
};

static struct parca_side make_merge_side(const ParcaQuery__MergeProfile *m)
{
        return (struct parca_side){ m->query, convert_time_to_ms(m->start), convert_time_to_ms(m->end) };
}

static struct parca_side make_single_side(const ParcaQuery__SingleProfile *s)
{
        return (struct parca_side){ s->query, convert_time_to_ms(s->time), convert_time_to_ms(s->time) };
}

static enum status read_diff_side(struct querier_call *c, const ParcaQuery__ProfileDiffSelection *s,
                                  struct parca_side *ret)
{
        if (s && s->merge)
                *ret = make_merge_side(s->merge);
        else if (s && s->single)
                *ret = make_single_side(s->single);
        else
                return error_set(c->q.err, ST_USAGE, "a side of the diff is missing");
        return ST_OK;
}

/* @param count_ret  2 for a diff. */
static enum status read_query_sides(struct querier_call *c, const ParcaQuery__QueryRequest *r,
                                    struct parca_side sides[2], unsigned *count_ret)
{
        enum status st;

        *count_ret = 1;
        if (r->mode == MODE_MERGE && r->merge)
                sides[0] = make_merge_side(r->merge);
        else if (r->mode == MODE_SINGLE && r->single)
                sides[0] = make_single_side(r->single);
        else if (r->mode == MODE_DIFF && r->diff) {
                *count_ret = 2;
                st = read_diff_side(c, r->diff->a, &sides[0]);
                return st ? st : read_diff_side(c, r->diff->b, &sides[1]);
        } else
                return error_set(c->q.err, ST_USAGE, "mode %d requires a selection: single, diff or merge", r->mode);
        return ST_OK;
}

static enum status check_query_options(struct querier_call *c, const ParcaQuery__QueryRequest *r)
{
        if (r->n_filter || *r->filter_query)
                return error_set(c->q.err, ST_UNSUPPORTED, "stack filters are not supported");
        if (r->invert_call_stack || *r->sandwich_by_function)
                return error_set(c->q.err, ST_UNSUPPORTED, "inverted call stacks and sandwiches are not supported");
        switch (r->report_type) {
        case REPORT_DEFAULT:
        case REPORT_PPROF:
        case REPORT_TOP:
        case REPORT_FLAMEGRAPH_TABLE:
        case REPORT_FLAMEGRAPH_ARROW:
                return ST_OK;
        default:
                return error_set(c->q.err, ST_UNSUPPORTED,
                                 "report type %d is not supported: flame graph table, pprof and top are",
                                 r->report_type);
        }
}

static enum status init_side_selection(struct querier_call *c, const struct parca_side *side,
                                       struct querier_selection *ret)
{
        struct parca_query_text text;
        enum status st = split_parca_query(c, side->query, &text);
        const struct querier_choice choice = { .type = st ? NULL : text.type,
                                               .selector = st ? NULL : text.selector,
                                               .start_ms = side->start_ms,
                                               .end_ms = side->end_ms };

        return st ? st : querier_selection_init(ret, c, &choice);
}

/* ---- Query: reports ---- */

static enum status make_parca_flamegraph(struct querier_call *c, struct stack_view *v, char *unit,
                                         ParcaQuery__QueryResponse *answer)
{
        ParcaQuery__Flamegraph *g = querier_alloc(c, 1, sizeof *g);
        enum status st = g ? stack_view_draw(c, v) : querier_get_failure(c);

        if (st)
                return st;
        parca_query__flamegraph__init(g);
        g->unit = unit;
        for (uint32_t i = 0; i < v->drawing.count; i++)
                if ((int64_t)v->drawing.nodes[i].depth > g->height)
                        g->height = (int32_t)v->drawing.nodes[i].depth;
        st = parca_tree_encode(c, &v->l, &v->drawing, &g->root);
        answer->report_case = PARCA_QUERY__QUERY_RESPONSE__REPORT_FLAMEGRAPH;
        answer->flamegraph = g;
        answer->total = v->drawing.nodes[0].total[v->l.side_count - 1];
        return st;
}

static enum status make_parca_pprof(struct querier_call *c, ParcaQuery__QueryResponse *answer)
{
        _cleanup_buf_ struct buf plain, packed;
        enum status st;

        buf_init_budget(&plain, LIMIT_RESPONSE_BYTES, MEMORY_QUERIES);
        buf_init_budget(&packed, LIMIT_RESPONSE_BYTES, MEMORY_QUERIES);
        st = query_put_plain_pprof(&c->q, &plain);
        if (!st)
                st = gzip_compress(plain.data, plain.size, PPROF_GZIP_LEVEL, &packed, c->q.err);
        if (st)
                return st;
        answer->report_case = PARCA_QUERY__QUERY_RESPONSE__REPORT_PPROF;
        answer->pprof.data = querier_alloc(c, packed.size, 1);
        if (!answer->pprof.data)
                return querier_get_failure(c);
        memcpy(answer->pprof.data, packed.data, packed.size);
        answer->pprof.len = packed.size;
        return ST_OK;
}

static enum status make_top_node(struct querier_call *c, const struct loaded_sides *l, const struct top_row *row,
                                 ParcaQuery__TopNode **ret)
{
        unsigned last = l->side_count - 1;
        ParcaQuery__TopNode *node = querier_alloc(c, 1, sizeof *node);

        if (!node)
                return querier_get_failure(c);
        parca_query__top_node__init(node);
        node->meta = parca_make_meta(c, &l->frames.items[row->frame], row->line);
        if (!node->meta)
                return querier_get_failure(c);
        node->flat = row->flat[last];
        node->cumulative = row->cumulative[last];
        node->diff = last ? (int64_t)((uint64_t)row->cumulative[1] - (uint64_t)row->cumulative[0]) : 0;
        *ret = node;
        return work_meter_add(c->q.meter, 64, c->q.err);
}

static enum status make_parca_top(struct querier_call *c, struct stack_view *v, char *unit,
                                  ParcaQuery__QueryResponse *answer)
{
        ParcaQuery__Top *top = querier_alloc(c, 1, sizeof *top);
        struct top_side sides[2] = { { 0 } };
        const struct top_order by_value = { ORDER_FLAT, NULL };
        _cleanup_top_ struct top rows = { 0 };
        enum status st = top ? stack_view_load(c, v) : querier_get_failure(c);

        for (unsigned i = 0; !st && i < v->l.side_count; i++)
                sides[i] = top_side_of_all(&v->l.sides[i]);
        if (!st)
                st = top_build(&v->l.frames, sides, &by_value, &rows, c->q.err);
        if (st)
                return st;
        parca_query__top__init(top);
        top->unit = unit;
        top->list = querier_alloc(c, TOP_ROWS_MOST, sizeof(*top->list));
        if (!top->list)
                return querier_get_failure(c);
        for (size_t i = 0; !st && i < rows.count && i < TOP_ROWS_MOST; i++)
                st = make_top_node(c, &v->l, &rows.rows[i], &top->list[top->n_list++]);
        top->reported = (int32_t)top->n_list;
        answer->report_case = PARCA_QUERY__QUERY_RESPONSE__REPORT_TOP;
        answer->top = top;
        answer->total = v->l.sides[v->l.side_count - 1].total;
        return st;
}

/* A request for an Arrow flame graph gets a table: Grafana requests Arrow and reads both. */
enum status parca_answer_query(struct querier_call *c, const void *request)
{
        const ParcaQuery__QueryRequest *r = request;
        ParcaQuery__QueryResponse *answer = querier_alloc(c, 1, sizeof *answer);
        _cleanup_stack_view_ struct stack_view v = { 0 };
        struct parca_side sides[2];
        unsigned count = 0;
        const char *unit;
        char *unit_text;
        size_t n;
        enum status st = answer ? check_query_options(c, r) : querier_get_failure(c);

        if (!st)
                st = read_query_sides(c, r, sides, &count);
        if (!st && count > 1)
                st = init_side_selection(c, &sides[0], &v.base);
        if (!st)
                st = init_side_selection(c, &sides[count - 1], &v.selection);
        if (!st && count > 1 && strcmp(v.base.type, v.selection.type) != 0)
                st = error_set(c->q.err, ST_USAGE, "the sides of the diff have different profile types");
        if (!st && count > 1 && r->report_type == REPORT_PPROF)
                st = error_set(c->q.err, ST_UNSUPPORTED, "a diff cannot be a pprof file: query each side");
        if (st)
                return st;
        parca_query__query_response__init(answer);
        v.has_base = count > 1;
        querier_call_select(c, &v.selection);
        c->q.r.max_nodes = DEFAULT_FLAME_NODES;
        unit = profile_type_part(v.selection.type, TYPE_SAMPLE_UNIT, &n);
        unit_text = querier_copy_text(c, unit, n);
        c->answer = &answer->base;
        if (!unit_text)
                return querier_get_failure(c);
        if (r->report_type == REPORT_PPROF)
                return make_parca_pprof(c, answer);
        return r->report_type == REPORT_TOP ? make_parca_top(c, &v, unit_text, answer)
                                            : make_parca_flamegraph(c, &v, unit_text, answer);
}

/* Parca itself does not implement Series. */
enum status parca_answer_series(struct querier_call *c, const void *request)
{
        (void)request;
        return error_set(c->q.err, ST_UNSUPPORTED, "Series is not implemented, as in Parca: use Labels and Values");
}
