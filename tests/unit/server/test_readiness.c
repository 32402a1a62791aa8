/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <pthread.h>
#include <string.h>

#include "common/clock.h"
#include "common/limits.h"
#include "server/core/readiness.h"
#include "storage/local_storage.h"
#include "tests/support/faulty_storage.h"
#include "tests/support/profiles.h"
#include "tests/support/suite.h"
#include "tests/support/temporary_dir.h"

#define SECOND INT64_C(1000000000)

static char dir[TEMPORARY_DIR_BYTES];
static struct profile_store *store;
static struct readiness *readiness;

/* watched: the free space; NULL: no thread that checks the clock. */
static void open_with(const char *watched)
{
        const struct profile_store_options o = { .size = sizeof o };

        temporary_dir_create(dir, "readiness");
        ck_assert_int_eq(profile_store_open(dir, &o, &store, NULL), ST_OK);
        ck_assert_int_eq(readiness_start(watched, &(struct readiness_store){ .store = store }, 1, &readiness, NULL),
                         ST_OK);
}

static void open_all(void)
{
        open_with(dir);
}

static void close_all(void)
{
        char command[64];

        readiness_stop(readiness);
        profile_store_close(store);
        snprintf(command, sizeof command, "rm -rf %s", dir);
        ck_assert_int_eq(system(command), 0);
}

/* Check readiness and that the conditions contain the text; "": no conditions. */
static void expect(bool ready, const char *text)
{
        _cleanup_buf_ struct buf lines;

        buf_init(&lines, KiB(16));
        ck_assert_int_eq(readiness_write(readiness, &lines), ready);
        if (*text)
                ck_assert_msg(strstr(buf_cstr(&lines), text), "want '%s' in '%s'", text, buf_cstr(&lines));
        else
                ck_assert_str_eq(buf_cstr(&lines), "");
}

START_TEST(a_healthy_store_is_ready_without_conditions)
{
        struct profile_store_stat stat = { .sample_rows = 7 };

        open_all();
        readiness_get_store_stats(readiness, &stat);
        ck_assert_uint_eq(stat.sample_rows, 0);
        expect(true, "");
        close_all();
}
END_TEST

START_TEST(service_is_ready_with_warnings_but_not_with_errors)
{
        struct error err;

        open_all();
        error_set(&err, ST_TOO_BIG, "the index is\nfull");
        readiness_report(readiness, READY_INDEX_FAILING, &err);
        expect(true, "warning index_failing: the index is?full; samples are accepted");
        readiness_report(readiness, READY_FLUSH_FAILING, &err); /* which the store reports more precisely */
        expect(true, "index_failing");
        readiness_report(readiness, READY_INDEX_FAILING, NULL);
        expect(true, "");
        close_all();
}
END_TEST

static void append_batch(struct profile_store *s, uint32_t number)
{
        struct test_profile t;
        uint32_t leaf;

        test_profile_init(&t, "00112233445566778899aabbccddeeff00112233", "/bin/x");
        leaf = test_location(&t, 0x1000);
        test_sample(&t, INT64_C(1728000000000000000), 1, &leaf, 1, NULL);
        ck_assert_int_eq(profile_store_append(s, &t.p, hash_bytes128(&number, sizeof number), NULL, NULL), ST_OK);
        test_profile_deinit(&t);
}

/* Make flushes of this store fail: its tables are replaced by a file. */
static void break_store(struct profile_store *s, const char *path, uint32_t number)
{
        struct error err;
        char command[128];

        append_batch(s, number);
        snprintf(command, sizeof command, "rm -rf %s/tables && touch %s/tables", path, path);
        ck_assert_int_eq(system(command), 0);
        ck_assert_int_ne(profile_store_flush(s, &err), ST_OK);
}

START_TEST(error_of_some_tenants_is_a_warning_until_all_have_it)
{
        const struct profile_store_options o = { .size = sizeof o, .flush_interval_ms = 1000000 };
        struct readiness_store stores[2] = { { .tenant = "a" }, { .tenant = "b" } };
        char paths[2][64];

        temporary_dir_create(dir, "readiness");
        for (int i = 0; i < 2; i++) {
                snprintf(paths[i], sizeof paths[i], "%s/%s", dir, stores[i].tenant);
                ck_assert_int_eq(profile_store_open(paths[i], &o, &stores[i].store, NULL), ST_OK);
        }
        ck_assert_int_eq(readiness_start(NULL, stores, 2, &readiness, NULL), ST_OK);
        expect(true, "");
        break_store(stores[1].store, paths[1], 1);
        expect(true, "warning flush_failing: tenant b: cannot flush");
        break_store(stores[0].store, paths[0], 2);
        expect(false, "error flush_failing: tenant b: cannot flush");
        readiness_stop(readiness);
        for (int i = 0; i < 2; i++)
                profile_store_close(stores[i].store);
        temporary_dir_remove(dir);
}
END_TEST

static pthread_mutex_t hanging_reads = PTHREAD_MUTEX_INITIALIZER;

static void wait_in_reads(struct faulty_storage *f, const char *call, const char *key)
{
        (void)f;
        (void)key;
        if (strcmp(call, "map") != 0)
                return;
        pthread_mutex_lock(&hanging_reads);
        pthread_mutex_unlock(&hanging_reads);
}

START_TEST(queue_is_current_while_reads_of_tables_hang)
{
        struct profile_store_options o = { .size = sizeof o, .flush_interval_ms = 1000000 };
        struct profile_store_stat stat = { .sample_rows = 7 };
        struct faulty_storage *f;
        struct storage *inner;

        temporary_dir_create(dir, "readiness");
        ck_assert_int_eq(local_storage_open(dir, &inner, NULL), ST_OK);
        f = faulty_storage_create(inner);
        o.tables = &f->storage;
        ck_assert_int_eq(profile_store_open(dir, &o, &store, NULL), ST_OK);
        append_batch(store, 1);
        ck_assert_int_eq(profile_store_flush(store, NULL), ST_OK);
        f->before = wait_in_reads;
        pthread_mutex_lock(&hanging_reads);
        ck_assert_int_eq(readiness_start(NULL, &(struct readiness_store){ .store = store }, 1, &readiness, NULL),
                         ST_OK);
        append_batch(store, 2);
        readiness_get_store_stats(readiness, &stat);
        ck_assert_uint_eq(stat.queued_batches, 1);
        ck_assert_uint_gt(stat.queued_bytes, 0);
        ck_assert_uint_eq(stat.sample_rows, 7); /* the tables have not been read */
        pthread_mutex_unlock(&hanging_reads);
        readiness_stop(readiness);
        profile_store_close(store);
        storage_close(&f->storage);
        temporary_dir_remove(dir);
}
END_TEST

START_TEST(clock_step_is_reported_for_an_hour)
{
        int64_t mono = monotonic_ns();

        open_with(NULL);
        readiness_watch_clock(readiness, 0, 0, mono);
        expect(true, "");
        readiness_watch_clock(readiness, 1, 0, mono + 2 * SECOND);
        expect(true, "warning clock_jump: the clock was set within the last hour, 1 time");
        readiness_watch_clock(readiness, 1, 0, mono + 3601 * SECOND);
        expect(true, "warning clock_jump: ");
        readiness_watch_clock(readiness, 1, 0, mono + 3603 * SECOND);
        expect(true, "");
        readiness_watch_clock(readiness, 2, 86400, mono + 3604 * SECOND);
        expect(true, "warning clock_jump: the clock stepped forward by 86400 s, which does not count");
        readiness_watch_clock(readiness, 2, 86400, mono + 9000 * SECOND);
        expect(true, "warning clock_jump: ");
        readiness_watch_clock(readiness, 2, 0, mono + 9001 * SECOND);
        expect(true, "");
        close_all();
}
END_TEST

TEST_SUITE("readiness", a_healthy_store_is_ready_without_conditions, service_is_ready_with_warnings_but_not_with_errors,
           error_of_some_tenants_is_a_warning_until_all_have_it, queue_is_current_while_reads_of_tables_hang,
           clock_step_is_reported_for_an_hour)
