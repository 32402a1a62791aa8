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
 * In the file: rules; costs by cluster; loading hosts and parts; functions; tests; the answer.
 */
#include <assert.h>
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

#define TOTAL_LEVEL 0.01
#define FALSE_DISCOVERIES 0.02
#define POWER 0.9
#define MIN_SHARE 0.01
#define MIN_HOSTS 8 /* with fewer on a side, hosts are divided into parts */
#define MAX_PARTS 24
#define NO_PARTNER UINT32_MAX
#define DEFAULT_PART_NS (INT64_C(600) * 1000000000)
#define DEFAULT_RULES "total>5%,function>2%"
#define DEFAULT_CLUSTER "host_name"

/* ---- rules ---- */

enum rule_subject { RULE_TOTAL, RULE_ANY_FUNCTION, RULE_FUNCTION };
enum rule_state { RULE_PASSED, RULE_FAILED, RULE_UNKNOWN };

struct gate_rule {
        char *text;    /* owned */
        char *subject; /* owned */
        enum rule_subject kind;
        double threshold; /* of the relative change, as 0.05 */
        enum rule_state state;
        double change;           /* of the total, or the greatest one that the rule is about; NAN: none */
        double smallest_effect;  /* that would have been found; NAN: not known */
        uint64_t function_count; /* of the name that it has */
        bool is_share_only;      /* the share of such a function rose by `change`, but not its cost */
};

/* "total>5%", "function>2%", "json::parse>5%" */
static enum status parse_gate_rule(const char *text, size_t n, struct gate_rule *ret, struct error *err)
{
        const char *mark = memrchr(text, '>', n);
        char *end;

        *ret = (struct gate_rule){ .text = strndup(text, n), .change = NAN, .smallest_effect = NAN };
        if (!ret->text)
                return error_no_memory(err);
        if (mark && mark > text) {
                size_t name = (size_t)(mark - text);

                while (name > 1 && text[name - 1] == ' ')
                        name--;
                ret->threshold = strtod(mark + 1, &end) / 100;
                ret->subject = strndup(text, name);
                if (!ret->subject)
                        return error_no_memory(err);
        }
        if (!ret->subject || end == mark + 1 || strncmp(end, "%", 1) != 0 || end + 1 != text + n ||
            !(ret->threshold >= 0 && ret->threshold <= LIMIT_GATE_THRESHOLD))
                return error_set(err, ST_USAGE, "rule '%.80s' is not like total>5%%, function>2%% or NAME>5%%",
                                 ret->text);
        ret->kind = strcmp(ret->subject, "total") == 0      ? RULE_TOTAL
                    : strcmp(ret->subject, "function") == 0 ? RULE_ANY_FUNCTION
                                                            : RULE_FUNCTION;
        return ST_OK;
}

/* ---- costs by cluster ---- */

/* The cost of a frame as the innermost one in a cluster. */
struct gate_cell {
        uint32_t name; /* set when functions are matched: index of the name in the frame table */
        uint32_t frame, cluster;
        int64_t value;
};

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

struct gate_side {
        struct query_selection selection; /* clipped to its samples; borrows the selector */
        double *sums;                     /* of clusters; owned */
        uint32_t *partners;               /* the cluster of the same host on the other side; NO_PARTNER. Owned */
        size_t count, capacity, partner_capacity;
        int64_t total;
        struct counted_samples samples;
        bool is_average;
};

struct gate {
        struct query_call *q;
        struct frame_table frames;
        struct frame_filter filter;
        struct type_plan plan;
        struct frame_marks marks;
        struct label_list cluster;
        int64_t part_ns;   /* minimum; 0: hosts are not divided */
        bool has_parts;    /* clusters are parts of hosts */
        double seconds[2]; /* of a cluster */
        struct number_map cell_numbers[2];
        struct gate_cell *cells[2]; /* by side; owned */
        size_t cell_count[2], cell_capacity[2];
        struct gate_side sides[2];
        struct label_groups hosts;       /* of both sides */
        struct number_map host_clusters; /* of the side before: (host, part) */
        uint32_t *cluster_of_number;     /* of host_clusters; owned */
        size_t cluster_capacity, pair_count;
        double *observed; /* scratch of observe_pairs(), by cluster of the side before; owned */
        char type[256], unit[32];
        struct gate_rule rules[LIMIT_GATE_RULES];
        size_t rule_count;
        struct gate_row *rows; /* owned */
        size_t row_count, row_capacity, tested_count;
        double tested_share; /* the sum of `share` of those that are tested */
        struct memory_reservation memory;
};

static void clear_gate_costs(struct gate *g)
{
        number_map_deinit(&g->host_clusters);
        g->host_clusters = (struct number_map){ 0 };
        g->pair_count = 0;
        for (unsigned side = 0; side < 2; side++) {
                number_map_deinit(&g->cell_numbers[side]);
                g->cell_numbers[side] = (struct number_map){ 0 };
                g->cell_count[side] = 0;
                g->sides[side].count = 0;
                g->sides[side].total = 0;
                g->sides[side].samples = (struct counted_samples){ 0 };
        }
}

static void gate_deinit(struct gate *g)
{
        clear_gate_costs(g);
        for (unsigned side = 0; side < 2; side++) {
                free(g->cells[side]);
                free(g->sides[side].sums);
                free(g->sides[side].partners);
        }
        free(g->cluster_of_number);
        free(g->observed);
        label_groups_deinit(&g->hosts);
        for (size_t i = 0; i < LIMIT_GATE_RULES; i++) {
                free(g->rules[i].text);
                free(g->rules[i].subject);
        }
        free(g->rows);
        frame_marks_deinit(&g->marks);
        label_list_deinit(&g->cluster);
        type_plan_deinit(&g->plan);
        frame_filter_deinit(&g->filter);
        frame_table_deinit(&g->frames);
        memory_release(&g->memory);
}

static enum status add_gate_cell(struct gate *g, unsigned side, uint32_t frame, uint32_t cluster, int64_t value)
{
        const struct number_key key = { { frame, cluster } };
        uint32_t number;
        bool fresh = false;
        enum status st = number_map_get(&g->cell_numbers[side], &key, &number, &fresh, g->q->err);

        if (!st && fresh) {
                st = array_charge_growth(&g->memory, g->cell_capacity[side], g->cell_count[side],
                                         sizeof *g->cells[side] + NUMBER_MAP_KEY_BYTES, g->q->err);
                if (!st && !array_reserve(&g->cells[side], &g->cell_capacity[side], g->cell_count[side]))
                        st = error_no_memory(g->q->err);
                if (!st)
                        g->cells[side][g->cell_count[side]++] =
                                (struct gate_cell){ .frame = frame, .cluster = cluster };
        }
        if (!st)
                add_saturating(&g->cells[side][number].value, value);
        return st;
}

static enum status reserve_clusters(struct gate *g, struct gate_side *s, size_t more)
{
        if (more > LIMIT_GATE_CLUSTERS - s->count)
                return error_set(g->q->err, ST_TOO_BIG, "more than %u values of %s; choose another label with cluster",
                                 (unsigned)LIMIT_GATE_CLUSTERS, g->cluster.names[0]);
        if (!array_reserve_many(&s->sums, &s->capacity, s->count, more) ||
            !array_reserve_many(&s->partners, &s->partner_capacity, s->count, more))
                return error_no_memory(g->q->err);
        if (more)
                memset(s->sums + s->count, 0, more * sizeof *s->sums);
        for (size_t i = 0; i < more; i++)
                s->partners[s->count + i] = NO_PARTNER;
        return ST_OK;
}

/* Remember the cluster of a host and part of the side before; of the side after, find its partner. */
static enum status pair_gate_cluster(struct gate *g, unsigned side, uint32_t part, const struct label_group *group,
                                     uint32_t cluster)
{
        struct scan_group_label values[LIMIT_GROUP_LABELS] = { 0 };
        struct number_key key = { { 0, part } };
        uint32_t host = 0, number = 0;
        bool fresh = false;
        enum status st;

        for (size_t i = 0; i < g->cluster.count; i++)
                values[i].value = group->values[i];
        st = label_groups_find_or_add(&g->hosts, values, &host, g->q->err);
        key.parts[0] = host;
        if (st || side) {
                if (!st && number_map_find(&g->host_clusters, &key, &number)) {
                        g->sides[0].partners[g->cluster_of_number[number]] = cluster;
                        g->sides[1].partners[cluster] = g->cluster_of_number[number];
                        g->pair_count++;
                }
                return st;
        }
        st = number_map_get(&g->host_clusters, &key, &number, &fresh, g->q->err);
        if (!st && !array_reserve(&g->cluster_of_number, &g->cluster_capacity, number))
                st = error_no_memory(g->q->err);
        if (!st)
                g->cluster_of_number[number] = cluster;
        return st;
}

/* Add the clusters of a loaded part of a side. */
static enum status add_gate_clusters(struct gate *g, unsigned side, uint32_t part, const struct merged_profile *m,
                                     const struct label_groups *groups)
{
        struct gate_side *s = &g->sides[side];
        const uint32_t first = (uint32_t)s->count;
        enum status st = reserve_clusters(g, s, groups->count);

        for (uint32_t i = 0; !st && i < groups->count; i++)
                st = pair_gate_cluster(g, side, part, &groups->items[i], first + i);
        for (size_t i = 0; !st && i < m->count; i++) {
                const struct merged_entry *e = &m->entries[i];
                uint32_t frame;

                st = work_meter_add(g->q->meter, 16, g->q->err);
                s->sums[first + e->group] += (double)e->value;
                if (!st && merged_profile_find_leaf(m, e->stack, &frame))
                        st = add_gate_cell(g, side, frame, first + e->group, e->value);
        }
        if (st)
                return st;
        s->count += groups->count;
        add_saturating(&s->total, m->total);
        sample_count_add(&s->samples, m->samples);
        s->is_average = s->is_average || m->is_average;
        if (*m->type) {
                memcpy(g->type, m->type, sizeof g->type);
                memcpy(g->unit, m->unit, sizeof g->unit);
        }
        return function_matching_mark(&g->frames, m, side, &g->marks, g->q->err);
}

/* ---- loading hosts and parts ---- */

static enum status load_gate_part(struct gate *g, unsigned side, uint32_t part, int64_t from_ns, int64_t to_ns)
{
        struct query_selection selection = g->sides[side].selection;
        _cleanup_merged_profile_ struct merged_profile m = { 0 };
        _cleanup_(label_groups_deinit) struct label_groups groups;
        const struct merged_profile_request request = {
                .plan = &g->plan, .filter = &g->filter, .frames = &g->frames, .groups = &groups
        };
        enum status st;

        selection.from_unix_ns = from_ns;
        selection.to_unix_ns = to_ns;
        label_groups_init(&groups, &g->cluster, g->q->meter);
        st = merged_profile_load(g->q->scan, &selection, &request, &m, g->q->err);
        return st ? st : add_gate_clusters(g, side, part, &m, &groups);
}

/* Load a side as equal parts of its time. */
static enum status load_gate_side(struct gate *g, unsigned side, int64_t parts)
{
        struct gate_side *s = &g->sides[side];
        const int64_t from = s->selection.from_unix_ns, length = s->selection.to_unix_ns - from;
        enum status st = ST_OK;

        for (int64_t i = 0; !st && i < parts; i++)
                st = load_gate_part(g, side, (uint32_t)i, from + length / parts * i,
                                    i + 1 == parts ? from + length : from + length / parts * (i + 1));
        g->seconds[side] = (double)(length / parts) / 1e9;
        return st;
}

static int64_t count_gate_parts(const struct gate *g, unsigned side)
{
        const struct query_selection *s = &g->sides[side].selection;
        int64_t parts = (s->to_unix_ns - s->from_unix_ns) / g->part_ns;

        return parts < 1 ? 1 : parts > MAX_PARTS ? MAX_PARTS : parts;
}

/*
 * Whether to divide hosts into parts. Parts of one host have in common what is special about it: that cancels out if
 * the hosts are the same on both sides; if they are not, only hosts are independent of each other. With one host on a
 * side there is nothing but its parts.
 */
static bool should_divide_hosts(const struct gate *g)
{
        const size_t before = g->sides[0].count, after = g->sides[1].count;

        return g->part_ns && (before < MIN_HOSTS || after < MIN_HOSTS) &&
               (count_gate_parts(g, 0) > 1 || count_gate_parts(g, 1) > 1) &&
               (before < 2 || after < 2 || (g->pair_count == before && g->pair_count == after));
}

/* The hosts of both sides; if they are few, parts of them. */
static enum status load_gate_costs(struct gate *g)
{
        enum status st = ST_OK;

        for (unsigned side = 0; !st && side < 2; side++)
                st = load_gate_side(g, side, 1);
        if (st || !should_divide_hosts(g))
                return st;
        g->has_parts = true;
        clear_gate_costs(g);
        for (unsigned side = 0; !st && side < 2; side++)
                st = load_gate_side(g, side, count_gate_parts(g, side));
        return st;
}

/* Samples may cover a part of the range only, as after a deployment: the rest is not a cost of 0. */
static enum status clip_gate_side(struct gate *g, struct gate_side *s)
{
        const struct scan_filter filter = query_selection_make_filter(&s->selection, NULL);
        struct scan_span span;
        enum status st = store_scan_find_span(g->q->scan, &filter, &span, g->q->err);

        if (st || span.is_empty)
                return st;
        if (span.first_unix_ns > s->selection.from_unix_ns)
                s->selection.from_unix_ns = span.first_unix_ns;
        if (span.end_unix_ns < s->selection.to_unix_ns && span.end_unix_ns > s->selection.from_unix_ns)
                s->selection.to_unix_ns = span.end_unix_ns + 1;
        return ST_OK;
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
        return g->sides[0].count >= 2 && g->sides[1].count >= 2;
}

static double divide_by_time(const struct gate *g, unsigned side, double value)
{
        bool is_rate = g->part_ns && !g->sides[side].is_average && g->seconds[side] > 0;

        return is_rate ? value / g->seconds[side] : value;
}

/* What is observed of a cost in a cluster. */
static double observe_cost(const struct gate *g, unsigned side, uint32_t cluster, int64_t value)
{
        const struct gate_side *s = &g->sides[side];

        if (!g->q->r.by_value)
                return s->sums[cluster] > 0 ? (double)value / s->sums[cluster] : 0;
        return divide_by_time(g, side, (double)value);
}

/* Of a side; of the side before it is kept for its partner until forget_observed_costs(). */
static void add_gate_observation(struct gate *g, unsigned side, uint32_t cluster, double x,
                                 struct gate_observations *ret)
{
        const uint32_t partner = g->sides[side].partners[cluster];

        observations_add(&ret->sides[side], x);
        if (partner == NO_PARTNER)
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
        while (*at < g->cell_count[side] && g->cells[side][*at].name == name) {
                const uint32_t cluster = g->cells[side][*at].cluster;
                int64_t value = 0;

                row->frame = frame_table_get_replacement(&g->frames, g->cells[side][*at].frame);
                for (; *at < g->cell_count[side] && g->cells[side][*at].name == name &&
                       g->cells[side][*at].cluster == cluster;
                     ++*at)
                        add_saturating(&value, g->cells[side][*at].value);
                add_saturating(&row->flat[side], value);
                add_gate_observation(g, side, cluster, observe_cost(g, side, cluster, value), ret);
        }
        ret->sides[side].count = g->sides[side].count;
        ret->pairs.count = g->pair_count;
}

static void forget_observed_costs(struct gate *g, size_t begin, size_t end)
{
        for (size_t i = begin; i < end; i++)
                g->observed[g->cells[0][i].cluster] = 0;
}

static bool is_row_tested(const struct gate *g, const struct gate_row *row)
{
        for (unsigned side = 0; side < 2; side++)
                if (g->sides[side].total > 0 && (double)row->flat[side] >= MIN_SHARE * (double)g->sides[side].total)
                        return true;
        return false;
}

static void test_gate_row(struct gate *g, const struct gate_observations *o, struct gate_row *row)
{
        for (unsigned side = 0; side < 2; side++) {
                const struct observations *of = &o->sides[side];

                row->mean[side] = of->count ? of->sum / (double)of->count : 0;
                if (g->sides[side].total > 0)
                        row->share += (double)row->flat[side] / (double)g->sides[side].total / 2;
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
                for (size_t i = 0; i < g->cell_count[side]; i++) {
                        struct gate_cell *c = &g->cells[side][i];

                        c->name = g->frames.items[frame_table_get_replacement(&g->frames, c->frame)].name;
                }
                st = work_meter_sort(g->q->meter, g->cells[side], g->cell_count[side], sizeof *g->cells[side],
                                     compare_cells, NULL, g->q->err);
        }
        return st;
}

static enum status make_gate_rows(struct gate *g)
{
        size_t at[2] = { 0 };
        enum status st = sort_gate_cells(g);

        if (!st) {
                g->observed = calloc(g->sides[0].count + 1, sizeof *g->observed);
                if (!g->observed)
                        st = error_no_memory(g->q->err);
        }
        while (!st && (at[0] < g->cell_count[0] || at[1] < g->cell_count[1])) {
                const size_t first = at[0];
                struct gate_row row = { 0 };
                struct gate_observations o = { 0 };
                uint32_t name = UINT32_MAX;

                for (unsigned side = 0; side < 2; side++)
                        if (at[side] < g->cell_count[side] && g->cells[side][at[side]].name < name)
                                name = g->cells[side][at[side]].name;
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
        struct gate_observations o = { .pairs.count = g->pair_count };
        struct welch_result r;
        double mean[2];

        for (unsigned side = 0; side < 2; side++) {
                const struct gate_side *s = &g->sides[side];

                for (size_t i = 0; i < s->count; i++)
                        observations_add(&o.sides[side], divide_by_time(g, side, s->sums[i]));
                mean[side] = s->count ? o.sides[side].sum / (double)s->count : 0;
        }
        for (size_t i = 0; i < g->sides[0].count; i++)
                if (g->sides[0].partners[i] != NO_PARTNER) {
                        double before = divide_by_time(g, 0, g->sides[0].sums[i]),
                               after = divide_by_time(g, 1, g->sides[1].sums[g->sides[0].partners[i]]);

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
        return rule->kind == RULE_ANY_FUNCTION ? is_row_tested(g, row)
                                               : query_frame_has_name(&g->frames.items[row->frame], rule->subject);
}

/* The mean cost of a cluster, per second if their lengths are known. */
static double compute_mean_cost(const struct gate *g, unsigned side, int64_t cost)
{
        const size_t count = g->sides[side].count;

        return count ? divide_by_time(g, side, (double)cost) / (double)count : 0;
}

/* Costs per second of a few samples depend on when the first and the last one were taken. */
static bool has_reliable_rates(const struct gate *g)
{
        const double least = (double)DEFAULT_PART_NS / 1e9;

        return !g->part_ns || (g->seconds[0] >= least && g->seconds[1] >= least);
}

/*
 * Whether only the share of a function rose: the total fell, and the function itself does not cost more. So it is when
 * another function became faster.
 */
static bool is_rise_of_share_only(const struct gate *g, const struct gate_row *row, double threshold)
{
        return !g->q->r.by_value && has_reliable_rates(g) &&
               compute_mean_cost(g, 1, g->sides[1].total) < compute_mean_cost(g, 0, g->sides[0].total) &&
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
                if (g->sides[0].total <= 0 || g->sides[1].total <= 0)
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
        const struct query_frame *f = &g->frames.items[row->frame];

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
        const struct query_selection *of[2] = { &g->sides[0].selection, &g->sides[1].selection };
        uint64_t limit = g->q->r.limit ? g->q->r.limit : TEXT_LIMIT;
        struct json_out j;
        enum status st = work_meter_sort(g->q->meter, g->rows, g->row_count, sizeof *g->rows, compare_gate_rows, NULL,
                                         g->q->err);

        if (st)
                return st;
        json_out_init(&j, g->q->ret);
        json_out_object(&j, NULL);
        json_out_str(&j, "type", g->type);
        json_out_str(&j, "unit", g->unit);
        json_out_int(&j, "base_from_ms", of[0]->from_unix_ns / 1000000);
        json_out_int(&j, "base_to_ms", of[0]->to_unix_ns / 1000000);
        json_out_int(&j, "from_ms", of[1]->from_unix_ns / 1000000);
        json_out_int(&j, "to_ms", of[1]->to_unix_ns / 1000000);
        json_out_int(&j, "total", g->sides[0].total);
        put_counted_samples(&j, "samples", "samples_are", g->sides[0].samples);
        json_out_int(&j, "total_after", g->sides[1].total);
        put_counted_samples(&j, "samples_after", "samples_after_are", g->sides[1].samples);
        type_plan_put_json(&g->plan, &j);
        json_out_str(&j, "compare", g->q->r.by_value ? "values" : "shares");
        json_out_str(&j, "cluster", g->cluster.names[0]);
        json_out_str(&j, "clusters_are", g->has_parts ? "parts" : "values");
        json_out_uint(&j, "clusters", g->sides[0].count);
        json_out_uint(&j, "clusters_after", g->sides[1].count);
        json_out_uint(&j, "pairs", g->pair_count < WELCH_MIN_PAIRS ? 0 : g->pair_count);
        json_out_uint(&j, "tested", g->tested_count);
        put_gate_rules(g, &j);
        json_out_array(&j, "rows");
        for (size_t i = 0; i < g->row_count && i < limit; i++)
                put_gate_row(g, &g->rows[i], &j);
        json_out_array_end(&j);
        json_out_object_end(&j);
        return ST_OK;
}

static enum status parse_gate_rules(struct gate *g)
{
        const char *at = query_param_get(&g->q->params, "", "fail_if");
        enum status st = ST_OK;

        at = at ? at : DEFAULT_RULES;
        while (!st && *at) {
                const char *end = strstr(at, "%,"); /* names may contain commas */
                size_t n = end ? (size_t)(end - at) + 1 : strlen(at);

                if (g->rule_count == LIMIT_GATE_RULES)
                        return error_set(g->q->err, ST_USAGE, "more than %u rules", (unsigned)LIMIT_GATE_RULES);
                st = parse_gate_rule(at, n, &g->rules[g->rule_count++], g->q->err);
                at += n + (end != NULL);
        }
        return st;
}

static enum status parse_gate_request(struct gate *g)
{
        const char *cluster = query_param_get(&g->q->params, "", "cluster"),
                   *part = query_param_get(&g->q->params, "", "part");
        enum status st = parse_gate_rules(g);

        g->part_ns = DEFAULT_PART_NS;
        if (part && strcmp(part, "none") == 0)
                g->part_ns = 0;
        else if (!st && part)
                st = duration_text_parse(part, &g->part_ns, g->q->err);
        if (!st && g->part_ns && g->part_ns < DEFAULT_PART_NS)
                st = error_set(g->q->err, ST_USAGE,
                               "part '%.40s' is under 10m: intervals that follow each other are not independent", part);
        if (!st)
                st = label_list_parse(cluster ? cluster : DEFAULT_CLUSTER, &g->cluster, g->q->err);
        label_groups_init(&g->hosts, &g->cluster, g->q->meter);
        return st ? st : frame_filter_parse(&g->q->params, &g->filter, g->q->err);
}

/* Why there is nothing to judge: the first side without samples or with a negative total. */
static enum status note_unjudged_side(struct gate *g, const struct query_selection *const selections[2])
{
        const bool is_empty[2] = { !sample_count_round(g->sides[0].samples), !sample_count_round(g->sides[1].samples) };
        bool is_after = !is_empty[0] && g->sides[0].total >= 0, is_filtered = frame_filter_is_set(&g->filter);
        const char *name = is_after ? "after" : "before";
        struct buf *note = &g->q->note;

        if (is_empty[is_after])
                buf_printf(note, "%sthe side %s has no samples%s", note->size ? "; " : "", name,
                           is_filtered ? " that pass the filters" : "");
        else if (g->sides[is_after].total < 0)
                buf_printf(note, "%sthe total %s is negative, so there are no shares of it", note->size ? "; " : "",
                           name);
        if (!is_empty[is_after] || is_filtered)
                return ST_OK;
        return note_no_samples(g->q, selections[is_after], g->plan.type);
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
                st = type_plan_make_for_request(g->q->scan, selections, 2, &g->q->r, &g->plan, g->q->err);
        for (unsigned side = 0; !st && side < 2; side++) {
                g->sides[side].selection = *selections[side];
                st = clip_gate_side(g, &g->sides[side]);
        }
        if (!st)
                st = load_gate_costs(g);
        if (!st && !g->q->r.is_match_exact)
                st = function_matching_match(&g->frames, &g->marks, g->q->err);
        if (!st)
                type_plan_put_note(&g->plan, &g->q->note);
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
        _cleanup_(gate_deinit) struct gate g = { .q = q, .memory.use = MEMORY_QUERIES };
        struct query_selection base = { 0 };
        enum status st = ST_OK;

        frame_table_init(&g.frames, q->meter);
        if (!query_call_find_base(q))
                return error_set(q->err, ST_USAGE,
                                 "gate needs the selection before: base_selector, base_from or base_to");
        st = query_selection_parse(&q->params, "base_", &q->r.selection, q->now_unix_ns, &base, q->err);
        if (!st)
                st = answer_gate(&g, &base);
        query_selection_deinit(&base);
        return st;
}
