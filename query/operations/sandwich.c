/* SPDX-License-Identifier: Apache-2.0 */
/* The callers and the callees of functions, each as a call tree, and their rows of a table. */
#include <string.h>

#include "query/engine/top.h"
#include "query/operations/stack_views.h"

/* Write the callers or callees of the targets as a member of the answer, or as text under a heading (j is NULL). */
static enum status put_sandwich_half(struct query_call *q, struct loaded_sides *l, const struct tree_focus *focus,
                                     const char *name, struct json_out *j)
{
        _cleanup_tree_ struct tree tree = { 0 };
        struct flame f;
        enum status st = loaded_sides_build_tree(q, l, focus, TREE_DRAWN, &tree);

        if (st)
                return st;
        f = make_flame(q, l, &tree, focus);
        if (j)
                return flame_put_json(&f, j, name, q->err);
        buf_printf(q->ret, "%s\n", name);
        st = flame_put_text(&f, q->ret, q->err);
        buf_append_u8(q->ret, '\n');
        return st;
}

static enum status answer_sandwich(struct query_call *q, const char *function, const struct query_selection *base)
{
        _cleanup_function_targets_ struct function_targets targets = { 0 };
        _cleanup_loaded_sides_ struct loaded_sides l = { 0 };
        _cleanup_top_ struct top top = { 0 };
        struct tree_focus callers = { TREE_CALLERS, function, NULL }, callees = { TREE_CALLEES, function, NULL };
        struct top_side sides[2] = { 0 };
        const struct top_form form = { .limit = q->r.limit, .diff = base };
        int64_t totals[2];
        const struct top_order order = { ORDER_FLAT, q->r.by_value ? NULL : totals };
        struct json_out j;
        enum status st = loaded_sides_load(q, base, &l);

        if (!st)
                st = function_targets_find(q, &l.frames, function, false, &targets);
        if (st)
                return st;
        callers.is_target = callees.is_target = targets.is_target;
        for (unsigned i = 0; i < 2; i++)
                totals[i] = l.sides[i].total;
        for (unsigned i = 0; i < l.side_count; i++)
                sides[i] = top_side_of_all(&l.sides[i]);
        st = top_build(&l.frames, sides, &order, &top, q->err);
        if (!st)
                st = filter_top_rows(q, &targets, &top);
        if (st)
                return st;
        q->content_type = query_call_content_type(q);
        if (q->r.format == FORMAT_TEXT) {
                st = put_sandwich_half(q, &l, &callers, "callers", NULL);
                return st ? st : put_sandwich_half(q, &l, &callees, "callees", NULL);
        }
        json_out_init(&j, q->ret);
        json_out_object(&j, NULL);
        json_out_int(&j, "version", 1);
        json_out_str(&j, "function", function);
        loaded_sides_put_head(&l, &j);
        json_out_array(&j, "rows");
        top_put_rows(&top, &l.frames, &form, NULL, NULL, &j);
        json_out_array_end(&j);
        st = put_sandwich_half(q, &l, &callers, "callers", &j);
        if (!st)
                st = put_sandwich_half(q, &l, &callees, "callees", &j);
        json_out_object_end(&j);
        return st;
}

enum status query_answer_sandwich(struct query_call *q)
{
        const char *function = query_param_get(&q->params, "", "function");
        struct query_selection base = { 0 };
        bool has_base = query_call_find_base(q) != NULL;
        enum status st = ST_OK;

        if (!function)
                return error_set(q->err, ST_USAGE,
                                 "the parameter function is missing: a regular expression for the whole name");
        if (has_base)
                st = query_selection_parse(&q->params, "base_", &q->r.selection, q->now_unix_ns, &base, q->err);
        if (!st)
                st = answer_sandwich(q, function, has_base ? &base : NULL);
        query_selection_deinit(&base);
        return st;
}
