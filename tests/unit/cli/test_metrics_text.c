/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing of a service's metrics by `cairn status`, which does not trust the service. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/shared/metrics_text.h"
#include "tests/support/suite.h"

START_TEST(samples_of_a_name_are_added)
{
        static const char text[] =
                "# HELP a_total Help.\na_total{kind=\"x\"} 2\na_total{kind=\"y, z\"} 3.5\nb 7 1700000000\n";
        struct metrics_text m;

        ck_assert_int_eq(metrics_text_parse(text, sizeof text - 1, &m, NULL), ST_OK);
        ck_assert_double_eq(metrics_text_sum(&m, "a_total", NULL), 5.5);
        ck_assert_double_eq(metrics_text_sum(&m, "a_total", "kind=\"x\""), 2);
        ck_assert_double_eq(metrics_text_sum(&m, "b", NULL), 7);
        ck_assert_double_eq(metrics_text_sum(&m, "c", NULL), 0);
        metrics_text_deinit(&m);
}
END_TEST

START_TEST(value_that_is_not_a_64_bit_integer_is_refused)
{
        static const char *const values[] = { "1e39",  "9e18", "-9e18", "1e400", "Inf",
                                              "+Inf",  "-inf", "NaN",   "nan",   "18446744073709551616",
                                              "0x1p63" };

        for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
                char text[80];
                struct metrics_text m;
                struct error err;
                int n = snprintf(text, sizeof text, "a 1\nb %s\n", values[i]);

                ck_assert_msg(metrics_text_parse(text, (size_t)n, &m, &err) == ST_BAD_DATA, "%s", values[i]);
                ck_assert_str_eq(err.text, "metrics: line 2 is not a metric");
        }
}
END_TEST

START_TEST(sums_stay_within_the_range_of_values)
{
        static const char text[] = "a{x=\"1\"} 8.9e18\na{x=\"2\"} 8.9e18\nb{x=\"1\"} -8.9e18\nb{x=\"2\"} -8.9e18\n";
        struct metrics_text m;

        ck_assert_int_eq(metrics_text_parse(text, sizeof text - 1, &m, NULL), ST_OK);
        ck_assert_double_eq(metrics_text_sum(&m, "a", NULL), METRIC_VALUE_END);
        ck_assert_double_eq(metrics_text_sum(&m, "b", NULL), -METRIC_VALUE_END);
        ck_assert_int_gt(llround(metrics_text_sum(&m, "a", NULL)), 0);
        metrics_text_deinit(&m);
}
END_TEST

TEST_SUITE("metrics text", samples_of_a_name_are_added, value_that_is_not_a_64_bit_integer_is_refused,
           sums_stay_within_the_range_of_values)
