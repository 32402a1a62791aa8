/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operation "gate": whether a service or a benchmark became slower, and which functions did.
 *
 * Problem: with thousands of functions, some always cost more than before by chance, and samples of one program within
 * seconds depend on each other: counted one by one, they make chance look like evidence.
 *
 * Model: an observation is a cluster, never a sample: a host (a value of the label `cluster`), or if there are few, the
 * same on both sides, a part of at least 10 minutes of one. Of each cluster a function has one number, its share of the
 * cluster's cost or its cost per second; Welch's test compares the numbers of both sides (welch_test.h). A host that is
 * on both sides is a pair: what is special about it is in both numbers and cancels out. Functions under MIN_SHARE of
 * the cost of both sides are not tested.
 *
 * The total has a level of TOTAL_LEVEL, and the expected share of false alarms among those of functions is at most
 * FALSE_DISCOVERIES; so without any change at most 3% of the runs have an alarm. The level is divided among the
 * functions by their cost (weighted Benjamini-Hochberg): the more a change can cost, the surer it is found, and many
 * small functions do not make it harder to find a change of a great one. A rule fails if the change is significant and
 * greater than its threshold.
 *
 * Rejected: to test by hosts and by pairs and take the better result, which has more false alarms than either.
 *
 * When one function becomes faster, the shares of all others rise. So if the total fell, a function only fails if its
 * cost rose as well.
 *
 * What was not found could be too small to be seen: each rule states the smallest change that would have been found
 * with a probability of POWER. For functions this is that of functions with half of the cost. A rule whose threshold is
 * below that is unknown, not passed. With less than two clusters on a side nothing can be said about chance, and rules
 * compare with their thresholds only.
 *
 * Sums do not depend on all this: flat costs are those of `diff`, for equal selections (function_matching.h).
 *
 * In the file: functions; tests; the answer. gate_rules.h has the rules, gate_costs.h the costs by cluster.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/json/json_out.h"
#include "common/limits.h"
#include "common/memory/array.h"
#include "common/text.h"
#include "common/text/number_text.h"
#include "query/engine/function_matching.h"
#include "query/engine/loaded_sides.h"
#include "query/engine/no_samples.h"
#include "query/engine/unit_text.h"
#include "query/engine/welch_test.h"
#include "query/operations/gate_costs.h"
#include "query/operations/gate_rules.h"

#define TOTAL_LEVEL 0.01
#define FALSE_DISCOVERIES 0.02
#define POWER 0.9
#define MIN_SHARE 0.01
#define DEFAULT_PART_NS (INT64_C(600) * 1000000000)
#define DEFAULT_RULES "total>5%,function>2%"
#define DEFAULT_CLUSTER "host_name"

/* ---- the request ---- */

struct gate_row {
        uint32_t frame; /* that stands for the function on both sides */
        int64_t flat[2];
        struct welch_result test; /* if p is a number */
        double mean[2];           /* share of a cluster's total, or cost per second */
        double change;            /* relative; INFINITY: new */
        double share;             /* of all costs, the mean of both sides: its weight among tests */
        double p;                 /* NAN: not tested */
        double smallest_effect;   /* relative; NAN: not known */
        bool is_significant;
        bool is_failure;
        bool is_share_only; /* its share rose, not its cost */
};

struct gate_observations {
        struct observations sides[2];
        struct pair_sums pairs;
};

struct gate {
        struct query_call *q;
        struct gate_costs costs;
        double *observed; /* scratch of observe_pairs(), by cluster of the side before; owned */
        struct gate_rule rules[LIMIT_GATE_RULES];
        size_t rule_count;
        struct gate_row *rows; /* owned */
        size_t row_count, row_capacity, tested_count;
        double tested_share;              /* the sum of `share` of those that are tested */
        struct memory_reservation memory; /* of rows */
};

static void gate_deinit(struct gate *g)
{
        gate_costs_deinit(&g->costs);
        gate_rules_deinit(g->rules);
        free(g->observed);
        free(g->rows);
        memory_release(&g->memory);
}

/* ---- functions ---- */

static int compare_cells(const void *x, const void *y, void *context)
{
        const struct gate_cell *a = x, *b = y;

        (void)context;
        if (a->name != b->name)
                return a->name < b->name ? -1 : 1;
        return a->cluster < b->cluster ? -1 : a->cluster > b->cluster;
}

static bool can_gate_test(const struct gate *g)
{
        return g->costs.sides[0].count >= 2 && g->costs.sides[1].count >= 2;
}

static double divide_by_time(const struct gate *g, unsigned side, double value)
{
        bool is_rate = g->costs.part_ns && !g->costs.sides[side].is_average && g->costs.seconds[side] > 0;

        return is_rate ? value / g->costs.seconds[side] : value;
}

/* What is observed of a cost in a cluster. */
static double observe_cost(const struct gate *g, unsigned side, uint32_t cluster, int64_t value)
{
        const struct gate_side *s = &g->costs.sides[side];

        if (!g->q->r.by_value)
                return s->sums[cluster] > 0 ? (double)value / s->sums[cluster] : 0;
        return divide_by_time(g, side, (double)value);
}

/* Of a side; of the side before it is kept for its partner until forget_observed_costs(). */
static void add_gate_observation(struct gate *g, unsigned side, uint32_t cluster, double x,
                                 struct gate_observations *ret)
{
        const uint32_t partner = g->costs.sides[side].partners[cluster];

        observations_add(&ret->sides[side], x);
        if (partner == GATE_NO_PARTNER)
                return;
        pair_sums_add(&ret->pairs, side, x);
        if (side == 0)
                g->observed[cluster] = x;
        else
                ret->pairs.product += g->observed[partner] * x;
}

/* Sum the cells of one function on one side, which are cells[*at ...]; clusters without one are 0. */
static void observe_function(struct gate *g, unsigned side, uint32_t name, size_t *at, struct gate_row *row,
                             struct gate_observations *ret)
{
        while (*at < g->costs.cell_count[side] && g->costs.cells[side][*at].name == name) {
                const uint32_t cluster = g->costs.cells[side][*at].cluster;
                int64_t value = 0;

                row->frame = frame_table_get_replacement(&g->costs.frames, g->costs.cells[side][*at].frame);
                for (; *at < g->costs.cell_count[side] && g->costs.cells[side][*at].name == name &&
                       g->costs.cells[side][*at].cluster == cluster;
                     ++*at)
                        add_saturating(&value, g->costs.cells[side][*at].value);
                add_saturating(&row->flat[side], value);
                add_gate_observation(g, side, cluster, observe_cost(g, side, cluster, value), ret);
        }
        ret->sides[side].count = g->costs.sides[side].count;
        ret->pairs.count = g->costs.pair_count;
}

static void forget_observed_costs(struct gate *g, size_t begin, size_t end)
{
        for (size_t i = begin; i < end; i++)
                g->observed[g->costs.cells[0][i].cluster] = 0;
}

static bool is_row_tested(const struct gate *g, const struct gate_row *row)
{
        for (unsigned side = 0; side < 2; side++)
                if (g->costs.sides[side].total > 0 &&
                    (double)row->flat[side] >= MIN_SHARE * (double)g->costs.sides[side].total)
                        return true;
        return false;
}

static void test_gate_row(struct gate *g, const struct gate_observations *o, struct gate_row *row)
{
        for (unsigned side = 0; side < 2; side++) {
                const struct observations *of = &o->sides[side];

                row->mean[side] = of->count ? of->sum / (double)of->count : 0;
                if (g->costs.sides[side].total > 0)
                        row->share += (double)row->flat[side] / (double)g->costs.sides[side].total / 2;
        }
        row->change = row->mean[0] > 0 ? row->mean[1] / row->mean[0] - 1 : row->mean[1] > 0 ? INFINITY : 0;
        row->p = row->smallest_effect = NAN;
        if (!can_gate_test(g) || !is_row_tested(g, row))
                return;
        welch_compare(o->sides, &o->pairs, &row->test);
        row->p = row->test.p;
        g->tested_share += row->share;
        g->tested_count++;
}

static enum status sort_gate_cells(struct gate *g)
{
        enum status st = ST_OK;

        for (unsigned side = 0; !st && side < 2; side++) {
                for (size_t i = 0; i < g->costs.cell_count[side]; i++) {
                        struct gate_cell *c = &g->costs.cells[side][i];

                        c->name = g->costs.frames.items[frame_table_get_replacement(&g->costs.frames, c->frame)].name;
                }
                st = work_meter_sort(g->q->meter, g->costs.cells[side], g->costs.cell_count[side],
                                     sizeof *g->costs.cells[side], compare_cells, NULL, g->q->err);
        }
        return st;
}

static enum status make_gate_rows(struct gate *g)
{
        size_t at[2] = { 0 };
        enum status st = sort_gate_cells(g);

        if (!st) {
                g->observed = calloc(g->costs.sides[0].count + 1, sizeof *g->observed);
                if (!g->observed)
                        st = error_no_memory(g->q->err);
        }
        while (!st && (at[0] < g->costs.cell_count[0] || at[1] < g->costs.cell_count[1])) {
                const size_t first = at[0];
                struct gate_row row = { 0 };
                struct gate_observations o = { 0 };
                uint32_t name = UINT32_MAX;

                for (unsigned side = 0; side < 2; side++)
                        if (at[side] < g->costs.cell_count[side] && g->costs.cells[side][at[side]].name < name)
                                name = g->costs.cells[side][at[side]].name;
                for (unsigned side = 0; side < 2; side++)
                        observe_function(g, side, name, &at[side], &row, &o);
                forget_observed_costs(g, first, at[0]);
                st = array_charge_growth(&g->memory, g->row_capacity, g->row_count, sizeof row, g->q->err);
                if (!st && !array_reserve(&g->rows, &g->row_capacity, g->row_count))
                        st = error_no_memory(g->q->err);
                if (st)
                        break;
                test_gate_row(g, &o, &row);
                g->rows[g->row_count++] = row;
                st = work_meter_add(g->q->meter, 64, g->q->err);
        }
        return st;
}

/* ---- tests ---- */

static int compare_numbers(const void *x, const void *y, void *context)
{
        const double *a = x, *b = y;

        (void)context;
        return *a < *b ? -1 : *a > *b;
}

/* The weight of a tested row: those of all rows have a mean of 1. */
static double get_row_weight(const struct gate *g, const struct gate_row *row)
{
        return row->share * (double)g->tested_count / g->tested_share;
}

/* Choose the significant rows. Source: C. Genovese, K. Roeder and L. Wasserman, Biometrika 93 (2006). */
static enum status test_gate_rows(struct gate *g)
{
        _cleanup_free_ double *p = calloc(g->row_count + 1, sizeof *p);
        size_t count = 0;
        double limit;
        enum status st;

        if (!p)
                return error_no_memory(g->q->err);
        for (size_t i = 0; i < g->row_count; i++)
                if (!isnan(g->rows[i].p))
                        p[count++] = g->rows[i].p / get_row_weight(g, &g->rows[i]);
        st = work_meter_sort(g->q->meter, p, count, sizeof *p, compare_numbers, NULL, g->q->err);
        limit = find_discovery_limit(p, count, FALSE_DISCOVERIES);
        for (size_t i = 0; i < g->row_count; i++)
                g->rows[i].is_significant = g->rows[i].p / get_row_weight(g, &g->rows[i]) <= limit;
        return st;
}

/* The smallest change that would have been found in each row, were it the only one that changed. */
static void find_row_effects(struct gate *g)
{
        for (size_t i = 0; i < g->row_count; i++) {
                struct gate_row *row = &g->rows[i];

                if (!isnan(row->p) && row->mean[0] > 0)
                        row->smallest_effect =
                                welch_find_smallest_effect(&row->test, FALSE_DISCOVERIES * row->share / g->tested_share,
                                                           POWER) /
                                row->mean[0];
        }
}

static int compare_row_effects(const void *x, const void *y, void *context)
{
        const struct gate_row *a = x, *b = y;

        (void)context;
        return a->smallest_effect < b->smallest_effect ? -1 : a->smallest_effect > b->smallest_effect;
}

/* The effect that functions with half of the tested cost would have shown. */
static double find_usual_effect(const struct gate *g)
{
        _cleanup_free_ struct gate_row *rows = calloc(g->tested_count + 1, sizeof *rows);
        double all = 0, sum = 0;
        size_t count = 0;

        for (size_t i = 0; rows && i < g->row_count; i++)
                if (!isnan(g->rows[i].smallest_effect)) {
                        rows[count++] = g->rows[i];
                        all += g->rows[i].mean[0];
                }
        if (!count)
                return NAN;
        qsort_r(rows, count, sizeof *rows, compare_row_effects, NULL);
        for (size_t i = 0; i < count; i++) {
                sum += rows[i].mean[0];
                if (sum >= all / 2)
                        return rows[i].smallest_effect;
        }
        return rows[count - 1].smallest_effect;
}

static void judge_total(const struct gate *g, struct gate_rule *rule)
{
        struct gate_observations o = { .pairs.count = g->costs.pair_count };
        struct welch_result r;
        double mean[2];

        for (unsigned side = 0; side < 2; side++) {
                const struct gate_side *s = &g->costs.sides[side];

                for (size_t i = 0; i < s->count; i++)
                        observations_add(&o.sides[side], divide_by_time(g, side, s->sums[i]));
                mean[side] = s->count ? o.sides[side].sum / (double)s->count : 0;
        }
        for (size_t i = 0; i < g->costs.sides[0].count; i++)
                if (g->costs.sides[0].partners[i] != GATE_NO_PARTNER) {
                        double before = divide_by_time(g, 0, g->costs.sides[0].sums[i]),
                               after = divide_by_time(g, 1, g->costs.sides[1].sums[g->costs.sides[0].partners[i]]);

                        pair_sums_add(&o.pairs, 0, before);
                        pair_sums_add(&o.pairs, 1, after);
                        o.pairs.product += before * after;
                }
        if (mean[0] > 0)
                rule->change = mean[1] / mean[0] - 1;
        if (!can_gate_test(g)) {
                rule->state = rule->change > rule->threshold ? RULE_FAILED : RULE_PASSED;
                return;
        }
        welch_compare(o.sides, &o.pairs, &r);
        if (mean[0] > 0)
                rule->smallest_effect = welch_find_smallest_effect(&r, TOTAL_LEVEL, POWER) / mean[0];
        rule->state = r.p <= TOTAL_LEVEL && rule->change > rule->threshold ? RULE_FAILED
                      : !(rule->smallest_effect <= rule->threshold)        ? RULE_UNKNOWN
                                                                           : RULE_PASSED;
}

/* Whether a row is a function that the rule is about. */
static bool is_rule_about(const struct gate *g, const struct gate_rule *rule, const struct gate_row *row)
{
        return rule->kind == RULE_ANY_FUNCTION
                       ? is_row_tested(g, row)
                       : query_frame_has_name(&g->costs.frames.items[row->frame], rule->subject);
}

/* The mean cost of a cluster, per second if their lengths are known. */
static double compute_mean_cost(const struct gate *g, unsigned side, int64_t cost)
{
        const size_t count = g->costs.sides[side].count;

        return count ? divide_by_time(g, side, (double)cost) / (double)count : 0;
}

/* Costs per second of a few samples depend on when the first and the last one were taken. */
static bool has_reliable_rates(const struct gate *g)
{
        const double least = (double)DEFAULT_PART_NS / 1e9;

        return !g->costs.part_ns || (g->costs.seconds[0] >= least && g->costs.seconds[1] >= least);
}

/*
 * Whether only the share of a function rose: the total fell, and the function itself does not cost more. So it is when
 * another function became faster.
 */
static bool is_rise_of_share_only(const struct gate *g, const struct gate_row *row, double threshold)
{
        return !g->q->r.by_value && has_reliable_rates(g) &&
               compute_mean_cost(g, 1, g->costs.sides[1].total) < compute_mean_cost(g, 0, g->costs.sides[0].total) &&
               compute_mean_cost(g, 1, row->flat[1]) <= compute_mean_cost(g, 0, row->flat[0]) * (1 + threshold);
}

static void judge_functions(struct gate *g, struct gate_rule *rule)
{
        bool can_test = can_gate_test(g), is_seen, is_misspelt;
        double share_change = NAN;

        rule->smallest_effect = rule->kind == RULE_ANY_FUNCTION ? find_usual_effect(g) : NAN;
        for (size_t i = 0; i < g->row_count; i++) {
                struct gate_row *row = &g->rows[i];

                if (!is_rule_about(g, rule, row))
                        continue;
                rule->function_count++;
                if (rule->kind == RULE_FUNCTION && !(rule->smallest_effect >= row->smallest_effect) &&
                    !isnan(row->smallest_effect))
                        rule->smallest_effect = row->smallest_effect; /* of several files: the greatest */
                if (row->change > rule->threshold && (!can_test || row->is_significant)) {
                        row->is_share_only = is_rise_of_share_only(g, row, rule->threshold);
                        if (row->is_share_only) {
                                share_change = row->change;
                                continue;
                        }
                        row->is_failure = true;
                        rule->state = RULE_FAILED;
                }
                if (!(rule->change >= row->change) && (!can_test || row->is_significant || rule->kind == RULE_FUNCTION))
                        rule->change = row->change;
        }
        rule->is_share_only = rule->kind == RULE_FUNCTION && isnan(rule->change) && !isnan(share_change);
        if (rule->is_share_only)
                rule->change = share_change;
        is_seen = rule->smallest_effect <= rule->threshold;
        is_misspelt = rule->kind == RULE_FUNCTION && !rule->function_count;
        if (rule->state != RULE_FAILED && ((can_test && !is_seen) || is_misspelt))
                rule->state = RULE_UNKNOWN;
}

static enum status judge_gate(struct gate *g)
{
        enum status st = make_gate_rows(g);

        if (!st)
                st = test_gate_rows(g);
        if (!st)
                find_row_effects(g);
        for (size_t i = 0; !st && i < g->rule_count; i++) {
                /* Without samples on a side there is nothing to judge, and of a negative total there are no shares. */
                if (g->costs.sides[0].total <= 0 || g->costs.sides[1].total <= 0)
                        g->rules[i].state = RULE_UNKNOWN;
                else if (g->rules[i].kind == RULE_TOTAL)
                        judge_total(g, &g->rules[i]);
                else
                        judge_functions(g, &g->rules[i]);
        }
        return st;
}

/* ---- the answer ---- */

static int compare_gate_rows(const void *x, const void *y, void *context)
{
        const struct gate_row *a = x, *b = y;
        double of_a = a->mean[1] - a->mean[0], of_b = b->mean[1] - b->mean[0];

        (void)context;
        if (a->is_failure != b->is_failure)
                return a->is_failure ? -1 : 1;
        if (of_a != of_b)
                return of_a > of_b ? -1 : 1;
        return a->frame < b->frame ? -1 : a->frame > b->frame;
}

/* null if it is not finite: a new function has no relative change. */
static void put_gate_number(struct json_out *j, const char *key, double value)
{
        if (isfinite(value))
                json_out_double(j, key, value);
        else
                json_out_str(j, key, NULL);
}

static void put_gate_rules(const struct gate *g, struct json_out *j)
{
        static const char *const states[] = { "passed", "failed", "unknown" };

        json_out_array(j, "rules");
        for (size_t i = 0; i < g->rule_count; i++) {
                const struct gate_rule *r = &g->rules[i];

                json_out_object(j, NULL);
                json_out_str(j, "rule", r->text);
                json_out_str(j, "state", states[r->state]);
                put_gate_number(j, "change_percent", r->change * 100);
                put_gate_number(j, "smallest_percent", r->smallest_effect * 100);
                if (r->kind == RULE_FUNCTION)
                        json_out_uint(j, "functions", r->function_count);
                if (r->is_share_only)
                        json_out_bool(j, "is_share_only", true);
                json_out_object_end(j);
        }
        json_out_array_end(j);
}

static void put_gate_row(const struct gate *g, const struct gate_row *row, struct json_out *j)
{
        const struct query_frame *f = &g->costs.frames.items[row->frame];

        json_out_object(j, NULL);
        json_out_str(j, "function", f->function);
        if (f->short_name != f->function)
                json_out_str(j, "short_name", f->short_name);
        json_out_str(j, "file", f->file);
        json_out_str(j, "object", f->mapping);
        json_out_int(j, "flat", row->flat[0]);
        json_out_int(j, "flat_after", row->flat[1]);
        put_gate_number(j, "change_percent", row->change * 100);
        if (!isnan(row->p))
                put_gate_number(j, "p", row->p);
        if (!isnan(row->smallest_effect))
                put_gate_number(j, "smallest_percent", row->smallest_effect * 100);
        json_out_bool(j, "is_significant", row->is_significant);
        json_out_bool(j, "is_failure", row->is_failure);
        json_out_object_end(j);
}

static enum status put_gate_answer(struct gate *g)
{
        const struct query_selection *of[2] = { &g->costs.sides[0].selection, &g->costs.sides[1].selection };
        uint64_t limit = g->q->r.limit ? g->q->r.limit : TEXT_LIMIT;
        struct json_out j;
        enum status st = work_meter_sort(g->q->meter, g->rows, g->row_count, sizeof *g->rows, compare_gate_rows, NULL,
                                         g->q->err);

        if (st)
                return st;
        json_out_init(&j, g->q->ret);
        json_out_object(&j, NULL);
        json_out_str(&j, "type", g->costs.type);
        json_out_str(&j, "unit", g->costs.unit);
        json_out_int(&j, "base_from_ms", of[0]->from_unix_ns / 1000000);
        json_out_int(&j, "base_to_ms", of[0]->to_unix_ns / 1000000);
        json_out_int(&j, "from_ms", of[1]->from_unix_ns / 1000000);
        json_out_int(&j, "to_ms", of[1]->to_unix_ns / 1000000);
        json_out_int(&j, "total", g->costs.sides[0].total);
        put_counted_samples(&j, "samples", "samples_are", g->costs.sides[0].samples);
        json_out_int(&j, "total_after", g->costs.sides[1].total);
        put_counted_samples(&j, "samples_after", "samples_after_are", g->costs.sides[1].samples);
        type_plan_put_json(&g->costs.plan, &j);
        json_out_str(&j, "compare", g->q->r.by_value ? "values" : "shares");
        json_out_str(&j, "cluster", g->costs.cluster.names[0]);
        json_out_str(&j, "clusters_are", g->costs.has_parts ? "parts" : "values");
        json_out_uint(&j, "clusters", g->costs.sides[0].count);
        json_out_uint(&j, "clusters_after", g->costs.sides[1].count);
        json_out_uint(&j, "pairs", g->costs.pair_count < WELCH_MIN_PAIRS ? 0 : g->costs.pair_count);
        json_out_uint(&j, "tested", g->tested_count);
        put_gate_rules(g, &j);
        json_out_array(&j, "rows");
        for (size_t i = 0; i < g->row_count && i < limit; i++)
                put_gate_row(g, &g->rows[i], &j);
        json_out_array_end(&j);
        json_out_object_end(&j);
        return ST_OK;
}

static enum status parse_gate_request(struct gate *g)
{
        const char *cluster = query_param_get(&g->q->params, "", "cluster"),
                   *part = query_param_get(&g->q->params, "", "part");
        const char *rules = query_param_get(&g->q->params, "", "fail_if");
        enum status st = gate_rules_parse(rules ? rules : DEFAULT_RULES, g->rules, &g->rule_count, g->q->err);

        g->costs.part_ns = DEFAULT_PART_NS;
        if (part && strcmp(part, "none") == 0)
                g->costs.part_ns = 0;
        else if (!st && part)
                st = duration_text_parse(part, &g->costs.part_ns, g->q->err);
        if (!st && g->costs.part_ns && g->costs.part_ns < DEFAULT_PART_NS)
                st = error_set(g->q->err, ST_USAGE,
                               "part '%.40s' is under 10m: intervals that follow each other are not independent", part);
        if (!st)
                st = label_list_parse(cluster ? cluster : DEFAULT_CLUSTER, &g->costs.cluster, g->q->err);
        label_groups_init(&g->costs.hosts, &g->costs.cluster, g->q->meter);
        return st ? st : frame_filter_parse(&g->q->params, &g->costs.filter, g->q->err);
}

/* Why there is nothing to judge: the first side without samples or with a negative total. */
static enum status note_unjudged_side(struct gate *g, const struct query_selection *const selections[2])
{
        const bool is_empty[2] = { !sample_count_round(g->costs.sides[0].samples),
                                   !sample_count_round(g->costs.sides[1].samples) };
        bool is_after = !is_empty[0] && g->costs.sides[0].total >= 0,
             is_filtered = frame_filter_is_set(&g->costs.filter);
        const char *name = is_after ? "after" : "before";
        struct buf *note = &g->q->note;

        if (is_empty[is_after])
                buf_printf(note, "%sthe side %s has no samples%s", note->size ? "; " : "", name,
                           is_filtered ? " that pass the filters" : "");
        else if (g->costs.sides[is_after].total < 0)
                buf_printf(note, "%sthe total %s is negative, so there are no shares of it", note->size ? "; " : "",
                           name);
        if (!is_empty[is_after] || is_filtered)
                return ST_OK;
        return note_no_samples(g->q, selections[is_after], g->costs.plan.type);
}

static void note_rises_of_share(struct gate *g)
{
        size_t count = 0;

        for (size_t i = 0; i < g->row_count; i++)
                count += g->rows[i].is_share_only && !g->rows[i].is_failure;
        if (count)
                buf_printf(&g->q->note,
                           "%s%s a greater share, but no greater cost, since the total fell: no regression",
                           g->q->note.size ? "; " : "", COUNTED(count, "function has", "functions have"));
}

static enum status answer_gate(struct gate *g, const struct query_selection *base)
{
        const struct query_selection *selections[2] = { base, &g->q->r.selection };
        enum status st = parse_gate_request(g);

        if (!st)
                st = type_plan_make_for_request(g->q->scan, selections, 2, &g->q->r, &g->costs.plan, g->q->err);
        if (!st)
                st = gate_costs_load(&g->costs, selections);
        if (!st && !g->q->r.is_match_exact)
                st = function_matching_match(&g->costs.frames, &g->costs.marks, g->q->err);
        if (!st)
                type_plan_put_note(&g->costs.plan, &g->q->note);
        if (!st)
                st = note_unjudged_side(g, selections);
        if (!st)
                st = judge_gate(g);
        if (!st)
                note_rises_of_share(g);
        return st ? st : put_gate_answer(g);
}

enum status query_answer_gate(struct query_call *q)
{
        _cleanup_(gate_deinit) struct gate g = { .q = q,
                                                 .costs = { .q = q, .memory.use = MEMORY_QUERIES },
                                                 .memory.use = MEMORY_QUERIES };
        struct query_selection base = { 0 };
        enum status st = ST_OK;

        frame_table_init(&g.costs.frames, q->meter);
        if (!query_call_find_base(q))
                return error_set(q->err, ST_USAGE,
                                 "gate needs the selection before: base_selector, base_from or base_to");
        st = query_selection_parse(&q->params, "base_", &q->r.selection, q->now_unix_ns, &base, q->err);
        if (!st)
                st = answer_gate(&g, &base);
        query_selection_deinit(&base);
        return st;
}
