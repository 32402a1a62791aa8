/* SPDX-License-Identifier: Apache-2.0 */
/* Student's distribution, Welch's test and Benjamini-Hochberg, against published values. */
#include <check.h>
#include <math.h>

#include "query/engine/welch_test.h"
#include "tests/support/suite.h"

#define NEAR(got, want, tolerance)                                                                                     \
        ck_assert_msg(fabs((got) - (want)) <= (tolerance), "%.9g is not %.9g", (double)(got), (double)(want))

/* NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2. */
START_TEST(quantiles_are_those_of_the_published_table)
{
        NEAR(student_upper_quantile(0.05, 1), 6.314, 0.001);
        NEAR(student_upper_quantile(0.025, 4), 2.776, 0.001);
        NEAR(student_upper_quantile(0.01, 10), 2.764, 0.001);
        NEAR(student_upper_quantile(0.001, 30), 3.385, 0.001);
        NEAR(student_upper_quantile(0.1, 100), 1.290, 0.001);
        NEAR(student_upper_quantile(0.9, 100), -1.290, 0.001);
        NEAR(student_upper_tail(0, 3), 0.5, 1e-12);
        NEAR(student_upper_tail(1, 1), 0.25, 1e-12); /* Cauchy: 1/2 - atan(1)/pi */
        NEAR(student_upper_tail(-1, 1), 0.75, 1e-12);
        NEAR(student_upper_tail(INFINITY, 5), 0, 0);
}
END_TEST

static struct observations observe(const double *values, size_t count)
{
        struct observations o = { 0 };

        for (size_t i = 0; i < count; i++)
                observations_add(&o, values[i]);
        return o;
}
#define OBSERVE(...) observe((const double[]){ __VA_ARGS__ }, sizeof((const double[]){ __VA_ARGS__ }) / sizeof(double))

START_TEST(test_of_two_samples_has_the_textbook_result)
{
        const struct observations sides[2] = { OBSERVE(1, 2, 3, 4, 5), OBSERVE(3, 5, 7) };
        struct welch_result r;

        welch_compare(sides, &r); /* means 3 and 5, variances 2.5 and 4 */
        NEAR(r.mean[0], 3, 1e-12);
        NEAR(r.mean[1], 5, 1e-12);
        NEAR(r.error, sqrt(2.5 / 5 + 4.0 / 3), 1e-12);
        NEAR(r.freedom, 3.53285, 0.00001);
        NEAR(r.p, student_upper_tail(2 / r.error, r.freedom), 1e-12);
}
END_TEST

START_TEST(equal_observations_differ_or_not_without_chance)
{
        const struct observations more[2] = { OBSERVE(0.1, 0.1, 0.1), OBSERVE(0.2, 0.2, 0.2) },
                                  same[2] = { OBSERVE(0.1, 0.1, 0.1), OBSERVE(0.1, 0.1) };
        struct welch_result r;

        welch_compare(more, &r);
        NEAR(r.p, 0, 0);
        NEAR(welch_find_smallest_effect(&r, 0.01, 0.9), 0, 0);
        welch_compare(same, &r);
        NEAR(r.p, 1, 0);
}
END_TEST

/* The example of Benjamini and Hochberg (1995), section 3.2: four of fifteen at 0.05. */
START_TEST(discoveries_are_those_of_the_published_example)
{
        static const double p[] = { 0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344,
                                    0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0000 };

        NEAR(find_discovery_limit(p, 15, 0.05), 0.0095, 0);
        NEAR(find_discovery_limit(p + 9, 6, 0.05), -1, 0);
        NEAR(find_discovery_limit(p, 0, 0.05), -1, 0);
}
END_TEST

TEST_SUITE("welch", quantiles_are_those_of_the_published_table, test_of_two_samples_has_the_textbook_result,
           equal_observations_differ_or_not_without_chance, discoveries_are_those_of_the_published_example)
