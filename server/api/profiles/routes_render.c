/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pyroscope's HTTP query API, for scripts, CI jobs and older Grafana panels: /pyroscope/render, render-diff,
 * label-values and label-names, and the same paths without the prefix, as Pyroscope 0.x had them. Each is answered by a
 * method of querier.v1, whose flame graph has the numbers of Pyroscope's flamebearer. docs/formats/querier.md
 *
 * Source: Grafana Pyroscope, Server HTTP API; its FlamebearerProfileV1.
 */
#include <string.h>

#include "common/clock.h"
#include "common/json/json_out.h"
#include "common/limits.h"
#include "common/text/number_text.h"
#include "profile-formats/profile_type.h"
#include "profile-formats/proto/querier.pb-c.h"
#include "query/engine/selector.h"
#include "query/engine/unit_text.h"
#include "query/querier/querier.h"
#include "server/core/query_work.h"
#include "server/core/route_tables.h"
#include "server/core/server_internal.h"

#define NS_PER_MS INT64_C(1000000)
#define NS_PER_S INT64_C(1000000000)
#define TIMELINE_POINTS 1500 /* at most, one more for a part of a step */
#define TIMELINE_MIN_STEP_S 15
#define DEFAULT_SAMPLE_RATE 100 /* of all types but CPU time, as in Pyroscope */

/* One request; its messages are in memory. */
struct render {
        struct http_request *req;
        struct query_work work;
        struct arena memory;
        int64_t now_unix_ns;
        struct error err;
};

static void render_init(struct render *r, struct http_request *req)
{
        r->req = req;
        r->now_unix_ns = wall_clock_ns();
        arena_init_budget(&r->memory, LIMIT_PROFILE_MEMORY_BYTES, MEMORY_QUERIES);
        query_work_init(&r->work, req, "querier");
}

static void render_deinit(struct render *r)
{
        arena_deinit(&r->memory);
}
#define _cleanup_render_ _cleanup_(render_deinit)

/* @param ret  the message of the answer. */
static enum status call_querier(struct render *r, const char *method, const void *request, const void **ret)
{
        const struct querier_input input = { .method = querier_find_method(method),
                                             .request = request,
                                             .now_unix_ns = r->now_unix_ns,
                                             .meter = &r->work.meter,
                                             .report = &r->work.report };
        const ProtobufCMessage *answer;
        enum status st = querier_run(get_request_tenant(r->req)->profiles, &input, &r->memory, &answer, &r->err);

        if (!st)
                *ret = answer;
        return st;
}

/* ---- parameters ---- */

/* @return ST_USAGE: missing or unreadable. */
static enum status read_time(struct render *r, const char *name, const char *fallback, int64_t *ms_ret)
{
        const char *text = http_query(r->req, name);
        int64_t ns;
        enum status st = time_text_parse(text && *text ? text : fallback, r->now_unix_ns, &ns, &r->err);

        if (!st)
                *ms_ret = ns / NS_PER_MS;
        return st;
}

/* The names of the parameters of a selection. */
struct selection_names {
        const char *query, *from, *until;
};

static enum status read_selection(struct render *r, const struct selection_names *names,
                                  Querier__SelectMergeStacktracesRequest *ret)
{
        const char *text = http_query(r->req, names->query), *brace;
        _cleanup_selector_ struct selector selector = { 0 };
        _cleanup_buf_ struct buf whole;
        enum status st;

        buf_init(&whole, LIMIT_SELECTOR_BYTES);
        querier__select_merge_stacktraces_request__init(ret);
        if (!text || !*text)
                return error_set(&r->err, ST_USAGE, "the parameter '%s' is missing", names->query);
        brace = strchr(text, '{');
        buf_printf(&whole, "%s%s", text, brace ? "" : "{}");
        st = buf_status(&whole, &r->err, names->query);
        if (!st)
                st = selector_parse(buf_cstr(&whole), NULL, &selector, &r->err);
        if (!st)
                st = read_time(r, names->from, "now-1h", &ret->start);
        if (!st)
                st = read_time(r, names->until, "now", &ret->end);
        if (st)
                return st;
        if (!selector.type)
                return error_set(&r->err, ST_USAGE,
                                 "'%s' does not begin with a profile type, such as "
                                 "process_cpu:cpu:nanoseconds:cpu:nanoseconds{service_name=\"api\"}",
                                 names->query);
        if (ret->start >= ret->end)
                return error_set(&r->err, ST_USAGE, "'%s' is not before '%s'", names->from, names->until);
        ret->profile_typeid = arena_strndup(&r->memory, selector.type, strlen(selector.type));
        ret->label_selector = (char *)(uintptr_t)(brace ? brace : "{}");
        return ret->profile_typeid ? ST_OK : arena_error(&r->memory, &r->err, "the request");
}

static enum status read_max_nodes(struct render *r, int64_t *ret)
{
        const char *text = http_query(r->req, "maxNodes");
        uint64_t n = 0;

        if (!text)
                text = http_query(r->req, "max-nodes");
        if (text && *text && (!parse_uint(text, &n) || n > INT32_MAX))
                return error_set(&r->err, ST_USAGE, "maxNodes '%.40s' is not a number of nodes", text);
        *ret = (int64_t)n;
        return ST_OK;
}

static enum status check_render_format(struct render *r)
{
        const char *format = http_query(r->req, "format");

        if (!format || !*format || strcmp(format, "json") == 0)
                return ST_OK;
        return error_set(&r->err, ST_USAGE, "the format '%.40s' is not supported; use json", format);
}

/* ---- answers ---- */

static void put_flamebearer(struct json_out *j, char *const *names, size_t name_count, Querier__Level *const *levels,
                            size_t level_count, int64_t total, int64_t max_self)
{
        json_out_object(j, "flamebearer");
        json_out_array(j, "names");
        for (size_t i = 0; i < name_count; i++)
                json_out_str(j, NULL, names[i]);
        json_out_array_end(j);
        json_out_array(j, "levels");
        for (size_t i = 0; i < level_count; i++) {
                json_out_array(j, NULL);
                for (size_t k = 0; k < levels[i]->n_values; k++)
                        json_out_int(j, NULL, levels[i]->values[k]);
                json_out_array_end(j);
        }
        json_out_array_end(j);
        json_out_int(j, "numTicks", total);
        json_out_int(j, "maxSelf", max_self);
        json_out_object_end(j);
}

/* Pyroscope names what its viewer understands: CPU time is in samples, as many a second as it has units, counts are
 * objects. */
static void put_metadata(struct json_out *j, const char *type, const char *format)
{
        size_t n, unit_size;
        const char *sample_type = profile_type_part(type, TYPE_SAMPLE_TYPE, &n);
        const char *unit = profile_type_part(type, TYPE_SAMPLE_UNIT, &unit_size);
        int64_t unit_ns = profile_type_get_time_unit(type, TYPE_SAMPLE_UNIT);
        bool is_cpu = profile_type_has_part(type, TYPE_SAMPLE_TYPE, "cpu") && unit_ns && unit_ns <= NS_PER_S;

        json_out_object(j, "metadata");
        json_out_str(j, "format", format);
        json_out_str(j, "spyName", "");
        json_out_int(j, "sampleRate", is_cpu ? NS_PER_S / unit_ns : DEFAULT_SAMPLE_RATE);
        if (is_cpu)
                json_out_str(j, "units", "samples");
        else if (profile_type_has_part(type, TYPE_SAMPLE_UNIT, "count"))
                json_out_str(j, "units", "objects");
        else
                json_out_strn(j, "units", unit, unit_size);
        json_out_strn(j, "name", sample_type, n);
        json_out_object_end(j);
}

static int64_t choose_timeline_step_s(const Querier__SelectMergeStacktracesRequest *selection)
{
        int64_t range_ms = selection->end - selection->start;
        int64_t step_s = (range_ms / 1000 + TIMELINE_POINTS - 1) / TIMELINE_POINTS;

        return step_s < TIMELINE_MIN_STEP_S ? TIMELINE_MIN_STEP_S : step_s;
}

/* @param series  NULL: no samples. */
static void put_timeline(struct json_out *j, const char *key, const Querier__SelectMergeStacktracesRequest *selection,
                         const Querier__Series *series)
{
        int64_t step_ms = choose_timeline_step_s(selection) * 1000;
        int64_t first_ms = selection->start / step_ms * step_ms;
        size_t at = 0;

        json_out_object(j, key);
        json_out_int(j, "startTime", first_ms / 1000);
        json_out_array(j, "samples");
        for (int64_t ms = first_ms; ms <= selection->end; ms += step_ms) {
                bool has_point = series && at < series->n_points && series->points[at]->timestamp < ms + step_ms;

                json_out_int(j, NULL, has_point ? querier_round_point(series->points[at++]->value) : 0);
        }
        json_out_array_end(j);
        json_out_int(j, "durationDelta", step_ms / 1000);
        json_out_str(j, "watermarks", NULL);
        json_out_object_end(j);
}

static void respond_json_array(const struct render *r, char *const *names, size_t count)
{
        struct json_out j;
        struct buf body;

        buf_init_budget(&body, LIMIT_RESPONSE_BYTES, MEMORY_ANSWERS);
        json_out_init(&j, &body);
        json_out_array(&j, NULL);
        for (size_t i = 0; i < count; i++)
                json_out_str(&j, NULL, names[i]);
        json_out_array_end(&j);
        query_work_finish(&r->work, &body);
        http_respond_packed(r->req, 200, "application/json", &body);
}

/* ---- render ---- */

struct render_answer {
        const Querier__SelectMergeStacktracesResponse *stacks;
        const Querier__SelectSeriesResponse *total, *groups; /* groups: NULL without groupBy */
};

static enum status load_timeline(struct render *r, const Querier__SelectMergeStacktracesRequest *selection,
                                 const char *group_by, const Querier__SelectSeriesResponse **ret)
{
        Querier__SelectSeriesRequest request = QUERIER__SELECT_SERIES_REQUEST__INIT;
        char *labels[1] = { (char *)(uintptr_t)group_by };
        const void *answer;
        enum status st;

        request.profile_typeid = selection->profile_typeid;
        request.label_selector = selection->label_selector;
        request.start = selection->start;
        request.end = selection->end;
        request.step = (double)choose_timeline_step_s(selection);
        request.group_by = labels;
        request.n_group_by = group_by != NULL;
        st = call_querier(r, "SelectSeries", &request, &answer);
        if (!st)
                *ret = answer;
        return st;
}

static enum status load_render(struct render *r, Querier__SelectMergeStacktracesRequest *selection,
                               struct render_answer *ret)
{
        static const struct selection_names names = { "query", "from", "until" };
        const char *group_by = http_query(r->req, "groupBy");
        const void *answer;
        enum status st = check_render_format(r);

        if (!st)
                st = read_selection(r, &names, selection);
        if (!st)
                st = read_max_nodes(r, &selection->max_nodes);
        if (!st)
                st = call_querier(r, "SelectMergeStacktraces", selection, &answer);
        if (st)
                return st;
        ret->stacks = answer;
        st = load_timeline(r, selection, NULL, &ret->total);
        if (!st && group_by && *group_by)
                st = load_timeline(r, selection, group_by, &ret->groups);
        return st;
}

static void put_groups(struct json_out *j, const Querier__SelectMergeStacktracesRequest *selection,
                       const Querier__SelectSeriesResponse *groups)
{
        json_out_object(j, "groups");
        for (size_t i = 0; groups && i < groups->n_series; i++) {
                const Querier__Series *s = groups->series[i];

                put_timeline(j, s->n_labels ? s->labels[0]->value : "", selection, s);
        }
        json_out_object_end(j);
}

/* Opens the answer that both kinds of graph begin with; closed by finish_graph_answer(). */
static void begin_graph_answer(struct json_out *j, struct buf *body)
{
        buf_init_budget(body, LIMIT_RESPONSE_BYTES, MEMORY_ANSWERS);
        json_out_init(j, body);
        json_out_object(j, NULL);
        json_out_int(j, "version", 1);
}

static void finish_graph_answer(struct render *r, struct json_out *j, struct buf *body)
{
        json_out_object_end(j);
        query_work_finish(&r->work, body);
        http_respond_packed(r->req, 200, "application/json", body);
}

static void handle_render(struct http_request *req)
{
        Querier__SelectMergeStacktracesRequest selection;
        const Querier__FlameGraph *g;
        struct render_answer answer = { 0 };
        _cleanup_render_ struct render r;
        struct json_out j;
        struct buf body;
        enum status st;

        render_init(&r, req);
        st = load_render(&r, &selection, &answer);
        if (st) {
                query_work_answer_failure(&r.work, st, &r.err);
                return;
        }
        g = answer.stacks->flamegraph;
        begin_graph_answer(&j, &body);
        put_flamebearer(&j, g->names, g->n_names, g->levels, g->n_levels, g->total, g->max_self);
        put_metadata(&j, selection.profile_typeid, "single");
        put_timeline(&j, "timeline", &selection, answer.total->n_series ? answer.total->series[0] : NULL);
        put_groups(&j, &selection, answer.groups);
        json_out_str(&j, "heatmap", NULL);
        finish_graph_answer(&r, &j, &body);
}

static enum status load_render_diff(struct render *r, const Querier__FlameGraphDiff **ret, const char **type_ret)
{
        static const struct selection_names left_names = { "leftQuery", "leftFrom", "leftUntil" };
        static const struct selection_names right_names = { "rightQuery", "rightFrom", "rightUntil" };
        Querier__SelectMergeStacktracesRequest left, right;
        Querier__DiffRequest request = QUERIER__DIFF_REQUEST__INIT;
        const void *answer;
        enum status st = check_render_format(r);

        if (!st)
                st = read_selection(r, &left_names, &left);
        if (!st)
                st = read_selection(r, &right_names, &right);
        if (!st)
                st = read_max_nodes(r, &left.max_nodes);
        request.left = &left;
        request.right = &right;
        if (!st)
                st = call_querier(r, "Diff", &request, &answer);
        if (st)
                return st;
        *ret = ((const Querier__DiffResponse *)answer)->flamegraph;
        *type_ret = left.profile_typeid;
        return ST_OK;
}

static void handle_render_diff(struct http_request *req)
{
        const Querier__FlameGraphDiff *g;
        _cleanup_render_ struct render r;
        const char *type;
        struct json_out j;
        struct buf body;
        enum status st;

        render_init(&r, req);
        st = load_render_diff(&r, &g, &type);
        if (st) {
                query_work_answer_failure(&r.work, st, &r.err);
                return;
        }
        begin_graph_answer(&j, &body);
        put_flamebearer(&j, g->names, g->n_names, g->levels, g->n_levels, g->total, g->max_self);
        put_metadata(&j, type, "double");
        json_out_str(&j, "timeline", NULL);
        json_out_str(&j, "groups", NULL);
        json_out_str(&j, "heatmap", NULL);
        json_out_int(&j, "leftTicks", g->leftticks);
        json_out_int(&j, "rightTicks", g->rightticks);
        finish_graph_answer(&r, &j, &body);
}

/* ---- labels ---- */

/* Without a range all samples count, as in querier.v1. */
static enum status read_label_range(struct render *r, int64_t *start, int64_t *end)
{
        const char *from = http_query(r->req, "from"), *until = http_query(r->req, "until");
        enum status st;

        *start = *end = 0;
        if ((!from || !*from) && (!until || !*until))
                return ST_OK;
        st = read_time(r, "from", "0", start);
        return st ? st : read_time(r, "until", "now", end);
}

static enum status list_type_ids(struct render *r, int64_t start, int64_t end, char ***ret, size_t *count_ret)
{
        Querier__ProfileTypesRequest request = QUERIER__PROFILE_TYPES_REQUEST__INIT;
        const Querier__ProfileTypesResponse *types;
        const void *answer;
        enum status st;

        request.start = start;
        request.end = end;
        st = call_querier(r, "ProfileTypes", &request, &answer);
        if (st)
                return st;
        types = answer;
        *ret = arena_alloc_array(&r->memory, types->n_profile_types + 1, sizeof **ret);
        if (!*ret)
                return arena_error(&r->memory, &r->err, "the answer");
        for (size_t i = 0; i < types->n_profile_types; i++)
                (*ret)[i] = types->profile_types[i]->id;
        *count_ret = types->n_profile_types;
        return ST_OK;
}

static enum status list_label_values(struct render *r, char ***ret, size_t *count_ret)
{
        Querier__LabelValuesRequest request = QUERIER__LABEL_VALUES_REQUEST__INIT;
        const char *label = http_query(r->req, "label"), *query = http_query(r->req, "query");
        char *matchers[1] = { (char *)(uintptr_t)query };
        const Querier__NamesResponse *names;
        const void *answer;
        enum status st;

        if (!label || !*label)
                return error_set(&r->err, ST_USAGE, "the parameter 'label' is missing");
        st = read_label_range(r, &request.start, &request.end);
        if (st)
                return st;
        if (strcmp(label, "__name__") == 0)
                return list_type_ids(r, request.start, request.end, ret, count_ret);
        request.name = (char *)(uintptr_t)label;
        request.matchers = matchers;
        request.n_matchers = query && *query;
        st = call_querier(r, "LabelValues", &request, &answer);
        if (st)
                return st;
        names = answer;
        *ret = names->names;
        *count_ret = names->n_names;
        return ST_OK;
}

static enum status list_label_names(struct render *r, char ***ret, size_t *count_ret)
{
        Querier__LabelNamesRequest request = QUERIER__LABEL_NAMES_REQUEST__INIT;
        const char *query = http_query(r->req, "query");
        char *matchers[1] = { (char *)(uintptr_t)query };
        const Querier__NamesResponse *names;
        const void *answer;
        enum status st = read_label_range(r, &request.start, &request.end);

        if (st)
                return st;
        request.matchers = matchers;
        request.n_matchers = query && *query;
        st = call_querier(r, "LabelNames", &request, &answer);
        if (st)
                return st;
        names = answer;
        *ret = names->names;
        *count_ret = names->n_names;
        return ST_OK;
}

static void answer_list(struct http_request *req, enum status (*list)(struct render *r, char ***, size_t *))
{
        _cleanup_render_ struct render r;
        char **names;
        size_t count;
        enum status st;

        render_init(&r, req);
        st = list(&r, &names, &count);
        if (st) {
                query_work_answer_failure(&r.work, st, &r.err);
                return;
        }
        respond_json_array(&r, names, count);
}

static void handle_label_values(struct http_request *req)
{
        answer_list(req, list_label_values);
}

static void handle_label_names(struct http_request *req)
{
        answer_list(req, list_label_names);
}

static const struct http_route routes[] = {
        { ROUTE("GET", "/pyroscope/render", SCOPE_READ, TENANCY_OWN), .handle = handle_render },
        { ROUTE("GET", "/pyroscope/render-diff", SCOPE_READ, TENANCY_OWN), .handle = handle_render_diff },
        { ROUTE("GET", "/pyroscope/label-values", SCOPE_READ, TENANCY_OWN), .handle = handle_label_values },
        { ROUTE("GET", "/pyroscope/label-names", SCOPE_READ, TENANCY_OWN), .handle = handle_label_names },
        { ROUTE("GET", "/render", SCOPE_READ, TENANCY_OWN), .handle = handle_render },
        { ROUTE("GET", "/render-diff", SCOPE_READ, TENANCY_OWN), .handle = handle_render_diff },
        { ROUTE("GET", "/label-values", SCOPE_READ, TENANCY_OWN), .handle = handle_label_values },
        { ROUTE("GET", "/label-names", SCOPE_READ, TENANCY_OWN), .handle = handle_label_names },
};
const struct route_table render_routes = ROUTE_TABLE(ROLE_QUERY, routes);
