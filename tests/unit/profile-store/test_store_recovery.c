/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store that was interrupted or damaged: a flush that fails at each step, an unreadable payload in the queue,
 * unreferenced files.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "common/files/file.h"
#include "profile-store/profile_store.h"
#include "profile-store/queue/raw_queue.h"
#include "profile-store/scan.h"
#include "tests/support/store_fixture.h"
#include "tests/support/suite.h"

static struct store_fixture fixture;

/* Every stack once, with the sum of its samples. */
static void expect(size_t stacks, int64_t total)
{
        const struct scan_filter all = { 0, INT64_MAX, NULL, NULL, 0 };
        struct store_scan *scan;
        struct stack_sums sums;
        const struct scan_stacks *resolved;
        struct error err;
        int64_t sum = 0;

        check_ok(store_scan_begin(fixture.store, &scan, &err), &err);
        check_ok(store_scan_sum(scan, &all, &sums, &err), &err);
        check_ok(store_scan_resolve(scan, &sums, &resolved, &err), &err);
        ck_assert_uint_eq(sums.count, stacks);
        for (size_t i = 0; i < sums.count; i++) {
                sum += sums.items[i].value;
                ck_assert_uint_eq(resolved->first[i + 1] - resolved->first[i], 1);
                ck_assert_str_eq(resolved->locations[resolved->indexes[resolved->first[i]]].mapping, "/bin/x");
        }
        ck_assert_int_eq(sum, total);
        stack_sums_deinit(&sums);
        store_scan_end(scan);
}

#define FIRST_PART "part-00000000000000000001-00000000000000000002.parquet"

/* A folder in place of a part makes writing its table fail. */
static void fail_at(const char *part, bool restart)
{
        _cleanup_free_ char *path = NULL, *inside = NULL;
        struct profile_store_stat stat;
        struct error err;

        store_fixture_begin(&fixture);
        path = store_fixture_path(&fixture, part);
        inside = path_join(path, "something");
        store_fixture_append(&fixture, 0, 0x1000);
        store_fixture_append(&fixture, 1, 0x2000);
        check_ok(file_make_dirs(inside, &err), &err);
        ck_assert_int_eq(profile_store_flush(fixture.store, &err), ST_OS);
        expect(2, 2);
        if (restart)
                store_fixture_reopen(&fixture);
        store_fixture_append(&fixture, 2, 0x3000);
        expect(3, 3);
        ck_assert_int_eq(file_remove_tree(path, NULL), ST_OK);
        store_fixture_flush(&fixture);
        expect(3, 3);
        check_ok(profile_store_stat(fixture.store, &stat, &err), &err);
        ck_assert_uint_eq(stat.sample_rows, 3);
        ck_assert_uint_eq(stat.stack_rows, 3);
        ck_assert_uint_eq(stat.location_rows, 3);
        ck_assert_uint_eq(stat.queued_batches, 0);
        store_fixture_reopen(&fixture);
        expect(3, 3);
        store_fixture_end(&fixture);
}

START_TEST(flush_that_fails_at_any_table_is_repeated_without_duplicates)
{
        for (int restart = 0; restart < 2; restart++) {
                fail_at("tables/locations/" FIRST_PART, restart);
                fail_at("tables/stacks/date=2024-10-04/" FIRST_PART, restart);
                fail_at("tables/samples/date=2024-10-04/" FIRST_PART, restart);
        }
}
END_TEST

static enum status ignore(void *context, const struct raw_record *record, struct error *err)
{
        (void)context;
        (void)record;
        (void)err;
        return ST_OK;
}

START_TEST(unreadable_batch_is_quarantined_and_others_flushed)
{
        _cleanup_free_ char *queue = NULL, *aside = NULL;
        struct raw_record junk = { .payload = (const uint8_t *)"not a batch", .payload_size = 11 };
        const struct raw_queue_options options = { .replay = ignore };
        struct raw_queue *q;
        struct error err;

        store_fixture_begin(&fixture);
        store_fixture_append(&fixture, 0, 0x1000);
        profile_store_close(fixture.store);
        queue = store_fixture_path(&fixture, "queue");
        check_ok(raw_queue_open(queue, &options, &q, NULL, &err), &err);
        check_ok(raw_queue_write(q, &junk, &err), &err);
        check_ok(raw_queue_sync(q, junk.position, &err), &err);
        raw_queue_close(q);
        store_fixture_open(&fixture);
        store_fixture_append(&fixture, 1, 0x2000);
        expect(2, 2);
        aside = store_fixture_path(&fixture,
                                   "queue/quarantine/00000000000000000002-00000000000000000000000000000000.batch");
        ck_assert_int_eq(access(aside, F_OK), 0);
        store_fixture_flush(&fixture);
        store_fixture_reopen(&fixture);
        expect(2, 2);
        store_fixture_end(&fixture);
}
END_TEST

static void make_old_file(const char *path)
{
        const struct timespec hours_ago[2] = { { .tv_sec = time(NULL) - 7200 }, { .tv_sec = time(NULL) - 7200 } };

        if (access(path, F_OK) < 0)
                ck_assert_int_eq(file_write_durable(path, "x", 1, NULL), ST_OK);
        ck_assert_int_eq(utimensat(AT_FDCWD, path, hours_ago, 0), 0);
}

START_TEST(unreferenced_files_are_deleted_after_grace_period)
{
        _cleanup_free_ char *live = NULL, *old = NULL, *fresh = NULL, *foreign = NULL;

        fixture.options.removed_grace_ms = 3600000;
        store_fixture_begin(&fixture);
        store_fixture_append(&fixture, 0, 0x1000);
        store_fixture_flush(&fixture);
        live = store_fixture_path(
                &fixture, "tables/samples/date=2024-10-04/part-00000000000000000001-00000000000000000001.parquet");
        old = store_fixture_path(
                &fixture, "tables/samples/date=2024-10-04/part-00000000000000000001-00000000000000000007.parquet");
        fresh = store_fixture_path(&fixture, "tables/locations/resymbolized-1.parquet");
        foreign = store_fixture_path(&fixture, "tables/locations/notes.txt");
        ck_assert_int_eq(access(live, F_OK), 0);
        make_old_file(live);
        make_old_file(old);
        make_old_file(foreign);
        ck_assert_int_eq(file_write_durable(fresh, "x", 1, NULL), ST_OK);
        store_fixture_reopen(&fixture);
        ck_assert_int_eq(access(live, F_OK), 0);
        ck_assert_int_ne(access(old, F_OK), 0);
        ck_assert_int_eq(access(fresh, F_OK), 0);
        ck_assert_int_eq(access(foreign, F_OK), 0);
        expect(1, 1);
        store_fixture_end(&fixture);
}
END_TEST

static void check_scan_fails(enum status wanted)
{
        const struct scan_filter all = { 0, INT64_MAX, NULL, NULL, 0 };
        struct store_scan *scan;
        struct stack_sums sums;
        struct error err;

        check_ok(store_scan_begin(fixture.store, &scan, &err), &err);
        ck_assert_int_eq(store_scan_sum(scan, &all, &sums, &err), wanted);
        ck_assert_ptr_nonnull(strstr(err.text, "part-0000"));
        store_scan_end(scan);
}

START_TEST(damaged_or_missing_part_is_reported_by_name)
{
        _cleanup_free_ char *part = NULL;

        store_fixture_begin(&fixture);
        store_fixture_append(&fixture, 0, 0x1000);
        store_fixture_flush(&fixture);
        part = store_fixture_path(
                &fixture, "tables/samples/date=2024-10-04/part-00000000000000000001-00000000000000000001.parquet");
        ck_assert_int_eq(truncate(part, 100), 0);
        check_scan_fails(ST_BAD_DATA);
        ck_assert_int_eq(unlink(part), 0);
        check_scan_fails(ST_OS); /* not that nothing was found */
        store_fixture_end(&fixture);
}
END_TEST

#define PART_OF(n) "part-0000000000000000000" n "-0000000000000000000" n ".parquet"
#define DAY "date=2024-10-04/"

static void truncate_in_store(const char *name)
{
        _cleanup_free_ char *path = store_fixture_path(&fixture, name);

        ck_assert_int_eq(truncate(path, 100), 0);
}

static void unlink_in_store(const char *name)
{
        _cleanup_free_ char *path = store_fixture_path(&fixture, name);

        ck_assert_int_eq(unlink(path), 0);
}

static bool contains_file(const char *name)
{
        _cleanup_free_ char *path = store_fixture_path(&fixture, name);

        return access(path, F_OK) == 0;
}

static void check_rows_are_written_again(void (*spoil)(const char *name))
{
        store_fixture_begin(&fixture);
        store_fixture_append(&fixture, 0, 0x1000);
        store_fixture_flush(&fixture);
        spoil("tables/locations/" PART_OF("1"));
        spoil("tables/stacks/" DAY PART_OF("1"));
        store_fixture_reopen(&fixture);
        ck_assert_uint_eq(store_fixture_stat(&fixture).unresolved_locations, 1);
        store_fixture_append(&fixture, 1, 0x1000);
        store_fixture_flush(&fixture);
        ck_assert(contains_file("tables/locations/" PART_OF("2")));
        ck_assert(contains_file("tables/stacks/" DAY PART_OF("2")));
        ck_assert(contains_file("tables/samples/" DAY PART_OF("2")));
        store_fixture_reopen(&fixture);
        store_fixture_append(&fixture, 2, 0x1000);
        store_fixture_flush(&fixture);
        ck_assert(!contains_file("tables/locations/" PART_OF("3")));
        ck_assert(!contains_file("tables/stacks/" DAY PART_OF("3")));
        store_fixture_end(&fixture);
}

START_TEST(flush_rewrites_rows_of_damaged_parts)
{
        check_rows_are_written_again(truncate_in_store);
}
END_TEST

START_TEST(flush_rewrites_rows_of_missing_parts)
{
        check_rows_are_written_again(unlink_in_store);
}
END_TEST

static void count_missing_ids(void *context, const struct wanted_object *objects, size_t count)
{
        (void)objects;
        *(size_t *)context += count;
}

START_TEST(missing_debuginfo_is_reported_although_flush_fails_after_locations)
{
        _cleanup_free_ char *log = NULL, *moved = NULL;
        size_t told = 0;
        struct error err;

        fixture.options.missing_debuginfo = count_missing_ids;
        fixture.options.missing_context = &told;
        store_fixture_begin(&fixture);
        store_fixture_append(&fixture, 0, 0x1000);
        log = store_fixture_path(&fixture, "tables/stacks/_delta_log");
        moved = store_fixture_path(&fixture, "tables/stacks/moved");
        ck_assert_int_eq(rename(log, moved), 0);
        ck_assert_int_eq(profile_store_flush(fixture.store, &err), ST_OS);
        ck_assert_int_eq(rename(moved, log), 0);
        store_fixture_flush(&fixture);
        ck_assert_uint_eq(told, 1);
        store_fixture_end(&fixture);
}
END_TEST

TEST_SUITE("profile store recovery", flush_that_fails_at_any_table_is_repeated_without_duplicates,
           unreadable_batch_is_quarantined_and_others_flushed, unreferenced_files_are_deleted_after_grace_period,
           damaged_or_missing_part_is_reported_by_name, flush_rewrites_rows_of_damaged_parts,
           flush_rewrites_rows_of_missing_parts, missing_debuginfo_is_reported_although_flush_fails_after_locations)
