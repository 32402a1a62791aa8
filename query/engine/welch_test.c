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

/* Rounding leaves a variance of equal observations a little over or under zero: then 0. */
static double compute_variance(double count, double sum, double sum_of_squares)
{
        const double mean = sum / count, variance = (sum_of_squares - count * mean * mean) / (count - 1);

        return variance > count * mean * mean * DBL_EPSILON ? variance : 0;
}

/* The correlation of the pairs. */
static double compute_correlation(const struct pair_sums *p)
{
        const double n = (double)p->count, a = compute_variance(n, p->sum[0], p->sum_of_squares[0]),
                     b = compute_variance(n, p->sum[1], p->sum_of_squares[1]),
                     covariance = (p->product - p->sum[0] * p->sum[1] / n) / (n - 1);

        return a > 0 && b > 0 ? fmax(-1, fmin(1, covariance / sqrt(a * b))) : 0;
}

void welch_compare(const struct observations sides[2], const struct pair_sums *pairs, struct welch_result *ret)
{
        const size_t pair_count = pairs && pairs->count >= WELCH_MIN_PAIRS ? pairs->count : 0;
        double n[2], variance[2], both, t, freedom; /* variances of the means */

        assert(sides[0].count >= 2 && sides[1].count >= 2);
        for (int i = 0; i < 2; i++) {
                n[i] = (double)sides[i].count;
                ret->mean[i] = sides[i].sum / n[i];
                variance[i] = compute_variance(n[i], sides[i].sum, sides[i].sum_of_squares) / n[i];
        }
        both = variance[0] + variance[1];
        t = ret->mean[1] - ret->mean[0];
        freedom = both > 0 ? both * both /
                                     (variance[0] * variance[0] / (n[0] - 1) + variance[1] * variance[1] / (n[1] - 1))
                           : n[0] + n[1] - 2;
        if (pair_count) {
                const double m = (double)pair_count, shared = 2 * compute_correlation(pairs) *
                                                              sqrt(variance[0] * variance[1]) * m / sqrt(n[0] * n[1]);

                assert(m <= n[0] && m <= n[1]);
                freedom = m - 1 + (freedom - m + 1) / (n[0] + n[1]) * (n[0] + n[1] - 2 * m);
                both = both - shared > both * n[0] * DBL_EPSILON ? both - shared : 0;
        }
        ret->freedom = freedom;
        ret->error = sqrt(both);
        ret->p = both > 0 ? student_upper_tail(t / ret->error, freedom) : t > 0 ? 0 : 1;
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
