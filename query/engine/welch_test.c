/* SPDX-License-Identifier: Apache-2.0 */
#include "query/engine/welch_test.h"

#include <assert.h>
#include <float.h>
#include <math.h>

#define FRACTION_STEPS_MAX 300
#define BISECTION_STEPS 200

/* The continued fraction of the incomplete beta function, by Lentz's method. Source: DLMF 8.17.22. */
static double compute_beta_fraction(double a, double b, double x)
{
        const double tiny = DBL_MIN / DBL_EPSILON;
        double c = 1, d = 1 - (a + b) * x / (a + 1), value;

        d = 1 / (fabs(d) < tiny ? tiny : d);
        value = d;
        for (int i = 1; i <= FRACTION_STEPS_MAX; i++) {
                const double even = i * (b - i) * x / ((a + 2 * i - 1) * (a + 2 * i)),
                             odd = -(a + i) * (a + b + i) * x / ((a + 2 * i) * (a + 2 * i + 1));

                for (int half = 0; half < 2; half++) {
                        const double term = half ? odd : even;

                        d = 1 + term * d;
                        d = 1 / (fabs(d) < tiny ? tiny : d);
                        c = 1 + term / c;
                        c = fabs(c) < tiny ? tiny : c;
                        value *= c * d;
                }
                if (fabs(c * d - 1) < 4 * DBL_EPSILON)
                        break;
        }
        return value;
}

static double compute_log_gamma(double x)
{
        int sign; /* lgamma() sets a global variable */

        return lgamma_r(x, &sign);
}

/* The regularized incomplete beta function I_x(a, b). */
static double compute_incomplete_beta(double a, double b, double x)
{
        double front;

        if (x <= 0 || x >= 1)
                return x <= 0 ? 0 : 1;
        front = exp(compute_log_gamma(a + b) - compute_log_gamma(a) - compute_log_gamma(b) + a * log(x) +
                    b * log1p(-x));
        if (x < (a + 1) / (a + b + 2))
                return front * compute_beta_fraction(a, b, x) / a;
        return 1 - front * compute_beta_fraction(b, a, 1 - x) / b;
}

double student_upper_tail(double t, double freedom)
{
        double tail;

        if (isinf(t))
                return t > 0 ? 0 : 1;
        tail = compute_incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t)) / 2;
        return t > 0 ? tail : 1 - tail;
}

double student_upper_quantile(double p, double freedom)
{
        double low = -1, high = 1;

        while (student_upper_tail(high, freedom) > p && high < DBL_MAX / 4)
                high *= 2;
        while (student_upper_tail(low, freedom) < p && low > -DBL_MAX / 4)
                low *= 2;
        for (int i = 0; i < BISECTION_STEPS && low < high; i++) {
                double middle = low + (high - low) / 2;

                *(student_upper_tail(middle, freedom) > p ? &low : &high) = middle;
        }
        return high;
}

/* The variance of the mean. */
static double compute_mean_variance(const struct observations *o)
{
        const double n = (double)o->count, mean = o->sum / n,
                     variance = (o->sum_of_squares - n * mean * mean) / (n - 1);

        /* Rounding leaves a variance of equal observations a little over or under zero. */
        return variance > n * mean * mean * DBL_EPSILON ? variance / n : 0;
}

void welch_compare(const struct observations sides[2], struct welch_result *ret)
{
        double variance[2], both, t;

        assert(sides[0].count >= 2 && sides[1].count >= 2);
        for (int i = 0; i < 2; i++) {
                ret->mean[i] = sides[i].sum / (double)sides[i].count;
                variance[i] = compute_mean_variance(&sides[i]);
        }
        both = variance[0] + variance[1];
        ret->error = sqrt(both);
        t = ret->mean[1] - ret->mean[0];
        if (both > 0) {
                ret->freedom = both * both /
                               (variance[0] * variance[0] / (double)(sides[0].count - 1) +
                                variance[1] * variance[1] / (double)(sides[1].count - 1));
                ret->p = student_upper_tail(t / ret->error, ret->freedom);
        } else {
                ret->freedom = (double)(sides[0].count + sides[1].count - 2);
                ret->p = t > 0 ? 0 : 1;
        }
}

double welch_find_smallest_effect(const struct welch_result *r, double level, double power)
{
        return r->error * (student_upper_quantile(level, r->freedom) + student_upper_quantile(1 - power, r->freedom));
}

double find_discovery_limit(const double *sorted, size_t count, double rate)
{
        for (size_t i = count; i-- > 0;)
                if (sorted[i] <= rate * (double)(i + 1) / (double)count)
                        return sorted[i];
        return -1;
}
