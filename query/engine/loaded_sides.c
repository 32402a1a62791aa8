/* SPDX-License-Identifier: Apache-2.0 */
#include "query/engine/loaded_sides.h"

#include <stdlib.h>
#include <string.h>

#include "common/text/regex_match.h"
#include "query/engine/function_matching.h"
#include "query/engine/no_samples.h"
#include "query/engine/unit_text.h"

/* ---- loading ---- */

/* A table with an empty side compares nothing. The reason is that of the side, unless both are empty. */
static enum status note_empty_side(struct query_call *q, const struct loaded_sides *l)
{
        bool is_after = l->sides[0].count;

        if (l->sides[0].count && l->sides[1].count)
                return ST_OK;
        buf_printf(&q->note, "%sthe side %s has no samples%s, so nothing is compared", q->note.size ? "; " : "",
                   is_after ? "after" : "before",
                   *l->sides[is_after].type && frame_filter_is_set(&l->filter) ? " that pass the filters" : "");
        if (*l->sides[is_after].type || !*l->sides[!is_after].type || !query_call_find_base(q))
                return ST_OK;
        return note_no_samples(q, l->sides[is_after].selection, l->plan.type);
}

/* Stacks are selected, and the filters keep none. */
static bool is_all_filtered(const struct loaded_sides *l)
{
        return frame_filter_is_set(&l->filter) && !l->sides[0].count && !l->sides[1].count &&
               (*l->sides[0].type || *l->sides[1].type);
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
        if (!st && base && !q->r.is_match_exact)
                st = function_matching_apply(&l->frames, l->sides, q->err);
        if (!st)
                st = label_groups_rank(&l->groups, q->r.groups, q->err);
        if (!st)
                type_plan_put_note(&l->plan, &q->note);
        if (!st)
                query_call_note_magnitude(q, l->sides[0].magnitude + l->sides[1].magnitude);
        if (!st && !*l->sides[0].type && !*l->sides[1].type)
                st = note_no_samples(q, &q->r.selection, q->r.type);
        if (!st && is_all_filtered(l))
                buf_printf(&q->note, "%sno selected stack passes the filters", q->note.size ? "; " : "");
        else if (!st && base && (q->r.format == FORMAT_TEXT || q->r.format == FORMAT_ROWS || q->r.format == FORMAT_CSV))
                st = note_empty_side(q, l);
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

void function_targets_add_replacements(const struct frame_table *frames, uint8_t *is_target)
{
        for (uint32_t i = 0; frames->replaced_by && i < frames->replaced_count; i++)
                if (is_target[i])
                        is_target[frames->replaced_by[i]] = 1;
}

static void note_no_function(struct query_call *q, const struct function_targets *t)
{
        if (t->count && !memchr(t->is_target, 1, t->count))
                buf_printf(&q->note, "%sno selected sample has such a function", q->note.size ? "; " : "");
}

static enum status match_frames(struct query_call *q, const struct frame_table *frames, const char *function,
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
        if (!st)
                function_targets_add_replacements(frames, is_target);
        if (st)
                free(is_target);
        else
                *ret = (struct function_targets){ is_target, frames->count };
        return st;
}

enum status function_targets_find(struct query_call *q, const struct frame_table *frames, const char *function,
                                  bool search, struct function_targets *ret)
{
        enum status st = match_frames(q, frames, function, search, NULL, ret);

        if (!st)
                note_no_function(q, ret);
        return st;
}

enum status function_targets_find_exact(struct query_call *q, const struct frame_table *frames, const char *name,
                                        struct function_targets *ret)
{
        uint8_t *is_target = calloc(frames->count + (size_t)1, 1);

        if (!is_target)
                return error_no_memory(q->err);
        for (uint32_t i = 0; i < frames->count; i++)
                is_target[i] = query_frame_has_name(&frames->items[i], name);
        function_targets_add_replacements(frames, is_target);
        *ret = (struct function_targets){ is_target, frames->count };
        note_no_function(q, ret);
        return ST_OK;
}

enum status function_targets_find_asked(struct query_call *q, const struct frame_table *frames,
                                        struct function_targets *ret)
{
        const char *name = query_param_get(&q->params, "", "function_name"),
                   *file = query_param_get(&q->params, "", "file_name");
        enum status st = match_frames(q, frames, query_param_get(&q->params, "", "function"), false,
                                      query_param_get(&q->params, "", "file"), ret);

        for (uint32_t i = 0; !st && i < frames->count; i++) {
                const struct query_frame *f = &frames->items[i];

                if ((name && !query_frame_has_name(f, name)) || (file && strcmp(f->file, file) != 0))
                        ret->is_target[i] = 0;
        }
        if (st)
                return st;
        function_targets_add_replacements(frames, ret->is_target);
        note_no_function(q, ret);
        return ST_OK;
}

/* ---- the call tree ---- */

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

static void note_negative(struct query_call *q, const struct loaded_sides *l, const struct tree *tree)
{
        char value[40];
        int64_t sum = tree->negative[0];

        add_saturating(&sum, tree->negative[1]);
        if (!sum || q->has_negative_note)
                return;
        q->has_negative_note = true;
        buf_printf(&q->note, "%sstacks with negative values are not drawn: %s together", q->note.size ? "; " : "",
                   format_value(sum, *l->sides[0].unit ? l->sides[0].unit : l->sides[l->side_count - 1].unit, value,
                                sizeof value));
}

enum status loaded_sides_build_tree(struct query_call *q, struct loaded_sides *l, const struct tree_focus *focus,
                                    enum tree_use use, struct tree *tree)
{
        _cleanup_free_ uint32_t *root_frames = NULL;
        struct tree_roots roots = { .groups = &l->groups };
        enum status st = add_root_frames(q, l, &root_frames);

        roots.frames = root_frames;
        if (!st)
                st = tree_init(tree, q->meter, q->err);
        for (unsigned i = 0; !st && i < l->side_count; i++)
                st = tree_add(tree, &l->sides[i], i, focus, &roots, q->err);
        if (st)
                return st;
        if (use == TREE_DRAWN) {
                tree_drop_negative(tree);
                note_negative(q, l, tree);
        }
        tree_sum_totals(tree);
        return ST_OK;
}

void loaded_sides_put_change(const struct loaded_sides *l, const int64_t values[2], struct buf *ret)
{
        const char *unit = *l->sides[0].unit ? l->sides[0].unit : l->sides[1].unit;
        const int64_t totals[2] = { l->sides[0].total, l->sides[1].total };
        char v[4][40];

        buf_printf(ret, "%11s %11s %11s %10s", format_value(values[0], unit, v[0], 40),
                   format_value(values[1], unit, v[1], 40), format_change(values, unit, v[2], 40),
                   format_share_change(values, totals, v[3], 40));
}
