/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>

#include "common/stable_clock.h"
#include "tests/support/suite.h"

#define SECOND INT64_C(1000000000)
#define HOUR (3600 * SECOND)
#define DAY (24 * HOUR)
#define START (1700000000 * SECOND)

START_TEST(clock_follows_wall_clock)
{
        struct stable_clock c = { 0 };

        ck_assert_int_eq(stable_clock_read(&c, START, 5 * SECOND), START);
        ck_assert_int_eq(stable_clock_read(&c, START + 10 * SECOND, 15 * SECOND), START + 10 * SECOND);
        ck_assert_int_eq(stable_clock_read(&c, START + 20 * SECOND + SECOND / 2, 25 * SECOND),
                         START + 20 * SECOND + SECOND / 2);
        ck_assert_uint_eq(c.steps, 0);
}
END_TEST

START_TEST(forward_step_is_accepted_after_a_day)
{
        struct stable_clock c = { 0 };

        stable_clock_read(&c, START, SECOND);
        ck_assert_int_eq(stable_clock_read(&c, START + DAY, SECOND), START);
        ck_assert_uint_eq(c.steps, 1);
        ck_assert_int_eq(stable_clock_read(&c, START + DAY + 23 * HOUR, SECOND + 23 * HOUR), START + 23 * HOUR);
        ck_assert_int_eq(stable_clock_read(&c, START + DAY + 24 * HOUR, SECOND + 24 * HOUR), START + DAY + 24 * HOUR);
        ck_assert_int_eq(c.held_since_ns, 0);
}
END_TEST

START_TEST(reverted_forward_step_is_never_accepted)
{
        struct stable_clock c = { 0 };

        stable_clock_read(&c, START, SECOND);
        stable_clock_read(&c, START + DAY, SECOND);
        ck_assert_int_eq(stable_clock_read(&c, START + 2 * HOUR, SECOND + 2 * HOUR), START + 2 * HOUR);
        ck_assert_int_eq(c.held_since_ns, 0);
        stable_clock_read(&c, START + DAY + 23 * HOUR, SECOND + 23 * HOUR);
        ck_assert_int_eq(stable_clock_read(&c, START + DAY + 25 * HOUR, SECOND + 25 * HOUR),
                         START + 25 * HOUR); /* the waiting day starts again */
        ck_assert_uint_eq(c.steps, 3);
}
END_TEST

START_TEST(backward_step_is_accepted_at_once)
{
        struct stable_clock c = { 0 };

        stable_clock_read(&c, START, SECOND);
        ck_assert_int_eq(stable_clock_read(&c, START - DAY, SECOND), START - DAY);
        ck_assert_uint_eq(c.steps, 1);
        ck_assert_int_eq(c.last_step_ns, -DAY);
        ck_assert_int_eq(stable_clock_read(&c, START + HOUR, SECOND + HOUR),
                         START - DAY + HOUR); /* forward again: delayed */
}
END_TEST

START_TEST(successive_forward_steps_wait_from_the_last)
{
        struct stable_clock c = { 0 };

        stable_clock_read(&c, START, SECOND);
        stable_clock_read(&c, START + DAY, SECOND);
        stable_clock_read(&c, START + 3 * DAY, SECOND + 12 * HOUR);
        ck_assert_int_eq(stable_clock_read(&c, START + 3 * DAY + 13 * HOUR, SECOND + 25 * HOUR), START + 25 * HOUR);
        ck_assert_int_eq(stable_clock_read(&c, START + 3 * DAY + 24 * HOUR, SECOND + 36 * HOUR),
                         START + 3 * DAY + 24 * HOUR);
}
END_TEST

START_TEST(range_includes_both_times_for_a_day)
{
        struct stable_clock c = { 0 };

        stable_clock_read(&c, START, SECOND);
        ck_assert_int_eq(c.low_offset_ns, c.high_offset_ns);
        stable_clock_read(&c, START - DAY + SECOND, 2 * SECOND);
        ck_assert_int_eq(c.high_offset_ns - c.low_offset_ns, DAY);
        stable_clock_read(&c, START + DAY + 12 * HOUR, SECOND + 12 * HOUR);
        ck_assert_int_eq(c.high_offset_ns - c.low_offset_ns, 2 * DAY);
        stable_clock_read(&c, START + DAY + 35 * HOUR, SECOND + 35 * HOUR);
        ck_assert_int_eq(c.high_offset_ns - c.low_offset_ns, 2 * DAY);
        stable_clock_read(&c, START + DAY + 36 * HOUR, SECOND + 36 * HOUR);
        ck_assert_int_eq(c.high_offset_ns, c.low_offset_ns);
        ck_assert_int_eq(c.low_offset_ns, START + DAY - SECOND);
}
END_TEST

TEST_SUITE("stable_clock", range_includes_both_times_for_a_day, clock_follows_wall_clock,
           forward_step_is_accepted_after_a_day, reverted_forward_step_is_never_accepted,
           backward_step_is_accepted_at_once, successive_forward_steps_wait_from_the_last)
