/* SPDX-License-Identifier: Apache-2.0 */
/* SelectMergeStacktraces, SelectMergeSpanProfile, SelectMergeProfile and Diff. */
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "profile-formats/proto_message.h"
#include "query/querier/flamebearer.h"

#define LIMIT_CALL_SITE 512 /* frames */

static uint32_t choose_max_nodes(int64_t asked)
{
        if (!asked)
                return DEFAULT_FLAME_NODES;
        return asked < 0 || asked > LIMIT_MAX_NODES ? LIMIT_MAX_NODES : (uint32_t)asked;
}

static enum status check_type_given(struct querier_call *c, const char *type)
{
        return *type ? ST_OK : error_set(c->q.err, ST_USAGE, "profile_typeID is missing");
}

/* go_pgo only requests shorter stacks, which readers do not require: it is ignored, and the call site with it. */
static enum status set_call_site(struct querier_call *c, const Querier__StackTraceSelector *s)
{
        const char **names;

        if (!s || s->go_pgo || !s->n_call_site)
                return ST_OK;
        if (s->n_call_site > LIMIT_CALL_SITE)
                return error_set(c->q.err, ST_USAGE, "a call site may have up to %d frames", LIMIT_CALL_SITE);
        names = querier_alloc(c, s->n_call_site, sizeof *names);
        if (!names)
                return querier_get_failure(c);
        for (size_t i = 0; i < s->n_call_site; i++)
                names[i] = s->call_site[i]->name;
        c->q.r.call_site = names;
        c->q.r.call_site_count = s->n_call_site;
        return ST_OK;
}

/* ---- trees ---- */

void stack_view_deinit(struct stack_view *v)
{
        drawing_deinit(&v->drawing);
        tree_deinit(&v->tree);
        loaded_sides_deinit(&v->l);
        querier_selection_deinit(&v->base);
        querier_selection_deinit(&v->selection);
}

enum status stack_view_load(struct querier_call *c, struct stack_view *v)
{
        return loaded_sides_load(&c->q, v->has_base ? &v->base.selection : NULL, &v->l);
}

enum status stack_view_draw(struct querier_call *c, struct stack_view *v)
{
        const struct tree_focus everything = { TREE_ALL, NULL, NULL };
        enum status st = stack_view_load(c, v);

        if (!st)
                st = merge_frames_by_name(c, &v->l);
        if (!st)
                st = loaded_sides_build_tree(&c->q, &v->l, &everything, TREE_DRAWN, &v->tree);
        return st ? st : tree_draw(&v->tree, c->q.r.max_nodes, &v->drawing, c->q.err);
}

static enum status make_flame_graph(struct querier_call *c, const struct stack_view *v, Querier__FlameGraph **ret)
{
        Querier__FlameGraph *g = querier_alloc(c, 1, sizeof *g);
        struct flamebearer f;
        enum status st = g ? flamebearer_make(c, &v->l, &v->drawing, &f) : querier_get_failure(c);

        if (st)
                return st;
        querier__flame_graph__init(g);
        g->names = f.names;
        g->n_names = f.name_count;
        g->levels = f.levels;
        g->n_levels = f.level_count;
        g->total = v->drawing.nodes[0].total[0];
        g->max_self = f.max_self;
        *ret = g;
        return ST_OK;
}

static enum status refuse_format(struct querier_call *c, Querier__ProfileFormat format)
{
        return error_set(c->q.err, ST_UNSUPPORTED, "profile format %d is not supported: flame graph, tree%s", format,
                         " (and pprof, of SelectMergeStacktraces) are");
}

/* ---- pprof ---- */

static enum status make_profile(struct querier_call *c, Querier__Profile **ret)
{
        _cleanup_buf_ struct buf plain;
        const void *message;
        enum status st;

        buf_init_budget(&plain, LIMIT_RESPONSE_BYTES, MEMORY_QUERIES);
        st = query_put_plain_pprof(&c->q, &plain);
        if (!st)
                st = proto_message_decode(&querier__profile__descriptor, plain.data, plain.size, c->memory, "profile",
                                          &message, c->q.err);
        if (!st)
                *ret = (Querier__Profile *)(uintptr_t)message; /* the message is in c->memory */
        return st;
}

enum status querier_answer_profile(struct querier_call *c, const void *request)
{
        const Querier__SelectMergeProfileRequest *r = request;
        const struct querier_choice choice = { .type = r->profile_typeid,
                                               .selector = r->label_selector,
                                               .start_ms = r->start,
                                               .end_ms = r->end,
                                               .trace_ids = r->trace_id_selector,
                                               .trace_id_count = r->n_trace_id_selector,
                                               .profile_id_count = r->n_profile_id_selector };
        _cleanup_querier_selection_ struct querier_selection s = { 0 };
        Querier__Profile *profile;
        enum status st = check_type_given(c, r->profile_typeid);

        if (!st)
                st = set_call_site(c, r->stack_trace_selector);
        if (!st)
                st = querier_selection_init(&s, c, &choice);
        if (st)
                return st;
        querier_call_select(c, &s);
        st = make_profile(c, &profile);
        if (!st)
                c->answer = &profile->base;
        return st;
}

/* ---- stack traces ---- */

static enum status make_pprof_answer(struct querier_call *c, Querier__SelectMergeStacktracesResponse *answer)
{
        Querier__PprofProfile *pprof = querier_alloc(c, 1, sizeof *pprof);

        if (!pprof)
                return querier_get_failure(c);
        querier__pprof_profile__init(pprof);
        answer->pprof = pprof;
        return make_profile(c, &pprof->profile);
}

/* Fills either the flame graph or the tree, by the requested format. */
static enum status make_tree_answer(struct querier_call *c, Querier__ProfileFormat format, struct stack_view *v,
                                    Querier__FlameGraph **graph_ret, ProtobufCBinaryData *tree_ret)
{
        enum status st;

        if (format > QUERIER__PROFILE_FORMAT__PROFILE_FORMAT_TREE)
                return refuse_format(c, format);
        st = stack_view_draw(c, v);
        if (st)
                return st;
        return format == QUERIER__PROFILE_FORMAT__PROFILE_FORMAT_TREE ? tree_bytes_make(c, &v->l, &v->drawing, tree_ret)
                                                                      : make_flame_graph(c, v, graph_ret);
}

static struct querier_choice make_stacktraces_choice(const Querier__SelectMergeStacktracesRequest *r)
{
        return (struct querier_choice){ .type = r->profile_typeid,
                                        .selector = r->label_selector,
                                        .start_ms = r->start,
                                        .end_ms = r->end,
                                        .trace_ids = r->trace_id_selector,
                                        .trace_id_count = r->n_trace_id_selector,
                                        .span_ids = r->span_selector,
                                        .span_id_count = r->n_span_selector,
                                        .profile_id_count = r->n_profile_id_selector };
}

enum status querier_answer_stacktraces(struct querier_call *c, const void *request)
{
        const Querier__SelectMergeStacktracesRequest *r = request;
        const struct querier_choice choice = make_stacktraces_choice(r);
        Querier__SelectMergeStacktracesResponse *answer = querier_alloc(c, 1, sizeof *answer);
        _cleanup_stack_view_ struct stack_view v = { 0 };
        enum status st = answer ? check_type_given(c, r->profile_typeid) : querier_get_failure(c);

        if (!st)
                st = set_call_site(c, r->stack_trace_selector);
        if (!st)
                st = querier_selection_init(&v.selection, c, &choice);
        if (st)
                return st;
        querier__select_merge_stacktraces_response__init(answer);
        c->answer = &answer->base;
        querier_call_select(c, &v.selection);
        c->q.r.max_nodes = choose_max_nodes(r->max_nodes);
        if (r->format == QUERIER__PROFILE_FORMAT__PROFILE_FORMAT_PPROF)
                return make_pprof_answer(c, answer);
        return make_tree_answer(c, r->format, &v, &answer->flamegraph, &answer->tree);
}

enum status querier_answer_span_profile(struct querier_call *c, const void *request)
{
        const Querier__SelectMergeSpanProfileRequest *r = request;
        const struct querier_choice choice = { .type = r->profile_typeid,
                                               .selector = r->label_selector,
                                               .start_ms = r->start,
                                               .end_ms = r->end,
                                               .span_ids = r->span_selector,
                                               .span_id_count = r->n_span_selector };
        Querier__SelectMergeSpanProfileResponse *answer = querier_alloc(c, 1, sizeof *answer);
        _cleanup_stack_view_ struct stack_view v = { 0 };
        enum status st = answer ? check_type_given(c, r->profile_typeid) : querier_get_failure(c);

        if (!st)
                st = querier_selection_init(&v.selection, c, &choice);
        if (st)
                return st;
        querier__select_merge_span_profile_response__init(answer);
        c->answer = &answer->base;
        querier_call_select(c, &v.selection);
        c->q.r.max_nodes = choose_max_nodes(r->max_nodes);
        return make_tree_answer(c, r->format, &v, &answer->flamegraph, &answer->tree);
}

/* ---- diff ---- */

static enum status make_flame_diff(struct querier_call *c, const struct stack_view *v, Querier__FlameGraphDiff **ret)
{
        Querier__FlameGraphDiff *g = querier_alloc(c, 1, sizeof *g);
        const int64_t *totals = v->drawing.nodes[0].total;
        struct flamebearer f;
        enum status st = g ? flamebearer_make(c, &v->l, &v->drawing, &f) : querier_get_failure(c);

        if (st)
                return st;
        querier__flame_graph_diff__init(g);
        g->names = f.names;
        g->n_names = f.name_count;
        g->levels = f.levels;
        g->n_levels = f.level_count;
        g->leftticks = totals[0];
        g->rightticks = totals[1];
        g->total = totals[0];
        add_saturating(&g->total, totals[1]);
        g->max_self = f.max_self;
        *ret = g;
        return ST_OK;
}

static size_t count_call_site(const Querier__StackTraceSelector *s)
{
        return s && !s->go_pgo ? s->n_call_site : 0;
}

static bool is_same_call_site(const Querier__StackTraceSelector *a, const Querier__StackTraceSelector *b)
{
        size_t count = count_call_site(a);

        if (count != count_call_site(b))
                return false;
        for (size_t i = 0; i < count; i++)
                if (strcmp(a->call_site[i]->name, b->call_site[i]->name) != 0)
                        return false;
        return true;
}

/* Both sides must have the same type, since a tree has one unit, and the same call site, since one filter loads both.
 */
static enum status check_diff_request(struct querier_call *c, const Querier__DiffRequest *r)
{
        enum status st;

        if (!r->left || !r->right)
                return error_set(c->q.err, ST_USAGE, "left or right is missing");
        st = check_type_given(c, r->left->profile_typeid);
        if (!st)
                st = check_type_given(c, r->right->profile_typeid);
        if (!st && strcmp(r->left->profile_typeid, r->right->profile_typeid) != 0)
                st = error_set(c->q.err, ST_USAGE, "left and right have different profile types");
        if (!st && !is_same_call_site(r->left->stack_trace_selector, r->right->stack_trace_selector))
                st = error_set(c->q.err, ST_USAGE, "left and right have different call sites");
        return st ? st : set_call_site(c, r->right->stack_trace_selector);
}

enum status querier_answer_diff(struct querier_call *c, const void *request)
{
        const Querier__DiffRequest *r = request;
        Querier__DiffResponse *answer = querier_alloc(c, 1, sizeof *answer);
        _cleanup_stack_view_ struct stack_view v = { 0 };
        struct querier_choice left, right;
        enum status st = answer ? check_diff_request(c, r) : querier_get_failure(c);

        if (st)
                return st;
        left = make_stacktraces_choice(r->left);
        right = make_stacktraces_choice(r->right);
        st = querier_selection_init(&v.base, c, &left);
        if (!st)
                st = querier_selection_init(&v.selection, c, &right);
        if (st)
                return st;
        querier__diff_response__init(answer);
        c->answer = &answer->base;
        querier_call_select(c, &v.selection);
        c->q.r.max_nodes =
                choose_max_nodes(r->left->max_nodes > r->right->max_nodes ? r->left->max_nodes : r->right->max_nodes);
        v.has_base = true;
        st = stack_view_draw(c, &v);
        return st ? st : make_flame_diff(c, &v, &answer->flamegraph);
}
