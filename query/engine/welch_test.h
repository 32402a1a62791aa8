/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_QUERY_ENGINE_WELCH_TEST_H
#define CAIRN_QUERY_ENGINE_WELCH_TEST_H

/**
 * @file
 * Comparison of two means of which some observations are pairs, such as one host before and after: Welch's t test,
 * the smallest effect that it would see, and the control of false discoveries over many tests.
 *
 * Pairs lower the variance of the difference by twice the covariance that they show. Without pairs this is Welch's
 * test, with nothing but pairs the paired t test; between them the degrees of freedom are interpolated.
 *
 * Welch's test was chosen instead of a permutation test: with three observations per side, which is usual for
 * benchmarks, the smallest p of a permutation test is 1/20, so it could never find anything among many functions.
 *
 * Threads: no shared state.
 * Source: B. L. Welch, Biometrika 34 (1947); B. Derrick, B. Russ, D. Toher and P. White, J. Mod. Appl. Stat. Methods 16
 * (2017), T_new2; Y. Benjamini and Y. Hochberg, J. R. Stat. Soc. B 57 (1995).
 */
#include <stddef.h>

/* The observations of one side, summed up. */
struct observations {
        size_t count;
        double sum, sum_of_squares;
};

static inline void observations_add(struct observations *o, double x)
{
        o->count++;
        o->sum += x;
        o->sum_of_squares += x * x;
}

/* Observations of the same subject on both sides, which are among those of the sides. */
struct pair_sums {
        size_t count;
        double sum[2], sum_of_squares[2], product;
};

/* One half of a pair. The caller adds the product of both, and counts them. */
static inline void pair_sums_add(struct pair_sums *p, unsigned side, double x)
{
        p->sum[side] += x;
        p->sum_of_squares[side] += x * x;
}

struct welch_result {
        double mean[2];
        double error;   /* standard error of the difference of the means */
        double freedom; /* degrees of freedom */
        double p;       /* of the mean after being at most that before */
};

/**
 * @param sides  before and after, each with at least two observations.
 * @param pairs  NULL: none. Fewer than WELCH_MIN_PAIRS do not count as pairs: the degrees of freedom that they cost
 *               are worth more than what they tell.
 */
void welch_compare(const struct observations sides[2], const struct pair_sums *pairs, struct welch_result *ret);
#define WELCH_MIN_PAIRS 6

/**
 * The smallest increase of the mean that a test at this level finds with this power, in units of the mean.
 * @param level  of one test, as 0.01. @param power  as 0.9.
 */
double welch_find_smallest_effect(const struct welch_result *r, double level, double power);

/** P(T > t) of Student's distribution. @param freedom  over 0. */
double student_upper_tail(double t, double freedom);

/** The t with P(T > t) = p, 0 < p < 1. */
double student_upper_quantile(double p, double freedom);

/**
 * Benjamini-Hochberg: the greatest p that is still a discovery at this rate of false ones; -1: none is.
 * @param sorted  p values, rising.
 */
double find_discovery_limit(const double *sorted, size_t count, double rate);

#endif
