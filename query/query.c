/* SPDX-License-Identifier: Apache-2.0 */
#include "query/query.h"

#include <stdlib.h>
#include <string.h>

#include "common/json_out.h"
#include "common/utf8.h"
#include "query/flame.h"
#include "query/pprof_out.h"
#include "query/query_call.h"
#include "query/regex_match.h"
#include "query/series.h"
#include "query/top.h"

static const char type_html[] = "text/html; charset=utf-8", type_binary[] = "application/octet-stream";

/* ---- merged profile ---- */

static void merged_profile_deinit(struct merged_profile *m)
{
        free(m->sums.items);
        location_frames_deinit(&m->locations);
        *m = (struct merged_profile){ 0 };
}
#define _cleanup_merged_profile_ _cleanup_(merged_profile_deinit)

/* @param type  full id, or NULL when there are no samples at all. */
static enum status merged_profile_load(struct store_scan *scan, const struct query_selection *s, const char *type,
                                       struct frame_table *frames, struct merged_profile *ret, struct error *err)
{
        const struct scan_filter filter = query_selection_make_filter(s, type);
        struct merged_profile m = { .meter = frames->meter, .selection = s };
        enum status st;

        st = store_scan_sum(scan, &filter, &m.sums, err);
        if (st)
                return st;
        st = store_scan_resolve(scan, &m.sums, &m.stacks, err);
        if (!st)
                st = location_frames_build(frames, m.stacks, &m.locations, err);
        if (st) {
                merged_profile_deinit(&m);
                return st;
        }
        for (size_t i = 0; i < m.sums.count; i++) {
                add_wrapping(&m.total, m.sums.items[i].value);
                m.samples += m.sums.items[i].samples;
        }
        *ret = m;
        return ST_OK;
}

static void put_profile_head(struct json_out *j, const struct merged_profile *m)
{
        json_out_str(j, "type", m->sums.type);
        json_out_str(j, "unit", m->sums.unit);
        json_out_int(j, "from_ms", m->selection->from_unix_ns / 1000000);
        json_out_int(j, "to_ms", m->selection->to_unix_ns / 1000000);
        json_out_int(j, "total", m->total);
        json_out_uint(j, "samples", m->samples);
}

/* ---- top ---------------------------------------------------------------------------------- */

static void put_top_answer(struct query_call *q, const struct top *top, const struct frame_table *frames,
                           const struct merged_profile *a, const struct merged_profile *b)
{
        struct top_form form = { .limit = q->r.limit, .diff = b != NULL, .is_short = q->r.names == NAMES_SHORT };
        struct json_out j;

        json_out_init(&j, q->ret);
        q->content_type = content_type_json;
        switch (q->r.format) {
        case FORMAT_ROWS:
                top_put_rows(top, frames, &form, NULL, &j);
                break;
        case FORMAT_TEXT:
                q->content_type = content_type_text;
                form.limit = query_call_text_limit(q);
                top_put_text(top, frames, a, b, &form, q->ret);
                break;
        default:
                json_out_object(&j, NULL);
                put_profile_head(&j, a);
                if (b) {
                        json_out_int(&j, "total_after", b->total);
                        json_out_uint(&j, "samples_after", b->samples);
                }
                top_put_rows(top, frames, &form, "rows", &j);
                json_out_object_end(&j);
        }
}

/* A function is kept if any of its names matches. */
static enum status filter_functions(struct query_call *q, struct top *top, const struct frame_table *frames)
{
        const char *pattern = query_param_get(&q->params, "", "function");
        struct regex_match *regex;
        enum status st;

        if (!pattern)
                return ST_OK;
        st = regex_match_create(pattern, q->meter, &regex, q->err);
        if (st)
                return error_prefix(q->err, st, "function");
        st = top_filter(top, frames, regex_match_text, regex, q->err);
        regex_match_destroy(regex);
        return st;
}

static enum status answer_top(struct query_call *q)
{
        _cleanup_frame_table_ struct frame_table frames;
        _cleanup_merged_profile_ struct merged_profile m = { 0 };
        _cleanup_top_ struct top top = { 0 };
        const char *type;
        enum status st;

        frame_table_init(&frames, q->meter);
        st = choose_profile_type(q->scan, &q->r.selection, q->r.type, &type, q->err);
        if (!st)
                st = merged_profile_load(q->scan, &q->r.selection, type, &frames, &m, q->err);
        if (!st)
                st = top_build(&frames, &m, NULL, &top, q->err);
        if (!st)
                st = filter_functions(q, &top, &frames);
        if (!st)
                put_top_answer(q, &top, &frames, &m, NULL);
        return st;
}

/* ---- flame, folded ------------------------------------------------------------------------- */

static enum status parse_focus(const struct query_call *q, struct tree_focus *ret)
{
        const char *callees = query_param_get(&q->params, "", "callees_of"),
                   *callers = query_param_get(&q->params, "", "callers_of");

        if (callees && callers)
                return error_set(q->err, ST_USAGE, "callees_of and callers_of exclude each other");
        *ret = callees   ? (struct tree_focus){ TREE_CALLEES, callees }
               : callers ? (struct tree_focus){ TREE_CALLERS, callers }
                         : (struct tree_focus){ TREE_ALL, NULL };
        return ST_OK;
}

static enum status put_flame_answer(struct query_call *q, const struct flame *f)
{
        switch (q->r.format) {
        case FORMAT_HTML:
                q->content_type = type_html;
                return flame_put_html(f, q->ret, q->err);
        case FORMAT_TEXT:
                q->content_type = content_type_text;
                return flame_put_text(f, q->ret, q->err);
        default:
                q->content_type = content_type_json;
                return flame_put_json(f, q->ret, q->err);
        }
}

static enum status answer_tree(struct query_call *q, bool folded)
{
        _cleanup_frame_table_ struct frame_table frames;
        _cleanup_merged_profile_ struct merged_profile m = { 0 };
        _cleanup_tree_ struct tree tree = { 0 };
        struct tree_focus focus = { 0 };
        struct flame f = { .frames = &frames,
                           .tree = &tree,
                           .sides = { &m },
                           .max_nodes = q->r.max_nodes,
                           .focus = &focus,
                           .names = q->r.names };
        const char *type;
        enum status st;

        frame_table_init(&frames, q->meter);
        st = parse_focus(q, &focus);
        if (!st)
                st = choose_profile_type(q->scan, &q->r.selection, q->r.type, &type, q->err);
        if (!st)
                st = merged_profile_load(q->scan, &q->r.selection, type, &frames, &m, q->err);
        if (!st)
                st = tree_init(&tree, q->meter, q->err);
        if (!st)
                st = tree_add(&tree, &frames, &m.locations, m.stacks, &m.sums, 0, &focus, q->err);
        if (st)
                return st;
        tree_sum_totals(&tree);
        if (!folded)
                return put_flame_answer(q, &f);
        q->content_type = content_type_text;
        return flame_put_folded(&f, q->ret, q->err);
}

static enum status answer_flame(struct query_call *q)
{
        return answer_tree(q, false);
}

static enum status answer_folded(struct query_call *q)
{
        return answer_tree(q, true);
}

/* ---- diff ---------------------------------------------------------------------------------- */

static enum status load_diff_sides(struct query_call *q, const struct query_selection *base, struct merged_profile *a,
                                   struct merged_profile *b, struct frame_table *frames)
{
        const char *type, *base_type;
        enum status st = choose_profile_type(q->scan, &q->r.selection, q->r.type, &type, q->err);

        if (!st)
                st = choose_profile_type(q->scan, base, type ? type : q->r.type, &base_type, q->err);
        if (!st)
                st = merged_profile_load(q->scan, base, base_type, frames, a, q->err);
        if (!st)
                st = merged_profile_load(q->scan, &q->r.selection, type, frames, b, q->err);
        return st;
}

static enum status answer_diff(struct query_call *q)
{
        _cleanup_frame_table_ struct frame_table frames;
        _cleanup_merged_profile_ struct merged_profile a = { 0 }, b = { 0 };
        _cleanup_tree_ struct tree tree = { 0 };
        _cleanup_top_ struct top top = { 0 };
        const struct tree_focus focus = { 0 };
        struct flame f = { .frames = &frames,
                           .tree = &tree,
                           .sides = { &a, &b },
                           .max_nodes = q->r.max_nodes,
                           .focus = &focus,
                           .names = q->r.names };
        const char *view = query_param_get(&q->params, "", "view");
        struct query_selection base;
        enum status st;

        frame_table_init(&frames, q->meter);
        st = query_selection_parse(&q->params, "base_", &q->r.selection, q->now_unix_ns, &base, q->err);
        if (st)
                return st;
        st = load_diff_sides(q, &base, &a, &b, &frames);
        if (!st && (q->r.format == FORMAT_TEXT || q->r.format == FORMAT_ROWS || (view && strcmp(view, "top") == 0))) {
                st = top_build(&frames, &a, &b, &top, q->err);
                if (!st)
                        st = filter_functions(q, &top, &frames);
                if (!st)
                        put_top_answer(q, &top, &frames, &a, &b);
        } else if (!st) {
                st = tree_init(&tree, q->meter, q->err);
                if (!st)
                        st = tree_add(&tree, &frames, &a.locations, a.stacks, &a.sums, 0, &focus, q->err);
                if (!st)
                        st = tree_add(&tree, &frames, &b.locations, b.stacks, &b.sums, 1, &focus, q->err);
                if (!st) {
                        tree_sum_totals(&tree);
                        st = put_flame_answer(q, &f);
                }
        }
        query_selection_deinit(&base);
        return st;
}

/* ---- the others ------------------------------------------------------------------------------ */

static enum status answer_pprof(struct query_call *q)
{
        _cleanup_frame_table_ struct frame_table frames;
        _cleanup_merged_profile_ struct merged_profile m = { 0 };
        const char *type;
        enum status st;

        frame_table_init(&frames, q->meter);
        q->content_type = type_binary;
        st = choose_profile_type(q->scan, &q->r.selection, q->r.type, &type, q->err);
        if (!st)
                st = merged_profile_load(q->scan, &q->r.selection, type, &frames, &m, q->err);
        return st ? st : merged_profile_put_pprof(&m, q->ret, q->err);
}

static enum status answer_series(struct query_call *q)
{
        const char *type;
        enum status st = choose_profile_type(q->scan, &q->r.selection, q->r.type, &type, q->err);

        q->content_type = q->r.format == FORMAT_TEXT ? content_type_text : content_type_json;
        return st ? st : put_series(q->scan, &q->r, type, q->ret, q->err);
}

static void put_name_answer(struct query_call *q, const struct scan_names *names)
{
        size_t count = q->r.limit && q->r.limit < names->count ? (size_t)q->r.limit : names->count;
        struct json_out j;

        q->content_type = q->r.format == FORMAT_TEXT ? content_type_text : content_type_json;
        json_out_init(&j, q->ret);
        if (q->r.format == FORMAT_TEXT) {
                for (size_t i = 0; i < count && !work_meter_add(q->meter, 16, NULL); i++) {
                        utf8_append_escaped(q->ret, names->items[i]);
                        buf_append_u8(q->ret, '\n');
                }
                return;
        }
        json_out_array(&j, NULL);
        for (size_t i = 0; i < count && !work_meter_add(q->meter, 16, NULL); i++)
                json_out_str(&j, NULL, names->items[i]);
        json_out_array_end(&j);
}

static enum status answer_labels(struct query_call *q)
{
        const struct query_selection *s = &q->r.selection;
        struct scan_names names;
        enum status st = store_scan_list_label_names(q->scan, s->from_unix_ns, s->to_unix_ns, &names, q->err);

        if (!st)
                put_name_answer(q, &names);
        return st;
}

static enum status answer_types(struct query_call *q)
{
        const struct scan_filter filter = query_selection_make_filter(&q->r.selection, NULL);
        struct scan_names names;
        enum status st = store_scan_list_types(q->scan, &filter, &names, q->err);

        if (!st)
                put_name_answer(q, &names);
        return st;
}

static enum status answer_values(struct query_call *q)
{
        const char *key = query_param_get(&q->params, "", "name"), *type = NULL;
        struct scan_filter filter;
        struct scan_names names;
        enum status st = ST_OK;

        if (!key)
                return error_set(q->err, ST_USAGE, "the parameter name is missing: the label whose values to list");
        if (q->r.type)
                st = choose_profile_type(q->scan, &q->r.selection, q->r.type, &type, q->err);
        filter = query_selection_make_filter(&q->r.selection, type);
        if (!st)
                st = store_scan_list_label_values(q->scan, key, &filter, &names, q->err);
        if (!st)
                put_name_answer(q, &names);
        return st;
}

const char content_type_json[] = "application/json", content_type_text[] = "text/plain; charset=utf-8";

static const struct {
        const char *name;
        enum status (*answer)(struct query_call *q);
} operations[] = {
        { "top", answer_top },
        { "flame", answer_flame },
        { "folded", answer_folded },
        { "pprof", answer_pprof },
        { "diff", answer_diff },
        { "series", answer_series },
        { "labels", answer_labels },
        { "values", answer_values },
        { "types", answer_types },
        { "missing", query_answer_missing },
        { "uploads", query_answer_uploads },
};

enum status query_run_scan(struct store_scan *scan, const char *operation, query_param *param, void *context,
                           int64_t now_unix_ns, struct work_meter *meter, struct buf *ret,
                           const char **content_type_ret, struct error *err)
{
        struct work_meter budgets = { 0 };
        struct query_call q = { .scan = scan,
                                .meter = meter ? meter : &budgets,
                                .now_unix_ns = now_unix_ns,
                                .ret = ret,
                                .err = err,
                                .content_type = content_type_json };
        size_t i = 0, count = sizeof operations / sizeof *operations;
        enum status st;

        while (i < count && strcmp(operations[i].name, operation) != 0)
                i++;
        if (i == count)
                return error_set(err, ST_NOT_FOUND, "there is no query '%.40s'", operation);
        work_meter_init(&budgets, NULL, NULL);
        q.params = (struct query_param_source){ param, context, q.meter };
        st = query_request_parse(&q.params, now_unix_ns, &q.r, err);
        if (st)
                return st;
        store_scan_set_meter(scan, q.meter);
        st = operations[i].answer(&q);
        store_scan_set_meter(scan, NULL);
        query_request_deinit(&q.r);
        if (!st)
                st = buf_status(ret, err, "answer");
        if (!st)
                st = work_meter_check(q.meter,
                                      err); /* after a failure of the meter the results of matchers are invalid */
        if (!st)
                *content_type_ret = q.content_type;
        return st;
}

enum status query_run(struct profile_store *store, const char *operation, query_param *param, void *context,
                      int64_t now_unix_ns, struct work_meter *meter, struct buf *ret, const char **content_type_ret,
                      struct error *err)
{
        struct store_scan *scan;
        enum status st = store_scan_begin(store, &scan, err);

        if (st)
                return st;
        st = query_run_scan(scan, operation, param, context, now_unix_ns, meter, ret, content_type_ret, err);
        store_scan_end(scan);
        return st;
}
