/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store that was interrupted or damaged: each step of a flush failing, a
 * queue with a payload that cannot be read, files that nobody names.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "common/file.h"
#include "profile-store/raw_queue.h"
#include "profile-store/scan.h"
#include "profile-store/store.h"
#include "tests/support/profiles.h"
#include "tests/support/suite.h"

#define ID "00112233445566778899aabbccddeeff00112233"
#define T0 (INT64_C(20000) * INT64_C(86400000000000)) /* 2024-10-04 */

static char dir[64];
static struct profile_store *store;

static void ok(enum status st, const struct error *err)
{
        ck_assert_msg(st == ST_OK, "%s", err->text);
}

static void open_store(void)
{
        const struct profile_store_options options = { .size = sizeof options, .flush_interval_ms = UINT64_MAX };
        struct error err;

        ok(profile_store_open(dir, &options, &store, &err), &err);
}

static void begin(void)
{
        snprintf(dir, sizeof dir, "/tmp/cairn-recovery-XXXXXX");
        ck_assert_ptr_nonnull(mkdtemp(dir));
        open_store();
}

static void reopen(void)
{
        profile_store_close(store);
        open_store();
}

static void end(void)
{
        profile_store_close(store);
        ck_assert_int_eq(file_remove_tree(dir, NULL), ST_OK);
}

static void append(const char *batch, uint64_t address)
{
        struct test_profile t;
        struct error err;
        uint32_t leaf;

        test_profile_init(&t, ID, "/bin/x");
        leaf = test_location(&t, address);
        test_sample(&t, T0, 1, &leaf, 1, NULL);
        ok(profile_store_append(store, &t.p, hash128(batch, strlen(batch)), NULL, &err), &err);
        test_profile_deinit(&t);
}

/* Every stack once, with the sum of its samples. */
static void expect(size_t stacks, int64_t total)
{
        const struct scan_filter all = { 0, INT64_MAX, NULL, NULL, 0 };
        struct store_scan *scan;
        struct stack_sums sums;
        const struct scan_stacks *resolved;
        struct error err;
        int64_t sum = 0;

        ok(store_scan_begin(store, &scan, &err), &err);
        ok(store_scan_sum(scan, &all, &sums, &err), &err);
        ok(store_scan_resolve(scan, &sums, &resolved, &err), &err);
        ck_assert_uint_eq(sums.count, stacks);
        for (size_t i = 0; i < sums.count; i++) {
                sum += sums.items[i].value;
                ck_assert_uint_eq(resolved->first[i + 1] - resolved->first[i], 1);
                ck_assert_str_eq(resolved->locations[resolved->indexes[resolved->first[i]]].mapping, "/bin/x");
        }
        ck_assert_int_eq(sum, total);
        free(sums.items);
        store_scan_end(scan);
}

static char *in_store(const char *name)
{
        return path_join(dir, name);
}

#define FIRST_PART "part-00000000000000000001-00000000000000000002.parquet"

/* A folder lies where a part should go, so that its table's step fails. */
static void fail_at(const char *part, bool restart)
{
        _cleanup_free_ char *path = NULL, *inside = NULL;
        struct profile_store_stat stat;
        struct error err;

        begin();
        path = in_store(part);
        inside = path_join(path, "something");
        append("a", 0x1000);
        append("b", 0x2000);
        ok(file_make_dirs(inside, &err), &err);
        ck_assert_int_eq(profile_store_flush(store, &err), ST_OS);
        expect(2, 2);
        if (restart)
                reopen();
        append("c", 0x3000);
        expect(3, 3);
        ck_assert_int_eq(file_remove_tree(path, NULL), ST_OK);
        ok(profile_store_flush(store, &err), &err);
        expect(3, 3);
        ok(profile_store_stat(store, &stat, &err), &err);
        ck_assert_uint_eq(stat.sample_rows, 3);
        ck_assert_uint_eq(stat.stack_rows, 3);
        ck_assert_uint_eq(stat.location_rows, 3);
        ck_assert_uint_eq(stat.queued_batches, 0);
        reopen();
        expect(3, 3);
        end();
}

START_TEST(a_flush_that_fails_at_any_table_is_repeated_without_doubles)
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

START_TEST(a_batch_that_cannot_be_read_is_set_aside_and_the_others_live)
{
        _cleanup_free_ char *queue = NULL, *aside = NULL;
        struct raw_record junk = { .payload = (const uint8_t *)"not a batch", .payload_size = 11 };
        struct raw_queue *q;
        struct error err;

        begin();
        append("a", 0x1000);
        profile_store_close(store);
        queue = in_store("queue");
        ok(raw_queue_open(queue, false, 0, ignore, NULL, &q, NULL, &err), &err);
        ok(raw_queue_write(q, &junk, &err), &err);
        ok(raw_queue_sync(q, junk.position, &err), &err);
        raw_queue_close(q);
        open_store();
        append("b", 0x2000);
        expect(2, 2);
        aside = in_store("queue/quarantine/00000000000000000002-00000000000000000000000000000000.batch");
        ck_assert_int_eq(access(aside, F_OK), 0);
        ok(profile_store_flush(store, &err), &err);
        reopen();
        expect(2, 2);
        end();
}
END_TEST

static void make_old_file(const char *path)
{
        const struct timespec hours_ago[2] = { { .tv_sec = time(NULL) - 7200 }, { .tv_sec = time(NULL) - 7200 } };

        if (access(path, F_OK) < 0)
                ck_assert_int_eq(file_write_durable(path, "x", 1, NULL), ST_OK);
        ck_assert_int_eq(utimensat(AT_FDCWD, path, hours_ago, 0), 0);
}

START_TEST(files_that_no_log_names_go_after_the_grace_and_live_ones_stay)
{
        _cleanup_free_ char *live = NULL, *old = NULL, *fresh = NULL, *foreign = NULL;
        struct error err;

        begin();
        append("a", 0x1000);
        ok(profile_store_flush(store, &err), &err);
        live = in_store("tables/samples/date=2024-10-04/part-00000000000000000001-00000000000000000001.parquet");
        old = in_store("tables/samples/date=2024-10-04/part-00000000000000000001-00000000000000000007.parquet");
        fresh = in_store("tables/locations/heal-1.parquet");
        foreign = in_store("tables/locations/notes.txt");
        ck_assert_int_eq(access(live, F_OK), 0);
        make_old_file(live);
        make_old_file(old);
        make_old_file(foreign);
        ck_assert_int_eq(file_write_durable(fresh, "x", 1, NULL), ST_OK);
        reopen();
        ck_assert_int_eq(access(live, F_OK), 0);
        ck_assert_int_ne(access(old, F_OK), 0);
        ck_assert_int_eq(access(fresh, F_OK), 0);
        ck_assert_int_eq(access(foreign, F_OK), 0);
        expect(1, 1);
        end();
}
END_TEST

START_TEST(a_damaged_part_is_an_error_that_names_it)
{
        const struct scan_filter all = { 0, INT64_MAX, NULL, NULL, 0 };
        _cleanup_free_ char *part = NULL;
        struct store_scan *scan;
        struct stack_sums sums;
        struct error err;

        begin();
        append("a", 0x1000);
        ok(profile_store_flush(store, &err), &err);
        part = in_store("tables/samples/date=2024-10-04/part-00000000000000000001-00000000000000000001.parquet");
        ck_assert_int_eq(truncate(part, 100), 0);
        ok(store_scan_begin(store, &scan, &err), &err);
        ck_assert_int_eq(store_scan_sum(scan, &all, &sums, &err), ST_BAD_DATA);
        ck_assert_ptr_nonnull(strstr(err.text, "part-0000"));
        store_scan_end(scan);
        end();
}
END_TEST

#define PART_OF(n) "part-0000000000000000000" n "-0000000000000000000" n ".parquet"
#define DAY "date=2024-10-04/"

static void truncate_in_store(const char *name)
{
        _cleanup_free_ char *path = in_store(name);

        ck_assert_int_eq(truncate(path, 100), 0);
}

static bool holds(const char *name)
{
        _cleanup_free_ char *path = in_store(name);

        return access(path, F_OK) == 0;
}

START_TEST(a_flush_passes_over_damaged_parts_and_writes_their_rows_again)
{
        struct error err;

        begin();
        append("a", 0x1000);
        ok(profile_store_flush(store, &err), &err);
        truncate_in_store("tables/locations/" PART_OF("1"));
        truncate_in_store("tables/stacks/" DAY PART_OF("1"));
        reopen();
        append("b", 0x1000);
        ok(profile_store_flush(store, &err), &err);
        ck_assert(holds("tables/locations/" PART_OF("2")));
        ck_assert(holds("tables/stacks/" DAY PART_OF("2")));
        ck_assert(holds("tables/samples/" DAY PART_OF("2")));
        reopen();
        append("c", 0x1000);
        ok(profile_store_flush(store, &err), &err);
        ck_assert(!holds("tables/locations/" PART_OF("3")));
        ck_assert(!holds("tables/stacks/" DAY PART_OF("3")));
        end();
}
END_TEST

TEST_SUITE("profile store recovery", a_flush_that_fails_at_any_table_is_repeated_without_doubles,
           a_batch_that_cannot_be_read_is_set_aside_and_the_others_live,
           files_that_no_log_names_go_after_the_grace_and_live_ones_stay, a_damaged_part_is_an_error_that_names_it,
           a_flush_passes_over_damaged_parts_and_writes_their_rows_again)
