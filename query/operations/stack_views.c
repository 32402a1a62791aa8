/* SPDX-License-Identifier: Apache-2.0 */
#include "query/engine/loaded_sides.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/text/regex_match.h"
#include "query/engine/top.h"
#include "query/formats/firefox.h"

/* ---- loading ---- */

/* A table with an empty side compares nothing. */
static void note_empty_side(const struct loaded_sides *l, struct buf *note)
{
        if (l->sides[0].count && l->sides[1].count)
                return;
        buf_printf(note, "%sthe side %s has no samples, so nothing is compared", note->size ? "; " : "",
                   l->sides[0].count ? "after" : "before");
}

static enum status load_sides(struct query_call *q, const struct query_selection *base, struct loaded_sides *l)
{
        const struct query_selection *selections[2] = { base ? base : &q->r.selection, &q->r.selection };
        struct merged_profile_request request = {
                .plan = &l->plan, .filter = &l->filter, .frames = &l->frames, .groups = &l->groups
        };
        enum status st = frame_filter_parse(&q->params, &l->filter, q->err);

        l->filter.call_site = q->r.call_site;
        l->filter.call_site_count = q->r.call_site_count;
        l->side_count = base ? 2 : 1;
        if (!st)
                st = type_plan_make_for_request(q->scan, selections, l->side_count, &q->r, &l->plan, q->err);
        for (unsigned i = 0; !st && i < l->side_count; i++) {
                request.side = i;
                st = merged_profile_load(q->scan, selections[i], &request, &l->sides[i], q->err);
        }
        if (!st)
                st = label_groups_rank(&l->groups, q->r.groups, q->err);
        if (!st)
                type_plan_put_note(&l->plan, &q->note);
        if (!st && base && (q->r.format == FORMAT_TEXT || q->r.format == FORMAT_ROWS || q->r.format == FORMAT_CSV))
                note_empty_side(l, &q->note);
        return st;
}

enum status loaded_sides_load(struct query_call *q, const struct query_selection *base, struct loaded_sides *ret)
{
        enum status st;

        *ret = (struct loaded_sides){ 0 };
        frame_table_init(&ret->frames, q->meter);
        label_groups_init(&ret->groups, &q->r.by, q->meter);
        st = load_sides(q, base, ret);
        if (st)
                loaded_sides_deinit(ret);
        return st;
}

void loaded_sides_deinit(struct loaded_sides *l)
{
        merged_profile_deinit(&l->sides[0]);
        merged_profile_deinit(&l->sides[1]);
        type_plan_deinit(&l->plan);
        frame_filter_deinit(&l->filter);
        label_groups_deinit(&l->groups);
        frame_table_deinit(&l->frames);
        *l = (struct loaded_sides){ 0 };
}

void loaded_sides_put_head(const struct loaded_sides *l, struct json_out *j)
{
        const struct merged_profile *a = &l->sides[0], *b = l->side_count > 1 ? &l->sides[1] : NULL;

        json_out_str(j, "type", *a->type || !b ? a->type : b->type);
        json_out_str(j, "unit", *a->unit || !b ? a->unit : b->unit);
        json_out_int(j, "from_ms", a->selection->from_unix_ns / 1000000);
        json_out_int(j, "to_ms", a->selection->to_unix_ns / 1000000);
        json_out_int(j, "total", a->total);
        merged_profile_put_samples(a, false, j);
        if (a->is_average)
                json_out_str(j, "aggregation", "average");
        if (a->total != a->selected_total)
                json_out_int(j, "selected_total", a->selected_total);
        if (b) {
                json_out_int(j, "total_after", b->total);
                merged_profile_put_samples(b, true, j);
                if (b->total != b->selected_total)
                        json_out_int(j, "selected_total_after", b->selected_total);
        }
        type_plan_put_json(&l->plan, j);
}

/* ---- functions by pattern ---- */

void function_targets_deinit(struct function_targets *t)
{
        free(t->is_target);
        *t = (struct function_targets){ 0 };
}

static bool matches_any_name(struct regex_match *pattern, const struct query_frame *f)
{
        return regex_match_text(pattern, f->function, strlen(f->function)) ||
               regex_match_text(pattern, f->short_name, strlen(f->short_name)) ||
               regex_match_text(pattern, f->linkage_name, strlen(f->linkage_name));
}

enum status function_targets_find(struct query_call *q, const struct frame_table *frames, const char *function,
                                  bool search, const char *file, struct function_targets *ret)
{
        struct regex_match *names = NULL, *files = NULL;
        uint8_t *is_target = calloc(frames->count + (size_t)1, 1);
        enum status st = is_target ? ST_OK : error_no_memory(q->err);

        if (!st && function)
                st = search ? regex_match_create_search(function, q->meter, &names, q->err)
                            : regex_match_create(function, q->meter, &names, q->err);
        if (!st && file)
                st = regex_match_create_search(file, q->meter, &files, q->err);
        for (uint32_t i = 0; !st && i < frames->count; i++) {
                const struct query_frame *f = &frames->items[i];

                is_target[i] = (!names || matches_any_name(names, f)) &&
                               (!files || regex_match_text(files, f->file, strlen(f->file)));
                st = work_meter_add(q->meter, 16, q->err);
        }
        regex_match_destroy(names);
        regex_match_destroy(files);
        if (st)
                free(is_target);
        else
                *ret = (struct function_targets){ is_target, frames->count };
        return st;
}

enum status function_targets_find_asked(struct query_call *q, const struct frame_table *frames,
                                        struct function_targets *ret)
{
        const char *name = query_param_get(&q->params, "", "function_name"),
                   *file = query_param_get(&q->params, "", "file_name");
        enum status st = function_targets_find(q, frames, query_param_get(&q->params, "", "function"), false,
                                               query_param_get(&q->params, "", "file"), ret);

        for (uint32_t i = 0; !st && i < frames->count; i++) {
                const struct query_frame *f = &frames->items[i];

                if ((name && !query_frame_has_name(f, name)) || (file && strcmp(f->file, file) != 0))
                        ret->is_target[i] = 0;
        }
        return st;
}

/* ---- top, diff as a table ---- */

/* Keep the rows of target functions. */
static enum status filter_top(struct query_call *q, const struct function_targets *targets, struct top *top)
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
                st = function_targets_find(q, &l->frames, pattern, false, NULL, &t->targets);
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
        return st ? st : filter_top(t->q, &t->targets, ret);
}

static void put_group_totals(const struct top_tables *t, const struct label_group *g, struct json_out *j)
{
        json_out_int(j, "total", g->total[0]);
        json_out_uint(j, "samples", g->samples[0]);
        if (t->form.diff) {
                json_out_int(j, "total_after", g->total[1]);
                json_out_uint(j, "samples_after", g->samples[1]);
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

/* Add frames for the labels of each group, above its stacks. @param ret  owned by the caller. */
static enum status add_root_frames(struct query_call *q, struct loaded_sides *l, uint32_t **ret)
{
        const struct label_groups *g = &l->groups;
        _cleanup_free_ uint32_t *frames = calloc(g->shown_count * g->labels->count + 1, sizeof *frames);
        _cleanup_buf_ struct buf text;
        enum status st = frames ? ST_OK : error_no_memory(q->err);

        buf_init(&text, LIMIT_LABEL_BYTES * 2);
        for (uint32_t i = 0; !st && i < g->shown_count; i++) {
                for (size_t k = 0; !st && k < g->labels->count; k++) {
                        const char *value = g->shown[i].values ? g->shown[i].values[k] : "(other)";

                        buf_clear(&text);
                        buf_printf(&text, "%s=%s", g->labels->names[k], value);
                        st = buf_cstr(&text) ? ST_OK : buf_status(&text, q->err, "label");
                        if (!st)
                                st = frame_table_add_label(&l->frames, (const char *)text.data,
                                                           &frames[i * g->labels->count + k], q->err);
                }
        }
        if (!st)
                *ret = steal_ptr(frames);
        return st;
}

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
                if (params[i].is_pattern) {
                        st = function_targets_find(q, &l->frames, text, true, NULL, targets);
                        if (st)
                                return error_prefix(q->err, st, "%s", chosen);
                } else {
                        targets->is_target = calloc(l->frames.count + (size_t)1, 1);
                        if (!targets->is_target)
                                return error_no_memory(q->err);
                        for (uint32_t k = 0; k < l->frames.count; k++)
                                targets->is_target[k] = query_frame_has_name(&l->frames.items[k], text);
                }
                *ret = (struct tree_focus){ params[i].view, text, targets->is_target };
        }
        return st;
}

enum status loaded_sides_build_tree(struct query_call *q, struct loaded_sides *l, const struct tree_focus *focus,
                                    struct tree *tree)
{
        _cleanup_free_ uint32_t *root_frames = NULL;
        struct tree_roots roots = { .groups = &l->groups };
        enum status st = add_root_frames(q, l, &root_frames);

        roots.frames = root_frames;
        if (!st)
                st = tree_init(tree, q->meter, q->err);
        for (unsigned i = 0; !st && i < l->side_count; i++)
                st = tree_add(tree, &l->sides[i], i, focus, &roots, q->err);
        if (!st)
                tree_sum_totals(tree);
        return st;
}

static struct flame make_flame(const struct query_call *q, const struct loaded_sides *l, const struct tree *tree,
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
        switch (q->r.format) {
        case FORMAT_HTML:
                q->content_type = content_type_html;
                return flame_put_html(f, q->ret, q->err);
        case FORMAT_TEXT:
                q->content_type = content_type_text;
                return flame_put_text(f, q->ret, q->err);
        default:
                q->content_type = content_type_json;
                return flame_put_json(f, q->ret, q->err);
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
                st = loaded_sides_build_tree(q, &l, &focus, &tree);
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
        enum status st = query_selection_parse(&q->params, "base_", &q->r.selection, q->now_unix_ns, &base, q->err);

        if (st)
                return st;
        if (is_table_wanted(q) && q->r.format == FORMAT_HTML)
                st = error_set(q->err, ST_USAGE, "html is not a format of the table (view=top)");
        else
                st = is_table_wanted(q) ? answer_diff_table(q, &base) : answer_tree(q, &base, ANSWER_FLAME);
        query_selection_deinit(&base);
        return st;
}

/* ---- sandwich ---- */

/* Write the callers or callees of the targets as a member of the answer, or as text under a heading. */
static enum status put_sandwich_half(struct query_call *q, struct loaded_sides *l, const struct tree_focus *focus,
                                     const char *name)
{
        _cleanup_tree_ struct tree tree = { 0 };
        struct flame f;
        enum status st = loaded_sides_build_tree(q, l, focus, &tree);

        if (st)
                return st;
        f = make_flame(q, l, &tree, focus);
        if (q->r.format == FORMAT_TEXT) {
                buf_printf(q->ret, "%s\n", name);
                st = flame_put_text(&f, q->ret, q->err);
                buf_append_u8(q->ret, '\n');
                return st;
        }
        buf_printf(q->ret, ",\"%s\":", name);
        return flame_put_json(&f, q->ret, q->err);
}

static enum status answer_sandwich(struct query_call *q, const char *function, const struct query_selection *base)
{
        _cleanup_function_targets_ struct function_targets targets = { 0 };
        _cleanup_loaded_sides_ struct loaded_sides l = { 0 };
        _cleanup_top_ struct top top = { 0 };
        struct tree_focus callers = { TREE_CALLERS, function, NULL }, callees = { TREE_CALLEES, function, NULL };
        struct top_side sides[2] = { 0 };
        const struct top_form form = { .limit = q->r.limit, .diff = base, .is_short = q->r.names == NAMES_SHORT };
        int64_t totals[2];
        const struct top_order order = { q->r.order, q->r.by_value ? NULL : totals };
        struct json_out j;
        enum status st = loaded_sides_load(q, base, &l);

        if (!st)
                st = function_targets_find(q, &l.frames, function, false, NULL, &targets);
        if (st)
                return st;
        callers.is_target = callees.is_target = targets.is_target;
        for (unsigned i = 0; i < 2; i++)
                totals[i] = l.sides[i].total;
        for (unsigned i = 0; i < l.side_count; i++)
                sides[i] = top_side_of_all(&l.sides[i]);
        st = top_build(&l.frames, sides, &order, &top, q->err);
        if (!st)
                st = filter_top(q, &targets, &top);
        if (st)
                return st;
        q->content_type = query_call_content_type(q);
        if (q->r.format == FORMAT_TEXT) {
                st = put_sandwich_half(q, &l, &callers, "callers");
                return st ? st : put_sandwich_half(q, &l, &callees, "callees");
        }
        json_out_init(&j, q->ret);
        json_out_object(&j, NULL);
        json_out_int(&j, "version", 1);
        json_out_str(&j, "function", function);
        loaded_sides_put_head(&l, &j);
        json_out_array(&j, "rows");
        top_put_rows(&top, &l.frames, &form, NULL, NULL, &j);
        json_out_array_end(&j);
        st = put_sandwich_half(q, &l, &callers, "callers");
        if (!st)
                st = put_sandwich_half(q, &l, &callees, "callees");
        buf_append_u8(q->ret, '}');
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
