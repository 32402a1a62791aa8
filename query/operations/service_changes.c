/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Model: a function has a share of its service in each hour, of self and of total cost. Change points of the share of
 * self cost (change_points.h) are candidates; hours in which a build or version came are tested first.
 *
 * A candidate is no regression if it went away, repeats daily, or is only the shadow of another one:
 *  - Dilution. Shares sum to 1, so a function that grows makes all others fall by one factor. The factor is the
 *    weighted median of the ratios of all functions; what is left of a change without it is its difference.
 *  - Movement. If the total cost of a function did not change with its self cost, the cost moved between it and its
 *    callees, as by inlining. If another function changed at that hour by the opposite amount, or all changes of that
 *    hour together are nothing, the cost moved between them.
 *
 * Rejected: cost per second instead of shares, which changes with traffic by more than any regression.
 *
 * In the file: hours of the service; arrivals of builds; functions; states; the entry point.
 */
#include "query/operations/service_changes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "common/memory/array.h"

#define LEVEL 0.01             /* of false changes in a service */
#define MIN_TESTED_SHARE 0.005 /* of a function in CHANGE_MIN_HOURS hours */
#define MIN_DIFFERENCE 0.001   /* of shares */
#define MIN_HOUR_SAMPLES 20    /* fewer say nothing about an hour */
#define MIN_ARRIVAL_PART 0.01  /* of the cost of a service that a build has, to be a cause */
#define MAX_ARRIVALS 64        /* those with the greatest cost */
#define MAX_CHANGES 64         /* of a function */
#define MAX_TRIED_BUILDS 16    /* of a function, to find the usual one */
#define MOVED_PART 0.25        /* of a change of self cost that may be left in the total cost if it moved */
#define OPPOSITE_PART 0.15     /* of a change that may be left beside the opposite one */
#define SAME_MOMENT_HOURS 2
#define WINDOW_HOURS 24  /* around a change, to compare all functions */
#define PATTERN_UNITS 64 /* of work for each hour of a function, to find its daily pattern */

/* Cost of a build or a version in an hour; or a build or version that came in that hour. */
struct arrival {
        uint32_t text, hour;
        bool is_version;
        double cost;
};

struct tested_function {
        uint32_t function;
        size_t first, end;    /* of the costs */
        double *self, *total; /* shares by hour; within `shares` */
};

struct service_series {
        const struct service_changes_request *r;
        double *cost, *samples;            /* by hour; owned */
        double *shares;                    /* of tested functions; owned */
        struct tested_function *functions; /* owned */
        size_t function_count;
        struct arrival arrivals[MAX_ARRIVALS]; /* by hour */
        size_t arrival_count;
        size_t cause_hours[MAX_ARRIVALS];
        double *scratch; /* two numbers for each function; owned */
        struct memory_reservation memory;
};

static void service_series_deinit(struct service_series *s)
{
        free(s->cost);
        free(s->samples);
        free(s->shares);
        free(s->functions);
        free(s->scratch);
        memory_release(&s->memory);
}

void service_changes_deinit(struct service_changes *c)
{
        free(c->items);
        memory_release(&c->memory);
        *c = (struct service_changes){ 0 };
}

/* ---- hours of the service ---- */

static enum status sum_service_hours(struct service_series *s, struct error *err)
{
        const struct service_changes_request *r = s->r;
        enum status st = memory_reserve(&s->memory, 2 * r->hours * sizeof *s->cost, err);

        if (st)
                return st;
        s->cost = calloc(r->hours + 1, sizeof *s->cost);
        s->samples = calloc(r->hours + 1, sizeof *s->samples);
        if (!s->cost || !s->samples)
                return error_no_memory(err);
        for (size_t i = 0; i < r->count; i++) {
                s->cost[r->costs[i].hour] += (double)r->costs[i].self;
                s->samples[r->costs[i].hour] += (double)r->costs[i].self_samples;
        }
        return ST_OK;
}

static bool is_hour_known(const struct service_series *s, size_t hour)
{
        return s->samples[hour] >= MIN_HOUR_SAMPLES && s->cost[hour] > 0;
}

/* ---- arrivals of builds ---- */

static int compare_arrival_hours(const void *x, const void *y, void *context)
{
        const struct arrival *a = x, *b = y;

        (void)context;
        if (a->is_version != b->is_version)
                return a->is_version ? 1 : -1;
        if (a->text != b->text)
                return a->text < b->text ? -1 : 1;
        return a->hour < b->hour ? -1 : a->hour > b->hour;
}

static int compare_arrivals(const void *x, const void *y)
{
        const struct arrival *a = x, *b = y;

        if (a->hour != b->hour)
                return a->hour < b->hour ? -1 : 1;
        return a->is_version != b->is_version ? (a->is_version ? 1 : -1) : a->text < b->text ? -1 : a->text > b->text;
}

/* Keep those with the greatest cost. */
static void keep_arrival(struct service_series *s, const struct arrival *new)
{
        size_t least = 0;

        if (s->arrival_count < MAX_ARRIVALS) {
                s->arrivals[s->arrival_count++] = *new;
                return;
        }
        for (size_t i = 1; i < s->arrival_count; i++)
                if (s->arrivals[i].cost < s->arrivals[least].cost)
                        least = i;
        if (s->arrivals[least].cost < new->cost)
                s->arrivals[least] = *new;
}

/*
 * One build or version, in hours[begin, end): it came when it first had half of its usual share, so that a canary
 * before does not count.
 */
static void add_build_arrival(struct service_series *s, const struct arrival *hours, size_t begin, size_t end,
                              size_t first_known)
{
        struct arrival new = { .text = hours[begin].text, .is_version = hours[begin].is_version };
        double of_service = 0, shares = 0;

        for (size_t i = begin; i < end; i++) {
                new.cost += hours[i].cost;
                of_service += s->cost[hours[i].hour];
                shares += hours[i].cost / s->cost[hours[i].hour];
        }
        if (hours[begin].hour <= first_known || new.cost < MIN_ARRIVAL_PART * of_service)
                return;
        for (size_t i = end; i-- > begin;)
                if (hours[i].cost / s->cost[hours[i].hour] >= shares / (double)(end - begin) / 2)
                        new.hour = hours[i].hour;
        keep_arrival(s, &new);
}

static enum status find_arrivals(struct service_series *s, struct error *err)
{
        const struct service_changes_request *r = s->r;
        struct arrival *hours;
        size_t count = 0, kept = 0, first_known = 0;
        enum status st = memory_reserve(&s->memory, 2 * r->count * sizeof *hours, err);

        if (st)
                return st;
        hours = malloc((2 * r->count + 1) * sizeof *hours);
        if (!hours)
                return error_no_memory(err);
        while (first_known < r->hours && !(s->samples[first_known] > 0))
                first_known++;
        for (size_t i = 0; i < r->count; i++)
                for (unsigned version = 0; version < 2; version++) {
                        const struct hour_cost *c = &r->costs[i];
                        const uint32_t text = version ? c->version : c->build;

                        if (text != NO_CHANGE_TEXT && c->self > 0)
                                hours[count++] = (struct arrival){ text, c->hour, version, (double)c->self };
                }
        st = work_meter_sort(r->meter, hours, count, sizeof *hours, compare_arrival_hours, NULL, err);
        for (size_t i = 0; i < count; i++) {
                if (kept && compare_arrival_hours(&hours[kept - 1], &hours[i], NULL) == 0)
                        hours[kept - 1].cost += hours[i].cost;
                else
                        hours[kept++] = hours[i];
        }
        for (size_t begin = 0, end; !st && begin < kept; begin = end) {
                for (end = begin + 1; end < kept && hours[end].text == hours[begin].text &&
                                      hours[end].is_version == hours[begin].is_version;)
                        end++;
                add_build_arrival(s, hours, begin, end, first_known);
        }
        qsort(s->arrivals, s->arrival_count, sizeof *s->arrivals, compare_arrivals);
        for (size_t i = 0; i < s->arrival_count; i++)
                s->cause_hours[i] = s->arrivals[i].hour;
        free(hours);
        return st;
}

/* ---- functions ---- */

/* Whether a function has MIN_TESTED_SHARE in enough hours. */
static bool is_worth_testing(const struct service_series *s, size_t begin, size_t end)
{
        size_t hours = 0;

        for (size_t i = begin, next; i < end; i = next) {
                const uint32_t hour = s->r->costs[i].hour;
                double self = 0;

                for (next = i; next < end && s->r->costs[next].hour == hour; next++)
                        self += (double)s->r->costs[next].self;
                hours += is_hour_known(s, hour) && self >= MIN_TESTED_SHARE * s->cost[hour];
        }
        return hours >= CHANGE_MIN_HOURS;
}

static enum status list_tested_functions(struct service_series *s, struct error *err)
{
        const struct service_changes_request *r = s->r;
        size_t capacity = 0;
        enum status st = ST_OK;

        for (size_t begin = 0, end; !st && begin < r->count; begin = end) {
                for (end = begin; end < r->count && r->costs[end].function == r->costs[begin].function;)
                        end++;
                st = work_meter_add(r->meter, end - begin, err);
                if (st || r->costs[begin].function == NO_CHANGE_TEXT || !is_worth_testing(s, begin, end))
                        continue;
                if (!array_reserve(&s->functions, &capacity, s->function_count))
                        return error_no_memory(err);
                s->functions[s->function_count++] =
                        (struct tested_function){ r->costs[begin].function, begin, end, NULL, NULL };
        }
        return st;
}

static enum status fill_function_shares(struct service_series *s, struct error *err)
{
        const size_t hours = s->r->hours;
        size_t bytes;
        enum status st;

        if (__builtin_mul_overflow(s->function_count, 2 * hours * sizeof *s->shares, &bytes))
                return error_set(err, ST_TOO_BIG, "the shares of the functions do not fit into memory");
        st = memory_reserve(&s->memory, bytes, err);
        if (!st)
                st = work_meter_add(s->r->meter, bytes / sizeof *s->shares, err);
        if (st)
                return st;
        s->shares = calloc(s->function_count * 2 * hours + 1, sizeof *s->shares);
        s->scratch = calloc(s->function_count * 2 + 1, sizeof *s->scratch);
        if (!s->shares || !s->scratch)
                return error_no_memory(err);
        for (size_t i = 0; !st && i < s->function_count; i++) {
                struct tested_function *f = &s->functions[i];

                f->self = s->shares + i * 2 * hours;
                f->total = f->self + hours;
                for (size_t k = f->first; k < f->end; k++) {
                        f->self[s->r->costs[k].hour] += (double)s->r->costs[k].self;
                        f->total[s->r->costs[k].hour] += (double)s->r->costs[k].total;
                }
                for (size_t hour = 0; hour < hours; hour++) {
                        f->self[hour] = is_hour_known(s, hour) ? f->self[hour] / s->cost[hour] : NAN;
                        f->total[hour] = is_hour_known(s, hour) ? f->total[hour] / s->cost[hour] : NAN;
                }
                remove_daily_pattern(f->self, hours);
                remove_daily_pattern(f->total, hours);
                st = work_meter_add(s->r->meter, PATTERN_UNITS * hours, err);
        }
        return st;
}

/* The build with the greatest cost of a function in [begin, end). */
static uint32_t find_usual_build(const struct service_series *s, const struct tested_function *f, size_t begin,
                                 size_t end)
{
        uint32_t best = NO_CHANGE_TEXT;
        double best_cost = 0;
        unsigned tried = 0;

        /* A function has one or two builds: count each anew. */
        for (size_t i = f->first; i < f->end && tried < MAX_TRIED_BUILDS; i++) {
                const uint32_t build = s->r->costs[i].build;
                double cost = 0;

                if (s->r->costs[i].hour < begin || s->r->costs[i].hour >= end || build == best ||
                    build == NO_CHANGE_TEXT)
                        continue;
                tried++;
                for (size_t k = i; k < f->end; k++)
                        if (s->r->costs[k].build == build && s->r->costs[k].hour >= begin && s->r->costs[k].hour < end)
                                cost += (double)s->r->costs[k].self;
                if (cost > best_cost) {
                        best = build;
                        best_cost = cost;
                }
        }
        return best;
}

/* ---- states ---- */

static int compare_ratios(const void *x, const void *y)
{
        const double *a = x, *b = y;

        return a[0] < b[0] ? -1 : a[0] > b[0];
}

/* The factor by which shares changed that did not change by themselves: the weighted median of all ratios. */
static double find_common_factor(const struct service_series *s, size_t from, size_t at, size_t to)
{
        double sum = 0, half = 0;
        size_t count = 0;

        for (size_t i = 0; i < s->function_count; i++) {
                const struct hour_series self = { s->functions[i].self, s->r->hours };
                const double before = compute_hour_mean(&self, from, at), after = compute_hour_mean(&self, at, to);

                if (!(before > 0) || isnan(after))
                        continue;
                s->scratch[2 * count] = after / before;
                s->scratch[2 * count++ + 1] = sqrt(before); /* a function must not outweigh all others */
                sum += sqrt(before);
        }
        qsort(s->scratch, count, 2 * sizeof *s->scratch, compare_ratios);
        for (size_t i = 0; i < count; i++) {
                half += s->scratch[2 * i + 1];
                if (half >= sum / 2)
                        return s->scratch[2 * i] > 0 ? s->scratch[2 * i] : 1;
        }
        return 1;
}

static void find_change_cause(const struct service_series *s, const struct tested_function *f, size_t from, size_t to,
                              struct service_change *c)
{
        const struct arrival *best = NULL;

        c->builds[0] = find_usual_build(s, f, from, c->hour);
        c->builds[1] = find_usual_build(s, f, c->hour, to);
        for (size_t i = 0; i < s->arrival_count; i++) {
                const struct arrival *a = &s->arrivals[i];
                bool is_own = !a->is_version && a->text == c->builds[1];

                if ((a->hour > c->hour ? a->hour - c->hour : c->hour - a->hour) > CHANGE_CAUSE_HOURS)
                        continue;
                if (is_own) {
                        c->cause = CAUSE_BUILD;
                } else if (a->is_version) {
                        c->versions[1] = a->text;
                        if (c->cause != CAUSE_BUILD)
                                c->cause = CAUSE_VERSION;
                } else if (!best || best->cost < a->cost) {
                        best = a;
                }
        }
        if (c->cause == CAUSE_BUILD)
                return;
        c->builds[0] = c->builds[1] = NO_CHANGE_TEXT;
        if (best) {
                c->builds[1] = best->text;
                if (c->cause == CAUSE_NONE)
                        c->cause = CAUSE_OTHER_BUILD;
        }
}

/* The version with the greatest cost before a change. */
static void find_version_before(const struct service_series *s, const struct tested_function *f, size_t from,
                                struct service_change *c)
{
        int64_t best = 0;

        for (size_t i = f->first; i < f->end; i++)
                if (s->r->costs[i].hour >= from && s->r->costs[i].hour < c->hour &&
                    s->r->costs[i].version != c->versions[1] && s->r->costs[i].self > best) {
                        best = s->r->costs[i].self;
                        c->versions[0] = s->r->costs[i].version;
                }
}

static void judge_change(const struct service_series *s, const struct tested_function *f, const struct change_point *p,
                         size_t previous, size_t next, struct service_change *ret)
{
        const struct hour_series total = { f->total, s->r->hours };
        const size_t from = p->hour - previous > WINDOW_HOURS ? p->hour - WINDOW_HOURS : previous,
                     to = next - p->hour > WINDOW_HOURS ? p->hour + WINDOW_HOURS : next;
        const double factor = find_common_factor(s, from, p->hour, to);
        double cost = 0;

        *ret = (struct service_change){ .service = s->r->costs->service,
                                        .function = f->function,
                                        .hour = (uint32_t)p->hour,
                                        .returned_at = (uint32_t)p->returned_at,
                                        .before = p->before,
                                        .after = p->after,
                                        .total_before = compute_hour_mean(&total, previous, p->hour),
                                        .total_after = compute_hour_mean(&total, p->hour, next),
                                        .difference = p->after / factor - p->before,
                                        .p = p->p,
                                        .moved_to = NO_CHANGE_TEXT,
                                        .builds = { NO_CHANGE_TEXT, NO_CHANGE_TEXT },
                                        .versions = { NO_CHANGE_TEXT, NO_CHANGE_TEXT } };
        for (size_t hour = p->hour; hour < to; hour++)
                cost += s->cost[hour];
        ret->cost = ret->difference * factor * cost / (double)(to - p->hour);
        ret->state = ret->difference > 0 ? CHANGE_REGRESSION : CHANGE_IMPROVEMENT;
        if (p->returned_at)
                ret->state = CHANGE_WENT_AWAY;
        else if (p->is_daily)
                ret->state = CHANGE_DAILY;
        else if ((ret->difference > 0) != (p->after > p->before) ||
                 fabs(ret->difference) < s->r->min_change * p->before || fabs(ret->difference) < MIN_DIFFERENCE)
                ret->state = CHANGE_DILUTED;
        else if ((ret->total_after / factor - ret->total_before) * (ret->difference > 0 ? 1 : -1) <
                 MOVED_PART * fabs(ret->difference))
                ret->state = CHANGE_MOVED;
        find_change_cause(s, f, from, to, ret);
        if (ret->versions[1] != NO_CHANGE_TEXT)
                find_version_before(s, f, from, ret);
}

static bool is_open_change(const struct service_change *c)
{
        return c->state == CHANGE_REGRESSION || c->state == CHANGE_IMPROVEMENT;
}

static bool is_same_moment(const struct service_change *a, const struct service_change *b)
{
        return (a->hour > b->hour ? a->hour - b->hour : b->hour - a->hour) <= SAME_MOMENT_HOURS;
}

/* The change at the same time that is the most opposite one, among those without a partner. @return count: none. */
static size_t find_opposite_change(const struct service_change *c, size_t count, size_t of)
{
        size_t best = count;
        double least = INFINITY;

        for (size_t k = 0; k < count; k++) {
                const double left = fabs(c[of].difference + c[k].difference);

                if (k != of && (is_open_change(&c[k]) || c[k].state == CHANGE_MOVED) &&
                    c[k].moved_to == NO_CHANGE_TEXT && is_same_moment(&c[of], &c[k]) && left < least &&
                    left <= OPPOSITE_PART * fmax(fabs(c[of].difference), fabs(c[k].difference))) {
                        least = left;
                        best = k;
                }
        }
        return best;
}

/* Pairs of opposite changes at one time, those first that are so the most: each change has one partner. */
static enum status find_moved_pairs(struct service_change *c, size_t count, struct work_meter *meter, struct error *err)
{
        bool has_pair = true;
        enum status st = ST_OK;

        while (!st && has_pair) {
                has_pair = false;
                for (size_t i = 0; !st && i < count; i++) {
                        size_t k;

                        st = work_meter_add(meter, count, err);
                        if (!is_open_change(&c[i]) || (k = find_opposite_change(c, count, i)) == count ||
                            find_opposite_change(c, count, k) != i)
                                continue;
                        has_pair = true;
                        c[i].state = c[k].state = CHANGE_MOVED;
                        c[i].moved_to = c[k].function;
                        c[k].moved_to = c[i].function;
                }
        }
        return st;
}

/* Several changes at one time that are nothing together, as when a function is split. */
static enum status find_moved_groups(struct service_change *c, size_t count, struct work_meter *meter,
                                     struct error *err)
{
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < count; i++) {
                double sum[2] = { 0 };

                st = work_meter_add(meter, is_open_change(&c[i]) ? count : 1, err);
                for (size_t k = 0; is_open_change(&c[i]) && k < count; k++)
                        if (is_open_change(&c[k]) && is_same_moment(&c[i], &c[k]))
                                sum[c[k].difference > 0] += fabs(c[k].difference);
                if (!(sum[0] > 0 && sum[1] > 0 && fabs(sum[1] - sum[0]) <= OPPOSITE_PART * fmax(sum[0], sum[1])))
                        continue;
                for (size_t k = 0; k < count; k++)
                        if (k != i && is_open_change(&c[k]) && is_same_moment(&c[i], &c[k]))
                                c[k].state = CHANGE_MOVED;
                c[i].state = CHANGE_MOVED;
        }
        return st;
}

/* ---- the entry point ---- */

static enum status add_function_changes(struct service_changes *c, const struct service_series *s,
                                        const struct tested_function *f, struct error *err)
{
        const struct hour_series self = { f->self, s->r->hours };
        struct change_point found[MAX_CHANGES];
        size_t count;
        enum status st = find_change_points(&self, s->cause_hours, s->arrival_count, LEVEL / (double)s->function_count,
                                            found, MAX_CHANGES, &count, err);

        if (!st)
                st = work_meter_add(s->r->meter, 64 * s->r->hours, err);
        for (size_t i = 0; !st && i < count; i++) {
                if (fabs(found[i].after - found[i].before) < fmax(MIN_DIFFERENCE, s->r->min_change * found[i].before))
                        continue;
                st = array_charge_growth(&c->memory, c->capacity, c->count, sizeof *c->items, err);
                if (!st && !array_reserve(&c->items, &c->capacity, c->count))
                        st = error_no_memory(err);
                if (!st)
                        st = work_meter_add(s->r->meter, s->function_count * 2 * WINDOW_HOURS, err);
                if (st)
                        return st;
                judge_change(s, f, &found[i], i ? found[i - 1].hour : 0,
                             i + 1 < count ? found[i + 1].hour : s->r->hours, &c->items[c->count]);
                c->items[c->count++].p *= (double)s->function_count;
        }
        return st;
}

enum status service_changes_add(struct service_changes *c, const struct service_changes_request *request,
                                struct error *err)
{
        _cleanup_(service_series_deinit) struct service_series s = { .r = request, .memory.use = MEMORY_QUERIES };
        const size_t first = c->count;
        enum status st = sum_service_hours(&s, err);

        if (!st)
                st = find_arrivals(&s, err);
        if (!st)
                st = list_tested_functions(&s, err);
        if (!st)
                st = fill_function_shares(&s, err);
        for (size_t i = 0; !st && i < s.function_count; i++)
                st = add_function_changes(c, &s, &s.functions[i], err);
        if (st)
                return st;
        st = find_moved_pairs(c->items + first, c->count - first, request->meter, err);
        if (!st)
                st = find_moved_groups(c->items + first, c->count - first, request->meter, err);
        c->services++;
        c->tested += s.function_count;
        return st;
}
