/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_QUERY_ENGINE_CHANGE_POINTS_H
#define CAIRN_QUERY_ENGINE_CHANGE_POINTS_H

/**
 * @file
 * Change points of a series of hours: where its level changed by more than chance explains.
 *
 * A boundary between two hours is tested by the means of windows of several lengths on both sides. Hours that follow
 * each other are not independent: the variance of a mean grows with the correlation of neighbours, and a mean has fewer
 * degrees of freedom than hours. The boundary with the smallest p is taken, and the series is searched again on both
 * sides of it. Moments of a known cause, such as the start of a build, are tested first, and need not stand out among
 * all boundaries.
 *
 * A change at which the same hours of the days before had the same level is a daily pattern, and none.
 *
 * Threads: no shared state.
 */
#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"

#define CHANGE_MIN_HOURS 3 /* on both sides of a change */

struct hour_series {
        const double *values; /* NAN: nothing is known of the hour */
        size_t count;
};

struct change_point {
        size_t hour;          /* the first one with the new level */
        double before, after; /* levels: means up to the neighbouring change points */
        double p;             /* of one of all tests of the series: at most 1 */
        bool is_daily;
        size_t returned_at; /* hour from which the level is as before the change, or since which it was so; 0: none */
};

/**
 * Find the change points of a series, in the order of time.
 * @param causes  hours that are tested first, rising; they may be off by CHANGE_CAUSE_HOURS.
 * @param level  the probability of finding a change in a series without one.
 * @param ret  room for max change points.
 * @param count_ret  the number of change points.
 * @return ST_OK, ST_NO_MEMORY.
 */
enum status find_change_points(const struct hour_series *series, const size_t *causes, size_t cause_count, double level,
                               struct change_point *ret, size_t max, size_t *count_ret, struct error *err) MUST_CHECK;
#define CHANGE_CAUSE_HOURS 2

/**
 * Subtract the daily pattern from a series of some days, if most of its variance is one: the usual difference between a
 * time of day and the mean of a day. The mean of the series stays.
 */
void remove_daily_pattern(double *values, size_t count);

/** The mean of the known hours in [begin, end); NAN: none. */
double compute_hour_mean(const struct hour_series *series, size_t begin, size_t end);

#endif
