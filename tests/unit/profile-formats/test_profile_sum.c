/* SPDX-License-Identifier: Apache-2.0 */
/* Summation of the profiles of many intervals. */
#include <check.h>
#include <string.h>

#include "common/limits.h"
#include "profile-formats/folded.h"
#include "profile-formats/profile_sum.h"
#include "tests/support/suite.h"

static struct profile decoded(const char *text, int64_t time_ns, const char *label)
{
        struct profile p;

        ck_assert_int_eq(folded_decode_addresses(text, strlen(text), NULL, &p, NULL), ST_OK);
        ck_assert_int_eq(profile_add_label_to_all(&p, "name", label, NULL), ST_OK);
        for (uint32_t i = 0; i < p.samples.count; i++) {
                p.samples.items[i].time_unix_ns = time_ns;
                p.samples.items[i].duration_ns = 10;
        }
        return p;
}

static void add(struct profile_sum *s, const char *text, int64_t time_ns, const char *label)
{
        _cleanup_profile_ struct profile p = decoded(text, time_ns, label);
        uint32_t added;

        ck_assert_int_eq(profile_sum_add(s, &p, &added, NULL), ST_OK);
        ck_assert_uint_eq(added, p.samples.count);
}

static void assert_folded(const struct profile *p, const char *want)
{
        _cleanup_buf_ struct buf b;

        buf_init(&b, 4096);
        ck_assert_int_eq(folded_encode(p, NULL, "name", &b, NULL), ST_OK);
        ck_assert_str_eq(buf_cstr(&b), want);
}

START_TEST(equal_samples_are_merged_with_first_and_last_time)
{
        struct profile_sum s;

        ck_assert_int_eq(profile_sum_init(&s, MiB(4), NULL), ST_OK);
        add(&s, "main;[/lib/x+0x10] 2\nmain;b 1\n", 100, "one");
        add(&s, "other 7\nmain;[/lib/x+0x10] 3\n", 150, "one");
        ck_assert_uint_eq(s.profile.samples.count, 3);
        ck_assert_int_eq(s.profile.samples.items[0].value, 5);
        ck_assert_int_eq(s.profile.samples.items[0].time_unix_ns, 100);
        ck_assert_int_eq(s.profile.samples.items[0].duration_ns, 60);
        assert_folded(&s.profile, "one;main;0x10 [x] 5\none;main;b 1\none;other 7\n");
        profile_sum_deinit(&s);
}
END_TEST

START_TEST(extreme_times_do_not_wrap)
{
        struct profile_sum s;

        ck_assert_int_eq(profile_sum_init(&s, MiB(4), NULL), ST_OK);
        add(&s, "main 1\n", INT64_MAX - 5, "one");
        add(&s, "main 1\n", INT64_MAX - 5, "one");
        ck_assert_int_eq(s.profile.samples.items[0].duration_ns, 0);
        add(&s, "main 1\n", INT64_MIN, "one");
        ck_assert_int_eq(s.profile.samples.items[0].time_unix_ns, INT64_MIN);
        ck_assert_int_eq(s.profile.samples.items[0].duration_ns, INT64_MAX);
        profile_sum_deinit(&s);
}
END_TEST

START_TEST(different_labels_objects_and_kernel_frames_are_distinct)
{
        struct profile_sum s;

        ck_assert_int_eq(profile_sum_init(&s, MiB(4), NULL), ST_OK);
        add(&s, "a;[/lib/x+0x10] 1\n", 1, "one");
        add(&s, "a;[/lib/x+0x10] 1\n", 1, "two");
        add(&s, "a;[/lib/y+0x10] 1\n", 1, "one");
        add(&s, "a;[/lib/x+0x18] 1\n", 1, "one");
        add(&s, "a_[k];[/lib/x+0x10] 1\n", 1, "one");
        ck_assert_uint_eq(s.profile.samples.count, 5);
        ck_assert_uint_eq(s.profile.mappings.count, 2);
        assert_folded(&s.profile, "one;a;0x10 [x] 1\ntwo;a;0x10 [x] 1\none;a;0x10 [y] 1\none;a;0x18 [x] 1\n"
                                  "one;a_[k];0x10 [x] 1\n");
        profile_sum_deinit(&s);
}
END_TEST

/* An hour of the same work needs no more memory than a minute of it. */
START_TEST(memory_depends_on_stacks_and_not_on_time)
{
        struct profile_sum s;
        size_t first;

        ck_assert_int_eq(profile_sum_init(&s, MiB(4), NULL), ST_OK);
        add(&s, "main;a;b 1\nmain;a;c 1\nmain;[/lib/x+0x10] 1\n", 0, "one");
        first = s.profile.arena.used;
        for (int i = 1; i < 1000; i++)
                add(&s, "main;a;b 1\nmain;a;c 1\nmain;[/lib/x+0x10] 1\n", i * 10, "one");
        ck_assert_uint_eq(s.profile.arena.used, first);
        ck_assert_int_eq(s.profile.samples.items[0].value, 1000);
        ck_assert_int_eq(s.profile.samples.items[0].duration_ns, 10000);
        profile_sum_deinit(&s);
}
END_TEST

START_TEST(full_sum_keeps_samples_and_counts_dropped_ones)
{
        _cleanup_buf_ struct buf text;
        struct profile_sum s;
        struct profile p;
        uint32_t added, stacks = 5000;
        int64_t sum = 0;

        buf_init(&text, MiB(4));
        for (uint32_t i = 0; i < stacks; i++)
                buf_printf(&text, "main;a%u;b%u;c%u 1\n", i, i, i);
        p = decoded(buf_cstr(&text), 1, "one");
        ck_assert_int_eq(profile_sum_init(&s, KiB(700), NULL), ST_OK);
        ck_assert_int_eq(profile_sum_add(&s, &p, &added, NULL), ST_TOO_BIG);
        ck_assert_uint_gt(added, 100);
        ck_assert_uint_lt(added, stacks);
        ck_assert_uint_le(s.profile.arena.used, KiB(700));
        for (uint32_t i = 0; i < s.profile.samples.count; i++)
                sum += s.profile.samples.items[i].value;
        ck_assert_int_eq(sum, added);
        profile_deinit(&p);
        profile_sum_deinit(&s);
}
END_TEST

TEST_SUITE("profile_sum", equal_samples_are_merged_with_first_and_last_time, extreme_times_do_not_wrap,
           different_labels_objects_and_kernel_frames_are_distinct, memory_depends_on_stacks_and_not_on_time,
           full_sum_keeps_samples_and_counts_dropped_ones)
