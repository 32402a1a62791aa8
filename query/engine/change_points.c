/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Search for change points, see change_points.h.
 *
 * Known hours are moved together first, so that windows are of hours with data. Prefix sums give the mean, the variance
 * and the product of neighbours of any window in constant time.
 *
 * In the file: windows; the test of a boundary; the search; what became of a change; daily patterns; the entry
 * point.
 */
#include "query/engine/change_points.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "query/engine/welch_test.h"

#define DAY_HOURS 24
#define LIMIT_DAYS_BEFORE 7
#define MIN_EQUAL_HOURS 3   /* of days before, to judge a daily pattern */
#define MAX_CORRELATION 0.9 /* of neighbours */
#define RETURNED_PART 0.5   /* of a change that may be left when it went away */
#define FREEDOM_MIN 1.0
#define TRIMMED_PART 10          /* 1 of so many differences is left out */
#define MIN_CORRELATION_HOURS 24 /* to estimate the correlation of a series */
#define WINDOW_HOURS 24
#define MIN_PATTERN_DAYS 3
#define MAX_PATTERN_REST 0.4 /* of the variance; the pattern of three days of noise leaves more */
#define REFINED_HOURS 12
#define CAUSE_LOG_RATIO 9.2 /* of twice the log-likelihood: 1 of 100 changes by a cause is farther off */

/* ---- windows ---- */

struct hour_prefix {
        double sum, squares, products; /* of hours before; products of an hour and the one before it */
};

struct change_search {
        size_t *hours; /* of the known ones; owned */
        double *values;
        struct hour_prefix *prefix; /* count + 1 */
        size_t count;
        double correlation; /* of neighbours, of the whole series; at least 0 */
        double level;
        const size_t *causes; /* as indexes of known hours; owned */
        size_t cause_count;
        struct change_point *found; /* hour: index of a known one */
        size_t found_count, max;
};

static double sum_window(const struct change_search *s, size_t begin, size_t end)
{
        return s->prefix[end].sum - s->prefix[begin].sum;
}

static double compute_window_mean(const struct change_search *s, size_t begin, size_t end)
{
        return sum_window(s, begin, end) / (double)(end - begin);
}

/* The sum of squares around the mean, and the sum of products of neighbours around it. */
static double add_residuals(const struct change_search *s, size_t begin, size_t end, double *products)
{
        const double n = (double)(end - begin), mean = compute_window_mean(s, begin, end),
                     squares = s->prefix[end].squares - s->prefix[begin].squares,
                     neighbours = s->prefix[end].products - s->prefix[begin + 1].products, first = s->values[begin],
                     last = s->values[end - 1], sum = sum_window(s, begin, end);

        *products += neighbours - mean * (2 * sum - first - last) + (n - 1) * mean * mean;
        return fmax(0, squares - n * mean * mean);
}

static int compare_doubles(const void *x, const void *y)
{
        const double *a = x, *b = y;

        return *a < *b ? -1 : *a > *b;
}

/* The mean of squared differences of values `lag` apart, without the greatest ones, which are changes. */
static double average_lagged_squares(const struct change_search *s, size_t lag, double *scratch)
{
        const size_t n = s->count - lag, kept = n - n / TRIMMED_PART;
        double sum = 0;

        for (size_t i = 0; i < n; i++)
                scratch[i] = (s->values[i + lag] - s->values[i]) * (s->values[i + lag] - s->values[i]);
        qsort(scratch, n, sizeof *scratch, compare_doubles);
        for (size_t i = 0; i < kept; i++)
                sum += scratch[i];
        return sum / (double)kept;
}

/* Of a first-order autoregressive process, the differences of lags 1 and 2 have variances as 1 to 1 + r. */
static double estimate_correlation(const struct change_search *s, double *scratch)
{
        double one;

        if (s->count < MIN_CORRELATION_HOURS)
                return 0;
        one = average_lagged_squares(s, 1, scratch);
        return one > 0 ? fmax(0, average_lagged_squares(s, 2, scratch) / one - 1) : 0;
}

/* ---- the test of a boundary ---- */

/* p of equal means of [begin, at) and [at, end), two-sided. */
static double test_boundary(const struct change_search *s, size_t begin, size_t at, size_t end)
{
        const double n[2] = { (double)(at - begin), (double)(end - at) }, all = n[0] + n[1];
        const double difference = compute_window_mean(s, at, end) - compute_window_mean(s, begin, at);
        double products = 0, squares = add_residuals(s, begin, at, &products), correlation, inflation, variance,
               freedom, scale = fmax(fabs(s->values[begin]), fabs(s->values[end - 1]));

        squares += add_residuals(s, at, end, &products);
        if (squares <= all * scale * scale * DBL_EPSILON)
                return fabs(difference) > scale * 1e-6 ? 0 : 1;
        /* Estimates from few hours are too small by about (1 + 3r) / n. Source: M. G. Kendall, Biometrika 41 (1954). */
        correlation = products / squares;
        correlation += (1 + 3 * fmax(0, correlation)) / all;
        correlation = fmin(MAX_CORRELATION, fmax(s->correlation, correlation));
        inflation = (1 + correlation) / (1 - correlation);
        freedom = fmax(FREEDOM_MIN, all / inflation - 2);
        variance = squares / (all - 2) * inflation * (1 / n[0] + 1 / n[1]);
        return fmin(1, 2 * student_upper_tail(fabs(difference) / sqrt(variance), freedom));
}

/* The smallest p of all lengths of windows around a boundary within [begin, end). */
static double test_window_lengths(const struct change_search *s, size_t begin, size_t at, size_t end)
{
        double best = 1;

        for (size_t length = CHANGE_MIN_HOURS;; length *= 2) {
                const size_t from = at - begin > length ? at - length : begin,
                             to = end - at > length ? at + length : end;

                best = fmin(best, test_boundary(s, from, at, to));
                if (from == begin && to == end)
                        return best;
        }
}

/* ---- the search ---- */

/* The boundary with the smallest p among those of [first, last]. */
static double find_best_boundary(const struct change_search *s, size_t begin, size_t end, size_t first, size_t last,
                                 size_t *ret)
{
        double best = 2;

        if (first < begin + CHANGE_MIN_HOURS)
                first = begin + CHANGE_MIN_HOURS;
        for (size_t at = first; at <= last && at + CHANGE_MIN_HOURS <= end; at++) {
                double p = test_window_lengths(s, begin, at, end);

                if (p < best) {
                        best = p;
                        *ret = at;
                }
        }
        return best;
}

/* The sum of squares around two levels, in WINDOW_HOURS on both sides of `around` within [begin, end). */
static double compute_split_residuals(const struct change_search *s, size_t begin, size_t end, size_t around, size_t at)
{
        const size_t from = around - begin > WINDOW_HOURS ? around - WINDOW_HOURS : begin,
                     to = end - around > WINDOW_HOURS ? around + WINDOW_HOURS : end;
        double products = 0;

        return add_residuals(s, from, at, &products) + add_residuals(s, at, to, &products);
}

/*
 * The hour of a change near the boundary that was found: where two levels leave the smallest residuals, or that of a
 * cause which explains them nearly as well: by the likelihood ratio, for normal residuals.
 */
static size_t refine_change_hour(const struct change_search *s, size_t begin, size_t end, size_t around)
{
        const size_t left = around - begin, right = end - around;
        const double n =
                (double)((left < WINDOW_HOURS ? left : WINDOW_HOURS) + (right < WINDOW_HOURS ? right : WINDOW_HOURS));
        double least = INFINITY, of_cause = INFINITY;
        size_t best = around, cause = 0;

        for (size_t at = begin + CHANGE_MIN_HOURS; at + CHANGE_MIN_HOURS <= end; at++) {
                double residuals;

                if (at + REFINED_HOURS < around || at > around + REFINED_HOURS)
                        continue;
                residuals = compute_split_residuals(s, begin, end, around, at);
                if (residuals < least) {
                        least = residuals;
                        best = at;
                }
                for (size_t i = 0; i < s->cause_count; i++)
                        if (s->causes[i] == at && residuals < of_cause) {
                                of_cause = residuals;
                                cause = at;
                        }
        }
        return cause && of_cause <= least * exp(CAUSE_LOG_RATIO / n) ? cause : best;
}

/* The number of tests that a search of n hours is worth: each length of windows has n / length independent ones. */
static double count_tests(size_t n)
{
        return 2 * (double)n / CHANGE_MIN_HOURS;
}

static void search_changes(struct change_search *s, size_t begin, size_t end)
{
        size_t at = 0;
        double p = 2;

        if (end - begin < 2 * CHANGE_MIN_HOURS || s->found_count == s->max)
                return;
        for (size_t i = 0; i < s->cause_count; i++) {
                size_t cause = s->causes[i], near = 0;
                double of_cause;

                if (cause + CHANGE_CAUSE_HOURS < begin || cause > end)
                        continue;
                of_cause =
                        find_best_boundary(s, begin, end, cause < CHANGE_CAUSE_HOURS ? 0 : cause - CHANGE_CAUSE_HOURS,
                                           cause + CHANGE_CAUSE_HOURS, &near) *
                        (double)s->cause_count * (2 * CHANGE_CAUSE_HOURS + 1);
                if (of_cause < p) {
                        p = of_cause;
                        at = near;
                }
        }
        if (p > s->level)
                p = find_best_boundary(s, begin, end, begin, end, &at) * count_tests(s->count);
        if (p > s->level)
                return;
        at = refine_change_hour(s, begin, end, at);
        s->found[s->found_count++] = (struct change_point){ .hour = at, .p = fmin(1, p) };
        search_changes(s, begin, at);
        search_changes(s, at, end);
}

/* ---- what became of a change ---- */

static int compare_change_hours(const void *x, const void *y)
{
        const struct change_point *a = x, *b = y;

        return a->hour < b->hour ? -1 : a->hour > b->hour;
}

/* The usual value at this time of day before an hour. @return false: no day before has it. */
static bool find_usual_value(const struct hour_series *series, size_t hour, size_t before, double *ret)
{
        double values[LIMIT_DAYS_BEFORE];
        size_t count = 0;

        for (size_t days = 1; days * DAY_HOURS <= hour && count < LIMIT_DAYS_BEFORE; days++)
                if (hour - days * DAY_HOURS < before && !isnan(series->values[hour - days * DAY_HOURS]))
                        values[count++] = series->values[hour - days * DAY_HOURS];
        if (!count)
                return false;
        qsort(values, count, sizeof *values, compare_doubles);
        *ret = (values[count / 2] + values[(count - 1) / 2]) / 2;
        return true;
}

/* Whether the days before had the new level at the same hours. */
static bool is_daily_change(const struct hour_series *series, const struct change_point *c, size_t end)
{
        double sum = 0, usual;
        size_t count = 0;

        for (size_t hour = c->hour; hour < end && hour < c->hour + DAY_HOURS; hour++)
                if (!isnan(series->values[hour]) && find_usual_value(series, hour, c->hour, &usual)) {
                        sum += series->values[hour] - usual;
                        count++;
                }
        return count >= MIN_EQUAL_HOURS &&
               sum / (double)count * (c->after > c->before ? 1 : -1) < RETURNED_PART * fabs(c->after - c->before);
}

/* Pair each change with the first later one that leaves less than RETURNED_PART of it. */
static void find_returns(struct change_point *c, size_t count)
{
        for (size_t i = 0; i < count; i++)
                for (size_t k = i + 1; k < count && !c[i].returned_at; k++)
                        if (fabs(c[k].after - c[i].before) < RETURNED_PART * fabs(c[i].after - c[i].before)) {
                                c[i].returned_at = c[k].hour;
                                for (size_t j = i + 1; j <= k; j++) /* what happened in between went away, too */
                                        c[j].returned_at = j == k ? c[i].hour : c[k].hour;
                        }
}

/* ---- daily patterns ---- */

/* The mean of the 24 hours around an hour, of the first or last ones at the ends. @return false: half are unknown. */
static bool find_day_mean(const struct hour_series *series, size_t hour, double *ret)
{
        size_t begin = hour < DAY_HOURS / 2 ? 0 : hour - DAY_HOURS / 2, known = 0;

        if (begin + DAY_HOURS > series->count)
                begin = series->count - DAY_HOURS;
        for (size_t i = begin; i < begin + DAY_HOURS; i++)
                known += !isnan(series->values[i]);
        *ret = compute_hour_mean(series, begin, begin + DAY_HOURS);
        return known * 2 > DAY_HOURS;
}

/* The median of the differences from the mean of the day, for each time of day. @return false: not enough days. */
static bool find_daily_pattern(const double *differences, size_t count, double ret[static DAY_HOURS])
{
        double *values = calloc(count / DAY_HOURS + 1, sizeof *values), sum = 0;

        for (size_t k = 0; values && k < DAY_HOURS; k++) {
                size_t n = 0;

                for (size_t i = k; i < count; i += DAY_HOURS)
                        if (!isnan(differences[i]))
                                values[n++] = differences[i];
                if (n < MIN_PATTERN_DAYS) {
                        free(values);
                        return false;
                }
                qsort(values, n, sizeof *values, compare_doubles);
                ret[k] = (values[n / 2] + values[(n - 1) / 2]) / 2;
                sum += ret[k];
        }
        for (size_t k = 0; k < DAY_HOURS; k++)
                ret[k] -= sum / DAY_HOURS;
        free(values);
        return values != NULL;
}

void remove_daily_pattern(double *values, size_t count)
{
        const struct hour_series series = { values, count };
        double *differences = calloc(count + 1, sizeof *differences), pattern[DAY_HOURS], mean, before = 0, after = 0;

        if (!differences || count < MIN_PATTERN_DAYS * DAY_HOURS) {
                free(differences);
                return;
        }
        for (size_t i = 0; i < count; i++)
                differences[i] = find_day_mean(&series, i, &mean) ? values[i] - mean : NAN;
        if (find_daily_pattern(differences, count, pattern)) {
                for (size_t i = 0; i < count; i++)
                        if (!isnan(differences[i])) {
                                before += differences[i] * differences[i];
                                differences[i] -= pattern[i % DAY_HOURS];
                                after += differences[i] * differences[i];
                        }
                for (size_t i = 0; after <= MAX_PATTERN_REST * before && i < count; i++)
                        values[i] -= pattern[i % DAY_HOURS];
        }
        free(differences);
}

/* ---- the entry point ---- */

double compute_hour_mean(const struct hour_series *series, size_t begin, size_t end)
{
        double sum = 0;
        size_t count = 0;

        for (size_t i = begin; i < end && i < series->count; i++)
                if (!isnan(series->values[i])) {
                        sum += series->values[i];
                        count++;
                }
        return count ? sum / (double)count : NAN;
}

static void fill_change_search(struct change_search *s, const struct hour_series *series, const size_t *causes,
                               size_t cause_count, size_t *known_causes)
{
        size_t cause = 0;

        for (size_t i = 0; i < series->count; i++) {
                struct hour_prefix *p = &s->prefix[s->count];

                for (; cause < cause_count && causes[cause] <= i; cause++)
                        known_causes[cause] = s->count;
                if (isnan(series->values[i]))
                        continue;
                s->hours[s->count] = i;
                s->values[s->count] = series->values[i];
                p[1].sum = p->sum + series->values[i];
                p[1].squares = p->squares + series->values[i] * series->values[i];
                p[1].products = p->products + (s->count ? series->values[i] * s->values[s->count - 1] : 0);
                s->count++;
        }
        s->causes = known_causes;
        s->cause_count = cause;
}

static void set_change_levels(const struct hour_series *series, struct change_point *c, size_t count)
{
        for (size_t i = 0; i < count; i++) {
                const size_t end = i + 1 < count ? c[i + 1].hour : series->count;

                c[i].before = compute_hour_mean(series, i ? c[i - 1].hour : 0, c[i].hour);
                c[i].after = compute_hour_mean(series, c[i].hour, end);
                c[i].is_daily = is_daily_change(series, &c[i], end);
        }
        find_returns(c, count);
}

enum status find_change_points(const struct hour_series *series, const size_t *causes, size_t cause_count, double level,
                               struct change_point *ret, size_t max, size_t *count_ret, struct error *err)
{
        struct change_search s = { .level = level, .found = ret, .max = max };
        const size_t n = series->count;
        size_t *known_causes = calloc(cause_count + 1, sizeof *known_causes);
        enum status st = ST_OK;
        double *scratch;

        s.hours = calloc(n + 1, sizeof *s.hours);
        s.values = calloc(n + 1, sizeof *s.values);
        s.prefix = calloc(n + 1, sizeof *s.prefix);
        scratch = calloc(n + 1, sizeof *scratch);
        if (s.hours && s.values && s.prefix && scratch && known_causes) {
                fill_change_search(&s, series, causes, cause_count, known_causes);
                s.correlation = estimate_correlation(&s, scratch);
                search_changes(&s, 0, s.count);
                qsort(ret, s.found_count, sizeof *ret, compare_change_hours);
                for (size_t i = 0; i < s.found_count; i++)
                        ret[i].hour = s.hours[ret[i].hour];
                set_change_levels(series, ret, s.found_count);
        } else {
                st = error_no_memory(err);
        }
        free(s.hours);
        free(s.values);
        free(s.prefix);
        free(known_causes);
        free(scratch);
        *count_ret = s.found_count;
        return st;
}
