/* SPDX-License-Identifier: Apache-2.0 */
/* What the store's maintenance removes, and when. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "common/files/file.h"
#include "profile-store/core/table_follow.h"
#include "profile-store/lifecycle/maintenance.h"
#include "profile-store/profile_store.h"
#include "profile-store/tables/tables.h"
#include "tests/support/profiles.h"
#include "tests/support/store_fixture.h"
#include "tests/support/suite.h"

static struct store_fixture fixture;

/* ---- settable clocks ---- */

static int64_t wall_step_s, monotonic_step_s;

int clock_gettime(clockid_t id, struct timespec *ret)
{
        if (syscall(SYS_clock_gettime, id, ret) < 0)
                return -1;
        if (id == CLOCK_REALTIME)
                ret->tv_sec += wall_step_s;
        if (id == CLOCK_MONOTONIC)
                ret->tv_sec += monotonic_step_s;
        return 0;
}

/* ---- files ---- */

static bool contains_file(const char *name)
{
        _cleanup_free_ char *path = store_fixture_path(&fixture, name);

        return access(path, F_OK) == 0;
}

static void age_file(const char *name, time_t seconds)
{
        const struct timespec then = { .tv_sec = time(NULL) - seconds };
        _cleanup_free_ char *path = store_fixture_path(&fixture, name);

        if (access(path, F_OK) < 0)
                ck_assert_int_eq(file_write_durable(path, "x", 1, NULL), ST_OK);
        ck_assert_int_eq(utimensat(AT_FDCWD, path, (const struct timespec[2]){ then, then }, 0), 0);
}

static void maintain(void)
{
        struct error err;

        check_ok(store_maintain(fixture.store, &err), &err);
}

/* Remove the only file of stacks, like retention. */
static void remove_stacks(void)
{
        struct profile_store *s = fixture.store;
        struct error err;

        check_ok(tables_commit(&s->logs,
                               &(struct table_change){ .table = TABLE_STACKS,
                                                       .removes = s->tables->parts[TABLE_STACKS],
                                                       .remove_count = 1 },
                               &err),
                 &err);
        check_ok(store_publish_tables(s, &err), &err);
}

#define DAY "tables/stacks/date=2024-10-04"
#define PART DAY "/part-00000000000000000001-00000000000000000001.parquet"

static void begin_with_removed_stacks(uint64_t grace_ms)
{
        fixture.options.removed_grace_ms = grace_ms;
        store_fixture_begin(&fixture);
        store_fixture_append(&fixture, 0, 0x1000);
        store_fixture_flush(&fixture);
        remove_stacks();
}

START_TEST(old_removed_file_is_kept_for_grace_period)
{
        begin_with_removed_stacks(0);
        age_file(PART, 30 * 86400);
        maintain();
        ck_assert(contains_file(PART));
        store_fixture_reopen(&fixture);
        maintain();
        ck_assert(contains_file(PART));
        store_fixture_end(&fixture);
}
END_TEST

START_TEST(removed_file_and_empty_folder_are_deleted_after_grace_period)
{
        begin_with_removed_stacks(1);
        while (contains_file(PART)) /* a millisecond */
                maintain();
        ck_assert(!contains_file(DAY));
        ck_assert(contains_file("tables/samples/date=2024-10-04"));
        store_fixture_reopen(&fixture); /* the log still refers to it, and needs no change */
        maintain();
        ck_assert_int_eq(store_fixture_sum(&fixture), 1);
        store_fixture_end(&fixture);
}
END_TEST

START_TEST(unreferenced_file_is_kept_for_a_day)
{
        fixture.options.removed_grace_ms = 3600000;
        store_fixture_begin(&fixture);
        store_fixture_append(&fixture, 0, 0x1000);
        store_fixture_flush(&fixture);
        fixture.store->logs.opened_ms -= INT64_C(2) * 86400 * 1000;
        age_file(DAY "/new.parquet", 7200);
        age_file(DAY "/old.parquet", 90000);
        age_file(DAY "/.tmp-old-123456", 90000);
        maintain();
        ck_assert(contains_file(DAY "/new.parquet"));
        ck_assert(!contains_file(DAY "/old.parquet"));
        ck_assert(!contains_file(DAY "/.tmp-old-123456"));
        store_fixture_reopen(&fixture); /* no earlier writer is still active */
        ck_assert(!contains_file(DAY "/new.parquet"));
        ck_assert(contains_file(PART));
        store_fixture_end(&fixture);
}
END_TEST

/* Like a command beside a service whose grace period it does not know. */
START_TEST(store_without_threads_deletes_only_with_given_grace_period)
{
        begin_with_removed_stacks(1);
        age_file(DAY "/old.parquet", 90 * 86400);
        fixture.options.removed_grace_ms = 0;
        store_fixture_reopen(&fixture);
        ck_assert(contains_file(DAY "/old.parquet"));
        fixture.options.removed_grace_ms = 1;
        while (contains_file(PART)) /* a millisecond */
                store_fixture_reopen(&fixture);
        ck_assert(!contains_file(DAY "/old.parquet"));
        store_fixture_end(&fixture);
}
END_TEST

START_TEST(long_grace_period_applies_to_orphans)
{
        fixture.options.removed_grace_ms = 7 * 86400000ULL;
        store_fixture_begin(&fixture);
        age_file("tables/locations/old.parquet", 6 * 86400);
        age_file("tables/locations/older.parquet", 8 * 86400);
        store_fixture_reopen(&fixture);
        ck_assert(contains_file("tables/locations/old.parquet"));
        ck_assert(!contains_file("tables/locations/older.parquet"));
        store_fixture_end(&fixture);
}
END_TEST

START_TEST(old_commits_are_deleted_once_two_checkpoints_cover_them)
{
        char name[128];
        struct error err;

        fixture.options.removed_grace_ms = 3600000;
        store_fixture_begin(&fixture);
        for (unsigned i = 0; i < 4; i++) { /* versions 1 to 4 of samples, 1 of locations and stacks */
                store_fixture_append(&fixture, i, 0x1000);
                store_fixture_flush(&fixture);
                if (i % 2)
                        check_ok(delta_checkpoint(fixture.store->logs.logs[TABLE_SAMPLES], &err), &err);
        }
        maintain();
        ck_assert(contains_file("tables/samples/_delta_log/00000000000000000000.json"));
        for (int i = 0; i <= 4; i++) {
                snprintf(name, sizeof name, "tables/samples/_delta_log/%020d.json", i);
                age_file(name, 86400 + 3700);
        }
        fixture.store->next_listing_ns = 0;
        maintain();
        ck_assert(!contains_file("tables/samples/_delta_log/00000000000000000000.json"));
        ck_assert(!contains_file("tables/samples/_delta_log/00000000000000000001.json"));
        ck_assert(contains_file("tables/samples/_delta_log/00000000000000000002.json"));
        ck_assert(contains_file("tables/samples/_delta_log/00000000000000000002.checkpoint.parquet"));
        ck_assert(contains_file("tables/stacks/_delta_log/00000000000000000000.json"));
        store_fixture_reopen(&fixture);
        ck_assert_int_eq(store_fixture_sum(&fixture), 4);
        store_fixture_end(&fixture);
}
END_TEST

/* ---- wrong clocks ---- */

static void maintain_after(int64_t seconds)
{
        monotonic_step_s = seconds;
        maintain();
        monotonic_step_s = 0;
}

START_TEST(folders_are_listed_hourly_after_clock_was_set_back)
{
        wall_step_s = 10 * 365 * 86400;
        store_fixture_begin(&fixture);
        maintain();
        wall_step_s = 0;
        age_file("tables/locations/old.parquet", 90000);
        maintain();
        ck_assert(contains_file("tables/locations/old.parquet"));
        maintain_after(3600);
        ck_assert(!contains_file("tables/locations/old.parquet"));
        store_fixture_end(&fixture);
}
END_TEST

START_TEST(file_with_future_removal_time_is_kept_for_grace_period_from_now)
{
        static const char commit[] = "{\"remove\":{\"path\":\"date=2024-10-04/"
                                     "part-00000000000000000001-00000000000000000001.parquet\","
                                     "\"deletionTimestamp\":4102444800000,\"dataChange\":true}}\n";
        _cleanup_free_ char *next = NULL;

        store_fixture_begin(&fixture);
        store_fixture_append(&fixture, 0, 0x1000);
        store_fixture_flush(&fixture);
        next = store_fixture_path(&fixture, "tables/stacks/_delta_log/00000000000000000002.json");
        ck_assert_int_eq(file_write_durable(next, commit, strlen(commit), NULL), ST_OK);
        store_fixture_reopen(&fixture);
        maintain();
        maintain_after(3500); /* of an hour */
        ck_assert(contains_file(PART));
        maintain_after(3601);
        ck_assert(!contains_file(PART));
        store_fixture_end(&fixture);
}
END_TEST

/* ---- after failures ---- */

static void move_in_store(const char *from, const char *to)
{
        _cleanup_free_ char *old = store_fixture_path(&fixture, from), *new = store_fixture_path(&fixture, to);

        ck_assert_int_eq(rename(old, new), 0);
}

/* Without the log of samples commits to it fail. */
#define SAMPLES_LOG "tables/samples/_delta_log"

static void check_cleaned_after_failure(enum status wanted)
{
        struct error err = { 0 };

        while (contains_file(PART)) /* a millisecond, of the grace period */
                ck_assert_int_eq(store_maintain(fixture.store, &err), wanted);
        ck_assert_ptr_nonnull(strstr(err.text, "samples/_delta_log"));
}

START_TEST(removed_files_are_deleted_when_expiry_fails)
{
        struct test_profile t;
        struct error err;
        uint32_t leaf;

        begin_with_removed_stacks(1);
        test_profile_init(&t, STORE_FIXTURE_ID, "/bin/x");
        leaf = test_location(&t, 0x1000);
        test_sample(&t, STORE_FIXTURE_T0 + 9 * STORE_FIXTURE_DAY_NS, 1, &leaf, 1, NULL);
        check_ok(profile_store_append(fixture.store, &t.p, store_fixture_batch_id(1), NULL, &err), &err);
        test_profile_deinit(&t);
        store_fixture_flush(&fixture);
        fixture.store->limits->limits.age_s = 2 * 86400; /* the samples of T0 */
        move_in_store(SAMPLES_LOG, "away");
        check_cleaned_after_failure(ST_OS);
        move_in_store("away", SAMPLES_LOG);
        ck_assert_int_eq(store_fixture_sum(&fixture), 2);
        maintain();
        ck_assert_int_eq(store_fixture_sum(&fixture), 1);
        store_fixture_end(&fixture);
}
END_TEST

START_TEST(removed_files_are_deleted_when_table_properties_cannot_be_set)
{
        const struct delta_retention other = { 99, 99 };
        struct error err;

        begin_with_removed_stacks(1);
        check_ok(delta_table_set_retention(fixture.store->logs.logs[TABLE_SAMPLES], &other, &err), &err);
        move_in_store(SAMPLES_LOG, "away");
        check_cleaned_after_failure(ST_OS);
        move_in_store("away", SAMPLES_LOG);
        maintain();
        store_fixture_end(&fixture);
}
END_TEST

START_TEST(removed_files_are_deleted_when_a_log_is_unreadable)
{
        _cleanup_free_ char *next = NULL;

        begin_with_removed_stacks(1);
        next = store_fixture_path(&fixture, SAMPLES_LOG "/00000000000000000002.json");
        ck_assert_int_eq(file_write_durable(next, "{", 1, NULL), ST_OK);
        fixture.store->behind = true;
        check_cleaned_after_failure(ST_BAD_DATA);
        ck_assert_int_eq(unlink(next), 0);
        maintain();
        store_fixture_end(&fixture);
}
END_TEST

/* ---- without the role ---- */

static bool is_unmaintained(const char *text)
{
        struct profile_store_health h;

        monotonic_step_s += 301;
        store_check_maintained(fixture.store);
        profile_store_get_health(fixture.store, &h);
        ck_assert_msg(!h.unmaintained_since || strstr(h.unmaintained, text), "%s", h.unmaintained);
        return h.unmaintained_since;
}

#define LEASE "tables/leases/maintenance/00000000000000000001"

START_TEST(node_notices_that_no_node_maintains_the_tables)
{
        struct store_lease other = { .name = "maintenance" };
        struct error err;

        fixture = (struct store_fixture){
                .options = { .flush_interval_ms = UINT64_MAX, .is_shared = true, .has_no_maintenance = true }
        };
        store_fixture_begin(&fixture);
        ck_assert(is_unmaintained("no node has ever maintained the tables"));
        check_ok(store_lease_hold(&other, fixture.store->storage, "0123456789abcdef", 60000, &err), &err);
        ck_assert(!is_unmaintained(""));
        age_file(LEASE, 290); /* a node may be replaced */
        ck_assert(!is_unmaintained(""));
        age_file(LEASE, 310);
        ck_assert(is_unmaintained("no node maintains the tables since 31"));
        other.renew_ns = 0;
        check_ok(store_lease_hold(&other, fixture.store->storage, "0123456789abcdef", 60000, &err), &err);
        ck_assert(!is_unmaintained(""));
        store_fixture_end(&fixture);
        monotonic_step_s = 0;
}
END_TEST

START_TEST(one_node_fetches_for_all)
{
        struct store_lease other = { .name = "fetches" };
        struct error err;

        fixture = (struct store_fixture){ .options = { .flush_interval_ms = UINT64_MAX, .is_shared = true } };
        store_fixture_begin(&fixture);
        ck_assert(profile_store_leads_fetches(fixture.store));
        profile_store_leave_fetches(fixture.store);
        check_ok(store_lease_hold(&other, fixture.store->storage, "0123456789abcdef", 60000, &err), &err);
        ck_assert_int_eq(other.epoch, 2);
        ck_assert(!profile_store_leads_fetches(fixture.store)); /* it looks later */
        monotonic_step_s += 21;
        ck_assert(!profile_store_leads_fetches(fixture.store));
        age_file("tables/leases/fetches/00000000000000000002", 61);
        ck_assert(!profile_store_leads_fetches(fixture.store));
        monotonic_step_s += 21;
        ck_assert(profile_store_leads_fetches(fixture.store));
        store_fixture_end(&fixture);
        monotonic_step_s = 0;
}
END_TEST

START_TEST(node_without_others_fetches)
{
        fixture = (struct store_fixture){ .options = { .flush_interval_ms = UINT64_MAX } };
        store_fixture_begin(&fixture);
        profile_store_leave_fetches(fixture.store);
        ck_assert(profile_store_leads_fetches(fixture.store));
        store_fixture_end(&fixture);
}
END_TEST

TEST_SUITE("store maintenance", old_removed_file_is_kept_for_grace_period,
           removed_file_and_empty_folder_are_deleted_after_grace_period, unreferenced_file_is_kept_for_a_day,
           store_without_threads_deletes_only_with_given_grace_period, long_grace_period_applies_to_orphans,
           old_commits_are_deleted_once_two_checkpoints_cover_them, removed_files_are_deleted_when_expiry_fails,
           removed_files_are_deleted_when_table_properties_cannot_be_set,
           removed_files_are_deleted_when_a_log_is_unreadable, folders_are_listed_hourly_after_clock_was_set_back,
           file_with_future_removal_time_is_kept_for_grace_period_from_now,
           node_notices_that_no_node_maintains_the_tables, one_node_fetches_for_all, node_without_others_fetches)
