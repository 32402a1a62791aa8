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

        welch_compare(sides, NULL, &r); /* means 3 and 5, variances 2.5 and 4 */
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

        welch_compare(more, NULL, &r);
        NEAR(r.p, 0, 0);
        NEAR(welch_find_smallest_effect(&r, 0.01, 0.9), 0, 0);
        welch_compare(same, NULL, &r);
        NEAR(r.p, 1, 0);
}
END_TEST

/* The paired t test, from the differences of each pair: 1, 2, 2, 3, 1, 3. */
START_TEST(pairs_alone_give_the_paired_test)
{
        static const double before[] = { 10, 20, 30, 40, 50, 60 }, after[] = { 11, 22, 32, 43, 51, 63 };
        const struct observations sides[2] = { observe(before, 6), observe(after, 6) };
        struct pair_sums pairs = { .count = 6 };
        struct welch_result r;

        for (int i = 0; i < 6; i++) {
                pair_sums_add(&pairs, 0, before[i]);
                pair_sums_add(&pairs, 1, after[i]);
                pairs.product += before[i] * after[i];
        }
        welch_compare(sides, &pairs, &r);
        NEAR(r.error, sqrt(0.8 / 6), 1e-9); /* the variance of the differences is 0.8 */
        NEAR(r.freedom, 5, 1e-9);
        NEAR(r.p, student_upper_tail(2 / sqrt(0.8 / 6), 5), 1e-9);
        pairs.count = WELCH_MIN_PAIRS - 1;
        welch_compare(sides, &pairs, &r);
        ck_assert(r.p > 0.3); /* as if they were different subjects */
}
END_TEST

/* The same observations, of which some are of subjects on one side only. */
START_TEST(some_pairs_are_between_both_tests)
{
        static const double before[] = { 10, 20, 30, 40, 50, 60, 35, 35 }, after[] = { 11, 22, 32, 43, 51, 63, 36, 38 };
        const struct observations sides[2] = { observe(before, 8), observe(after, 8) };
        struct pair_sums pairs = { .count = 6 };
        struct welch_result some, none;

        for (int i = 0; i < 6; i++) {
                pair_sums_add(&pairs, 0, before[i]);
                pair_sums_add(&pairs, 1, after[i]);
                pairs.product += before[i] * after[i];
        }
        welch_compare(sides, &pairs, &some);
        welch_compare(sides, NULL, &none);
        ck_assert(some.error < none.error / 1.5 && some.error > sqrt(0.8 / 6));
        ck_assert(some.freedom > 5 && some.freedom < none.freedom);
        NEAR(some.freedom, 5 + (none.freedom - 5) / 16 * 4, 1e-9);
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
           equal_observations_differ_or_not_without_chance, pairs_alone_give_the_paired_test,
           some_pairs_are_between_both_tests, discoveries_are_those_of_the_published_example)
