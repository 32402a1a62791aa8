/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <stdlib.h>

#include "profile-formats/sample_count.h"
#include "tests/support/suite.h"

#define CPU "process_cpu:cpu:nanoseconds:cpu:nanoseconds"

static struct counted_samples count_value(const struct sample_count_rule *rule, int64_t value)
{
        return compute_sample_count(rule, value, 1);
}

START_TEST(parts_of_samples_add_up_in_any_order)
{
        const struct sample_count_rule sevenths = profile_type_get_count_rule(CPU, 7);
        struct counted_samples up = { 0 }, down = { 0 };
        int64_t sum = 0;

        for (int64_t i = 0; i < 1000; i++) {
                sample_count_add(&up, count_value(&sevenths, i * i % 100));
                sample_count_add(&down, count_value(&sevenths, (999 - i) * (999 - i) % 100));
                sum += i * i % 100;
        }
        ck_assert_uint_eq(sample_count_round(up), (uint64_t)(2 * sum + 7) / 14);
        ck_assert_uint_eq(sample_count_round(down), sample_count_round(up));
        ck_assert_uint_eq(sample_count_round(count_value(&sevenths, sum)), sample_count_round(up));
}
END_TEST

START_TEST(halves_of_several_periods_are_rounded_up)
{
        const struct sample_count_rule thirds = profile_type_get_count_rule(CPU, 3),
                                       sixths = profile_type_get_count_rule(CPU, 6);
        struct counted_samples sum = { .whole = 2 };

        sample_count_add(&sum, count_value(&thirds, 1));
        ck_assert_uint_eq(sample_count_round(sum), 2);
        sample_count_add(&sum, count_value(&sixths, 1)); /* 2 + 1/3 + 1/6 */
        ck_assert_uint_eq(sample_count_round(sum), 3);
        sample_count_add(&sum, count_value(&thirds, -1));
        ck_assert_uint_eq(sample_count_round(sum), 2);
}
END_TEST

START_TEST(less_than_a_sample_is_one)
{
        const struct sample_count_rule rule = profile_type_get_count_rule(CPU, 10000000);
        struct counted_samples sum = { 0 };

        ck_assert_uint_eq(sample_count_round(sum), 0);
        ck_assert_uint_eq(sample_count_round(count_value(&rule, 0)), 1);
        for (int i = 0; i < 1000; i++)
                sample_count_add(&sum, count_value(&rule, 1));
        ck_assert_uint_eq(sample_count_round(sum), 1);
        sample_count_add(&sum, count_value(&rule, 14999000));
        ck_assert_uint_eq(sample_count_round(sum), 2);
}
END_TEST

START_TEST(stacks_are_counted_without_a_period)
{
        const struct sample_count_rule rule = profile_type_get_count_rule(CPU, 0);
        struct counted_samples sum = { 0 };

        sample_count_add(&sum, compute_sample_count(&rule, 5000, 3));
        ck_assert_uint_eq(sample_count_round(sum), 3);
        ck_assert(sum.are_stacks);
}
END_TEST

START_TEST(extreme_counts_saturate)
{
        const struct sample_count_rule seconds = profile_type_get_count_rule("wall:wall:seconds:wall:nanoseconds", 1),
                                       long_one = profile_type_get_count_rule("wall:wall:ns:wall:hours", INT64_MAX);
        struct counted_samples sum = { 0 };

        for (int i = 0; i < 3; i++)
                sample_count_add(&sum, count_value(&seconds, INT64_MAX));
        ck_assert_uint_eq(sample_count_round(sum), INT64_MAX);
        sum = (struct counted_samples){ 0 };
        sample_count_add(&sum, count_value(&seconds, INT64_MIN));
        ck_assert_uint_eq(sample_count_round(sum), 1);
        ck_assert_uint_eq(sample_count_round(count_value(&long_one, INT64_MAX)), 1);
}
END_TEST

/* The interval has more bits than a fraction, and each value is a little less than it. */
START_TEST(almost_a_long_interval_is_not_none)
{
        const struct sample_count_rule rule = { .interval = ((__int128)1 << 70) + 1, .unit = 1 << 10 };
        struct counted_samples count = compute_sample_count(&rule, INT64_C(1) << 60, 1);

        sample_count_add(&count, compute_sample_count(&rule, INT64_C(1) << 60, 1));
        ck_assert_uint_eq(sample_count_round(count), 2);
}
END_TEST

TEST_SUITE("sample_count", parts_of_samples_add_up_in_any_order, halves_of_several_periods_are_rounded_up,
           less_than_a_sample_is_one, stacks_are_counted_without_a_period, extreme_counts_saturate,
           almost_a_long_interval_is_not_none)
