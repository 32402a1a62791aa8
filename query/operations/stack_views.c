/* SPDX-License-Identifier: Apache-2.0 */
#include "query/operations/stack_views.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "query/formats/firefox.h"

/* ---- top, diff as a table ---- */

/* Keep the rows of target functions. */
enum status filter_top_rows(struct query_call *q, const struct function_targets *targets, struct top *top)
{
        size_t kept = 0;
        enum status st = work_meter_add(q->meter, top->count, q->err);

        for (size_t i = 0; targets->is_target && i < top->count; i++)
                if (targets->is_target[top->rows[i].frame])
                        top->rows[kept++] = top->rows[i];
        if (targets->is_target)
                top->count = kept;
        return st;
}

/* One table per shown group; without labels there is one group. */
struct top_tables {
        struct query_call *q;
        struct loaded_sides *l;
        struct function_targets targets;
        struct top_form form;
        size_t *first[2]; /* by side: start of each group's entries; owned */
};

static void top_tables_deinit(struct top_tables *t)
{
        function_targets_deinit(&t->targets);
        free(t->first[0]);
        free(t->first[1]);
}

static enum status top_tables_init(struct top_tables *t, struct query_call *q, struct loaded_sides *l)
{
        const char *pattern = query_param_get(&q->params, "", "function");
        enum status st = ST_OK;

        *t = (struct top_tables){ .q = q, .l = l };
        t->form = (struct top_form){ .limit = q->r.format == FORMAT_TEXT ? query_call_text_limit(q) : q->r.limit,
                                     .diff = l->side_count > 1,
                                     .by_value = q->r.by_value,
                                     .is_short = q->r.names == NAMES_SHORT };
        if (pattern) {
                st = function_targets_find(q, &l->frames, pattern, false, &t->targets);
                if (st)
                        return error_prefix(q->err, st, "function");
        }
        for (unsigned i = 0; !st && i < l->side_count; i++)
                st = merged_profile_sort_by_group(&l->sides[i], &l->groups, &t->first[i], q->err);
        return st;
}

static enum status build_group_top(struct top_tables *t, uint32_t group, struct top *ret)
{
        struct top_side sides[2] = { 0 };
        const struct top_order order = { t->q->r.order, t->q->r.by_value ? NULL : t->l->groups.shown[group].total };
        enum status st;

        for (unsigned i = 0; i < t->l->side_count; i++) {
                assert(t->first[i]);
                sides[i] = (struct top_side){ &t->l->sides[i], t->first[i][group], t->first[i][group + 1] };
        }
        st = top_build(&t->l->frames, sides, &order, ret, t->q->err);
        return st ? st : filter_top_rows(t->q, &t->targets, ret);
}

static void put_group_totals(const struct top_tables *t, const struct label_group *g, struct json_out *j)
{
        json_out_int(j, "total", g->total[0]);
        json_out_uint(j, "samples", sample_count_round(g->samples[0]));
        if (t->form.diff) {
                json_out_int(j, "total_after", g->total[1]);
                json_out_uint(j, "samples_after", sample_count_round(g->samples[1]));
        }
}

static void put_group_json(const struct top_tables *t, const struct label_group *g, const struct top *top,
                           struct json_out *j)
{
        const struct label_groups *groups = &t->l->groups;
        bool grouped = groups->labels->count > 0, rows = t->q->r.format == FORMAT_ROWS;

        if (rows) {
                top_put_rows(top, &t->l->frames, &t->form, grouped ? groups : NULL, g, j);
                return;
        }
        if (grouped) {
                json_out_object(j, NULL);
                label_group_put_json(groups, g, "labels", j);
                put_group_totals(t, g, j);
        }
        json_out_array(j, "rows");
        top_put_rows(top, &t->l->frames, &t->form, NULL, NULL, j);
        json_out_array_end(j);
        if (grouped)
                json_out_object_end(j);
}

static void put_group_text(const struct top_tables *t, const struct label_group *g, const struct top *top)
{
        const struct merged_profile *m = &t->l->sides[0];
        const char *unit = *m->unit || !t->form.diff ? m->unit : t->l->sides[1].unit;

        if (t->l->groups.labels->count) {
                buf_append_u8(t->q->ret, '\n');
                label_group_put_text(&t->l->groups, g, t->q->ret);
                buf_append_u8(t->q->ret, '\n');
        }
        top_put_text(top, &t->l->frames, unit, g->total, &t->form, t->q->ret);
}

static enum status put_top_tables(struct top_tables *t, struct json_out *j)
{
        struct query_call *q = t->q;
        const struct label_groups *groups = &t->l->groups;
        enum status st = ST_OK;

        for (uint32_t i = 0; !st && i < groups->shown_count; i++) {
                _cleanup_top_ struct top top = { 0 };

                st = build_group_top(t, i, &top);
                if (st)
                        continue;
                if (q->r.format == FORMAT_CSV)
                        top_put_csv(&top, &t->l->frames, &t->form, groups, &groups->shown[i], q->ret);
                else if (q->r.format == FORMAT_TEXT)
                        put_group_text(t, &groups->shown[i], &top);
                else
                        put_group_json(t, &groups->shown[i], &top, j);
        }
        return st;
}

static enum status put_top_answer(struct query_call *q, struct loaded_sides *l)
{
        _cleanup_(top_tables_deinit) struct top_tables t;
        const struct label_groups *groups = &l->groups;
        bool object = q->r.format != FORMAT_ROWS;
        struct json_out j;
        enum status st = top_tables_init(&t, q, l);

        if (st)
                return st;
        q->content_type = query_call_content_type(q);
        if (q->r.format == FORMAT_TEXT) {
                top_put_text_header(&l->sides[0], t.form.diff ? &l->sides[1] : NULL, q->ret);
                return put_top_tables(&t, NULL);
        }
        if (q->r.format == FORMAT_CSV) {
                top_put_csv_header(groups, &t.form, q->ret);
                return put_top_tables(&t, NULL);
        }
        json_out_init(&j, q->ret);
        if (object) {
                json_out_object(&j, NULL);
                loaded_sides_put_head(l, &j);
        }
        if (groups->labels->count || !object)
                json_out_array(&j, object ? "groups" : NULL);
        st = put_top_tables(&t, &j);
        if (groups->labels->count || !object)
                json_out_array_end(&j);
        else if (!groups->shown_count) {
                json_out_array(&j, "rows");
                json_out_array_end(&j);
        }
        if (object)
                json_out_object_end(&j);
        return st;
}

enum status query_answer_top(struct query_call *q)
{
        _cleanup_loaded_sides_ struct loaded_sides l = { 0 };
        enum status st = loaded_sides_load(q, NULL, &l);

        return st ? st : put_top_answer(q, &l);
}

/* ---- trees ---- */

/* Parse callees_of, callers_of, callees_matching and callers_matching, of which at most one may be set. */
static enum status parse_focus(struct query_call *q, const struct loaded_sides *l, struct tree_focus *ret,
                               struct function_targets *targets)
{
        static const struct {
                const char *name;
                enum tree_view view;
                bool is_pattern;
        } params[] = {
                { "callees_of", TREE_CALLEES, false },
                { "callers_of", TREE_CALLERS, false },
                { "callees_matching", TREE_CALLEES, true },
                { "callers_matching", TREE_CALLERS, true },
        };
        const char *chosen = NULL;
        enum status st = ST_OK;

        *ret = (struct tree_focus){ TREE_ALL, NULL, NULL };
        for (size_t i = 0; !st && i < sizeof params / sizeof *params; i++) {
                const char *text = query_param_get(&q->params, "", params[i].name);

                if (!text)
                        continue;
                if (chosen)
                        return error_set(q->err, ST_USAGE, "%s and %s are mutually exclusive", chosen, params[i].name);
                chosen = params[i].name;
                st = params[i].is_pattern ? function_targets_find(q, &l->frames, text, true, targets)
                                          : function_targets_find_exact(q, &l->frames, text, targets);
                if (st)
                        return error_prefix(q->err, st, "%s", chosen);
                *ret = (struct tree_focus){ params[i].view, text, targets->is_target };
        }
        return st;
}

struct flame make_flame(const struct query_call *q, const struct loaded_sides *l, const struct tree *tree,
                        const struct tree_focus *focus)
{
        return (struct flame){ .frames = &l->frames,
                               .tree = tree,
                               .sides = { &l->sides[0], l->side_count > 1 ? &l->sides[1] : NULL },
                               .plan = &l->plan,
                               .groups = &l->groups,
                               .max_nodes = q->r.max_nodes,
                               .focus = focus,
                               .names = q->r.names };
}

static enum status put_flame_answer(struct query_call *q, const struct flame *f)
{
        struct json_out j;

        switch (q->r.format) {
        case FORMAT_HTML:
                q->content_type = content_type_html;
                return flame_put_html(f, q->ret, q->err);
        case FORMAT_TEXT:
                q->content_type = content_type_text;
                return flame_put_text(f, q->ret, q->err);
        default:
                q->content_type = content_type_json;
                json_out_init(&j, q->ret);
                return flame_put_json(f, &j, NULL, q->err);
        }
}

/* Kinds of answers made of a tree; ANSWER_FLAME has several formats. */
enum tree_answer { ANSWER_FLAME, ANSWER_FOLDED, ANSWER_FIREFOX };

static enum status put_tree_answer(struct query_call *q, struct flame *f, enum tree_answer what)
{
        switch (what) {
        case ANSWER_FOLDED:
                q->content_type = content_type_text;
                return flame_put_folded(f, q->ret, q->err);
        case ANSWER_FIREFOX:
                q->content_type = content_type_json;
                if (!query_param_get(&q->params, "", "max_nodes")) /* for another program: as much as possible */
                        f->max_nodes = LIMIT_MAX_NODES;
                return flame_put_firefox(f, q->ret, q->err);
        default:
                return put_flame_answer(q, f);
        }
}

static enum status answer_tree(struct query_call *q, const struct query_selection *base, enum tree_answer what)
{
        _cleanup_function_targets_ struct function_targets targets = { 0 };
        _cleanup_loaded_sides_ struct loaded_sides l = { 0 };
        _cleanup_tree_ struct tree tree = { 0 };
        struct tree_focus focus;
        struct flame f;
        enum status st = loaded_sides_load(q, base, &l);

        if (!st)
                st = parse_focus(q, &l, &focus, &targets);
        if (!st)
                st = loaded_sides_build_tree(q, &l, &focus, what == ANSWER_FOLDED ? TREE_LISTED : TREE_DRAWN, &tree);
        if (st)
                return st;
        f = make_flame(q, &l, &tree, &focus);
        return put_tree_answer(q, &f, what);
}

enum status query_answer_flame(struct query_call *q)
{
        return answer_tree(q, NULL, ANSWER_FLAME);
}

enum status query_answer_folded(struct query_call *q)
{
        return answer_tree(q, NULL, ANSWER_FOLDED);
}

enum status query_answer_firefox(struct query_call *q)
{
        return answer_tree(q, NULL, ANSWER_FIREFOX);
}

/* ---- diff ---- */

static bool is_table_wanted(const struct query_call *q)
{
        const char *view = query_param_get(&q->params, "", "view");

        return q->r.format == FORMAT_TEXT || q->r.format == FORMAT_ROWS || q->r.format == FORMAT_CSV ||
               (view && strcmp(view, "top") == 0);
}

static enum status answer_diff_table(struct query_call *q, const struct query_selection *base)
{
        static const char *const of_trees[] = { "callees_of", "callers_of", "callees_matching", "callers_matching" };
        _cleanup_loaded_sides_ struct loaded_sides l = { 0 };
        enum status st;

        for (size_t i = 0; i < sizeof of_trees / sizeof *of_trees; i++)
                if (query_param_get(&q->params, "", of_trees[i]))
                        return error_set(q->err, ST_USAGE,
                                         "%s selects a part of a flame graph, not of a table; use view=flame, or focus",
                                         of_trees[i]);
        st = loaded_sides_load(q, base, &l);
        return st ? st : put_top_answer(q, &l);
}

enum status query_answer_diff(struct query_call *q)
{
        struct query_selection base;
        const char *view = query_param_get(&q->params, "", "view");
        enum status st = ST_OK;

        if (view && strcmp(view, "flame") != 0 && strcmp(view, "top") != 0)
                return error_set(q->err, ST_USAGE, "view '%.40s' is not one of flame, top", view);
        st = query_selection_parse(&q->params, "base_", &q->r.selection, q->now_unix_ns, &base, q->err);
        if (st)
                return st;
        if (is_table_wanted(q) && q->r.format == FORMAT_HTML)
                st = error_set(q->err, ST_USAGE, "html is not a format of the table (view=top)");
        else
                st = is_table_wanted(q) ? answer_diff_table(q, &base) : answer_tree(q, &base, ANSWER_FLAME);
        query_selection_deinit(&base);
        return st;
}
