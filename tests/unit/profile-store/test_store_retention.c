/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Retention of samples by age and size. The newest sample of these stores is from 2024, so ages are relative to a day
 * after it.
 */
#include <string.h>

#include <unistd.h>

#include "common/limits.h"
#include "common/metrics.h"
#include "common/program/metrics_write.h"
#include "profile-store/lifecycle/maintenance.h"
#include "profile-store/lifecycle/sample_retention.h"
#include "tests/support/disk_storage.h"
#include "tests/support/profiles.h"
#include "tests/support/store_fixture.h"
#include "tests/support/suite.h"

#define DAYS 6

static struct store_fixture fixture;

/* Three samples at noon of a day, two on one stack. */
static void append_day(unsigned batch, int day)
{
        struct test_profile t;
        struct error err;
        uint32_t first, second;

        test_profile_init(&t, STORE_FIXTURE_ID, "/bin/x");
        first = test_location(&t, 0x1000);
        second = test_location(&t, 0x1000 + 0x10 * (uint64_t)(1 + day));
        for (int i = 0; i < 3; i++)
                test_sample(&t, STORE_FIXTURE_T0 + day * STORE_FIXTURE_DAY_NS + STORE_FIXTURE_DAY_NS / 2 + i, 1,
                            i ? &second : &first, 1, NULL);
        check_ok(profile_store_append(fixture.store, &t.p, store_fixture_batch_id(batch), NULL, &err), &err);
        test_profile_deinit(&t);
}

static void begin_with_days(void)
{
        fixture.options.removed_grace_ms = 0;
        store_fixture_begin(&fixture);
        for (int day = 0; day < DAYS; day++) {
                append_day((unsigned)day, day);
                store_fixture_flush(&fixture);
        }
}

static struct sample_limits parse_rules(const char *text)
{
        struct sample_limits l = { 0 };
        struct error err;

        check_ok(sample_limits_parse(text, &l, &err), &err);
        return l;
}

static struct expiry expire(const char *rules, bool dry_run)
{
        struct sample_limits l = parse_rules(rules);
        struct expiry e;
        struct error err;

        check_ok(profile_store_expire(fixture.store, &(struct expiry_request){ .limits = &l, .dry_run = dry_run }, &e,
                                      &err),
                 &err);
        return e;
}

/* Check that days [0, end) of samples and stacks remain, and nothing else. */
static void is_first_days(struct expiry e, size_t end, enum expiry_reason reason)
{
        ck_assert_uint_eq(e.count, 2 * end);
        for (size_t i = 0; i < e.count; i++) {
                ck_assert_int_eq(e.days[i].day, 20000 + (int64_t)(i / 2));
                ck_assert_int_eq(e.days[i].table, i % 2 ? TABLE_STACKS : TABLE_SAMPLES);
                ck_assert_int_eq(e.days[i].reason, reason);
                ck_assert_uint_eq(e.days[i].files, 1);
                ck_assert_uint_eq(e.days[i].rows, i % 2 ? 2 : 3);
                ck_assert_uint_gt(e.days[i].bytes, 100);
        }
        expiry_deinit(&e);
}

START_TEST(the_strictest_rule_applies)
{
        struct sample_limits l = parse_rules("age=30d,size=200G");
        struct error err = { 0 };

        ck_assert_uint_eq(l.age_s, 30 * 86400);
        ck_assert_uint_eq(l.size_bytes, UINT64_C(200) << 30);
        check_ok(sample_limits_parse("age=2w", &l, &err), &err);
        check_ok(sample_limits_parse("size=1T", &l, &err), &err);
        ck_assert_uint_eq(l.age_s, 14 * 86400);
        ck_assert_uint_eq(l.size_bytes, UINT64_C(200) << 30);
        ck_assert_int_eq(sample_limits_parse("age=30", &l, &err), ST_USAGE);
        ck_assert_int_eq(sample_limits_parse("age=59m", &l, &err), ST_USAGE);
        ck_assert_int_eq(sample_limits_parse("age=1h,keep", &l, &err), ST_USAGE);
        ck_assert_int_eq(sample_limits_parse("", &l, &err), ST_USAGE);
        ck_assert_ptr_nonnull(strstr(err.text, "age=30d"));
        ck_assert_uint_eq(l.age_s, 14 * 86400); /* not changed by rejected rules */
}
END_TEST

START_TEST(days_past_their_age_are_removed_from_samples_and_stacks)
{
        begin_with_days();
        is_first_days(expire("age=2d", true), 4, EXPIRY_AGE);
        ck_assert_int_eq(store_fixture_sum(&fixture), 3 * DAYS); /* it was a dry run */
        is_first_days(expire("age=2d", false), 4, EXPIRY_AGE);
        ck_assert_int_eq(store_fixture_sum(&fixture), 3 * (DAYS - 4));
        is_first_days(expire("age=2d", false), 0, EXPIRY_AGE);
        ck_assert_uint_eq(store_fixture_stat(&fixture).stack_rows, 2 * (DAYS - 4));
        store_fixture_reopen(&fixture);
        ck_assert_int_eq(store_fixture_sum(&fixture), 3 * (DAYS - 4));
        store_fixture_end(&fixture);
}
END_TEST

START_TEST(day_partially_within_age_is_kept)
{
        begin_with_days(); /* now is noon of the day after the newest */
        is_first_days(expire("age=84h", true), 3, EXPIRY_AGE);
        is_first_days(expire("age=85h", true), 2, EXPIRY_AGE);
        is_first_days(expire("age=400d", true), 0, EXPIRY_AGE);
        store_fixture_end(&fixture);
}
END_TEST

START_TEST(late_samples_of_removed_day_get_stacks)
{
        begin_with_days();
        is_first_days(expire("age=2d", false), 4, EXPIRY_AGE);
        append_day(100, 3);
        store_fixture_flush(&fixture);
        ck_assert_int_eq(store_fixture_sum(&fixture), 3 * (DAYS - 3));
        ck_assert_uint_eq(store_fixture_count_stacks(&fixture), 4); /* one file for each day, and one for all */
        ck_assert_uint_eq(store_fixture_stat(&fixture).stack_rows, 2 * (DAYS - 3));
        store_fixture_end(&fixture);
}
END_TEST

START_TEST(oldest_days_are_removed_until_size_fits)
{
        struct profile_store_stat stat;
        struct expiry e;
        char rule[64];

        begin_with_days();
        stat = store_fixture_stat(&fixture);
        snprintf(rule, sizeof rule, "size=%ju", (uintmax_t)stat.bytes);
        is_first_days(expire(rule, true), 0, EXPIRY_SIZE);
        snprintf(rule, sizeof rule, "size=%ju", (uintmax_t)stat.bytes - 1);
        is_first_days(expire(rule, true), 1, EXPIRY_SIZE);
        e = expire(rule, false);
        snprintf(rule, sizeof rule, "size=%ju", (uintmax_t)(stat.bytes - e.days[0].bytes - e.days[1].bytes - 1));
        is_first_days(e, 1, EXPIRY_SIZE);
        e = expire(rule, false); /* removed files still on disk are not counted again */
        ck_assert_uint_eq(e.count, 2);
        ck_assert_int_eq(e.days[0].day, 20001);
        expiry_deinit(&e);
        e = expire("size=1", false); /* the newest file is kept */
        ck_assert_uint_eq(e.count, 2 * (DAYS - 3));
        expiry_deinit(&e);
        ck_assert_int_eq(store_fixture_sum(&fixture), 3);
        append_day(100, DAYS - 1);
        store_fixture_flush(&fixture);
        e = expire("size=1", false); /* of two files of one day the older */
        ck_assert_uint_eq(e.count, 1);
        ck_assert_int_eq(e.days[0].table, TABLE_SAMPLES);
        expiry_deinit(&e);
        ck_assert_int_eq(store_fixture_sum(&fixture), 3);
        store_fixture_end(&fixture);
}
END_TEST

START_TEST(stacks_are_removed_after_crash_between_tables)
{
        struct profile_store *s;
        struct expiry e;
        struct error err;

        begin_with_days();
        s = fixture.store;
        check_ok(tables_commit(&s->logs,
                               &(struct table_change){ .table = TABLE_SAMPLES,
                                                       .removes = s->tables->parts[TABLE_SAMPLES],
                                                       .remove_count = 2 },
                               &err),
                 &err);
        store_fixture_reopen(&fixture);
        e = expire("age=400d", false);
        ck_assert_uint_eq(e.count, 2);
        for (size_t i = 0; i < 2; i++) {
                ck_assert_int_eq(e.days[i].reason, EXPIRY_UNUSED);
                ck_assert_int_eq(e.days[i].table, TABLE_STACKS);
                ck_assert_int_eq(e.days[i].day, 20000 + (int64_t)i);
        }
        expiry_deinit(&e);
        store_fixture_end(&fixture);
}
END_TEST

/* Another program removes a file of samples. */
static void remove_as_another_writer(const char *path)
{
        _cleanup_free_ char *dir = store_fixture_path(&fixture, "tables/samples");
        struct delta_commit c = { .size = sizeof c, .removes = &path, .remove_count = 1, .operation = "DELETE" };
        struct delta_table *t = NULL;
        struct error err;

        check_ok(delta_table_open(disk_storage(), dir + 1, &t, &err), &err);
        check_ok(delta_commit(t, &c, &err), &err);
        delta_table_close(t);
}

START_TEST(concurrent_commit_is_included_in_plan)
{
        struct expiry e;

        begin_with_days();
        remove_as_another_writer("date=2024-10-05/part-00000000000000000002-00000000000000000002.parquet");
        e = expire("age=2d", false);
        ck_assert_uint_eq(e.count, 2 * 4 - 1);
        ck_assert_int_eq(e.days[2].table, TABLE_STACKS);
        ck_assert_int_eq(e.days[2].day, 20001);
        expiry_deinit(&e);
        ck_assert_int_eq(store_fixture_sum(&fixture), 3 * (DAYS - 4));
        store_fixture_end(&fixture);
}
END_TEST

START_TEST(maintenance_applies_limits_and_unlinks_files_later)
{
        _cleanup_free_ char *day = NULL, *kept = NULL;
        struct error err;

        begin_with_days();
        day = store_fixture_path(&fixture, "tables/samples/date=2024-10-04");
        kept = store_fixture_path(&fixture, "tables/samples/date=2024-10-08");
        fixture.options.limits = parse_rules("age=2d");
        fixture.options.removed_grace_ms = 1;
        store_fixture_reopen(&fixture);
        while (access(day, F_OK) == 0) /* a millisecond */
                check_ok(store_maintain(fixture.store, &err), &err);
        ck_assert_int_eq(access(kept, F_OK), 0);
        ck_assert_int_eq(store_fixture_sum(&fixture), 3 * (DAYS - 4));
        fixture.options = (struct profile_store_options){ 0 };
        store_fixture_end(&fixture);
}
END_TEST

static int64_t count_expired_rows(void)
{
        static const char name[] = "\ncairn_store_expired_rows_total ";
        _cleanup_buf_ struct buf text;
        const char *at;

        buf_init(&text, MiB(1));
        metrics_write(&text);
        at = strstr(buf_cstr(&text), name);
        return at ? atoll(at + strlen(name)) : 0;
}

START_TEST(expired_rows_are_counted_although_next_table_fails)
{
        _cleanup_free_ char *log = NULL, *moved = NULL;
        const struct sample_limits limits = parse_rules("age=2d");
        const struct expiry_request request = { .limits = &limits };
        struct expiry e = { 0 };
        struct error err;

        begin_with_days();
        log = store_fixture_path(&fixture, "tables/stacks/_delta_log");
        moved = store_fixture_path(&fixture, "tables/stacks/moved");
        retention_register_metrics();
        ck_assert_int_eq(rename(log, moved), 0);
        ck_assert_int_eq(profile_store_expire(fixture.store, &request, &e, &err), ST_OS);
        ck_assert_int_eq(count_expired_rows(), 3 * (DAYS - 2));
        ck_assert_int_eq(rename(moved, log), 0);
        e = expire("age=2d", false);
        ck_assert_int_eq(count_expired_rows(), (3 + 2) * (DAYS - 2));
        expiry_deinit(&e);
        store_fixture_end(&fixture);
}
END_TEST

TEST_SUITE("store retention", the_strictest_rule_applies, days_past_their_age_are_removed_from_samples_and_stacks,
           day_partially_within_age_is_kept, late_samples_of_removed_day_get_stacks,
           oldest_days_are_removed_until_size_fits, stacks_are_removed_after_crash_between_tables,
           concurrent_commit_is_included_in_plan, maintenance_applies_limits_and_unlinks_files_later,
           expired_rows_are_counted_although_next_table_fails)
