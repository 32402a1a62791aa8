/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_QUERY_ENGINE_WELCH_TEST_H
#define CAIRN_QUERY_ENGINE_WELCH_TEST_H

/**
 * @file
 * Comparison of two means by independent observations: Welch's t test, the smallest effect that it would see, and the
 * control of false discoveries over many tests.
 *
 * Welch's test was chosen instead of a permutation test: with three observations per side, which is usual for
 * benchmarks, the smallest p of a permutation test is 1/20, so it could never find anything among many functions.
 *
 * Threads: no shared state.
 * Source: B. L. Welch, Biometrika 34 (1947); Y. Benjamini and Y. Hochberg, J. R. Stat. Soc. B 57 (1995).
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

struct welch_result {
        double mean[2];
        double error;   /* standard error of the difference of the means */
        double freedom; /* degrees of freedom */
        double p;       /* of the mean after being at most that before */
};

/** @param sides  before and after, each with at least two observations. */
void welch_compare(const struct observations sides[2], struct welch_result *ret);

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
