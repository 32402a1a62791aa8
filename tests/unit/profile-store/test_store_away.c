/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store whose tables are in an object store that is away, also while the service starts. An hour is as many flushes
 * as are tried in one: nothing depends on the time itself.
 */
#include <glob.h>
#include <string.h>

#include "common/files/file.h"
#include "common/limits.h"
#include "profile-store/core/expiry.h"
#include "profile-store/core/profile_store_internal.h"
#include "profile-store/core/table_absence.h"
#include "profile-store/lifecycle/maintenance.h"
#include "profile-store/lifecycle/sample_retention.h"
#include "storage/local_storage.h"
#include "tests/support/faulty_storage.h"
#include "tests/support/profiles.h"
#include "tests/support/store_fixture.h"
#include "tests/support/temporary_dir.h"

#define FLUSHES_OF_AN_HOUR 60

static struct store_fixture fixture;
static struct faulty_storage *storage;

static void open_fixture(void)
{
        _cleanup_free_ char *tables = NULL;
        struct storage *inner = NULL;
        struct error err;

        temporary_dir_create(fixture.dir, "store-away");
        tables = store_fixture_path(&fixture, "tables");
        check_ok(local_storage_open(tables, &inner, &err), &err);
        storage = faulty_storage_create(inner);
        fixture.options = (struct profile_store_options){ .tables = &storage->storage,
                                                          .is_shared = true,
                                                          .when_away = TABLES_MAY_BE_AWAY };
        store_fixture_open(&fixture);
}

static void close_fixture(void)
{
        store_fixture_end(&fixture);
        storage_close(&storage->storage);
}

/* What is not closed properly is lost: the queue alone tells the next start what there is. */
static void restart(bool is_away)
{
        storage->is_cut = is_away;
        store_fixture_reopen(&fixture);
        ck_assert(profile_store_lacks_tables(fixture.store) == is_away);
}

static enum status try_flush(void)
{
        struct error err;

        return profile_store_flush(fixture.store, &err);
}

static bool is_duplicate(unsigned batch)
{
        struct test_profile t;
        struct error err;
        uint32_t leaf;
        bool ret;

        test_profile_init(&t, STORE_FIXTURE_ID, "/bin/x");
        leaf = test_location(&t, 0x1000);
        test_sample(&t, STORE_FIXTURE_T0, 1, &leaf, 1, NULL);
        check_ok(profile_store_append(fixture.store, &t.p, store_fixture_batch_id(batch), &ret, &err), &err);
        test_profile_deinit(&t);
        return ret;
}

START_TEST(hour_of_absence_loses_and_doubles_nothing)
{
        unsigned sent = 0;

        open_fixture();
        for (; sent < 5; sent++)
                store_fixture_append(&fixture, sent, 0x1000 + sent % 3);
        store_fixture_flush(&fixture);
        for (; sent < 8; sent++)
                store_fixture_append(&fixture, sent, 0x1000 + sent % 3);
        restart(true);
        ck_assert_int_eq(store_fixture_sum(&fixture), 3); /* what is queued */
        for (unsigned minute = 0; minute < FLUSHES_OF_AN_HOUR; minute++) {
                for (unsigned i = 0; i < 4; i++, sent++)
                        store_fixture_append(&fixture, sent, 0x1000 + sent % 7);
                ck_assert_int_eq(try_flush(), ST_OS);
                ck_assert(is_duplicate(2)); /* flushed before, sent again */
                ck_assert(is_duplicate(sent - 1));
                if (minute % 20 == 7)
                        restart(true);
        }
        ck_assert_int_eq(store_fixture_sum(&fixture), sent - 5);
        storage->is_cut = false;
        store_fixture_flush(&fixture);
        ck_assert(!profile_store_lacks_tables(fixture.store));
        ck_assert_int_eq(store_fixture_sum(&fixture), sent);
        ck_assert_uint_eq(store_fixture_stat(&fixture).queued_batches, 0);
        ck_assert(is_duplicate(sent / 2));
        restart(false);
        ck_assert_int_eq(store_fixture_sum(&fixture), sent);
        close_fixture();
}
END_TEST

START_TEST(positions_of_an_empty_queue_are_not_those_of_flushed_batches)
{
        open_fixture();
        for (unsigned i = 0; i < 5; i++)
                store_fixture_append(&fixture, i, 0x1000);
        store_fixture_flush(&fixture);
        restart(true);
        store_fixture_append(&fixture, 5, 0x2000);
        restart(false); /* killed before the storage was back */
        ck_assert_int_eq(store_fixture_sum(&fixture), 6);
        store_fixture_flush(&fixture);
        ck_assert_int_eq(store_fixture_sum(&fixture), 6);
        close_fixture();
}
END_TEST

static void list_segments(glob_t *ret)
{
        _cleanup_free_ char *pattern = store_fixture_path(&fixture, "queue/*.queue");

        ck_assert_int_eq(glob(pattern, 0, NULL, ret), 0);
}

/* A removal is not synced, so a power cut may undo the first one alone. */
START_TEST(released_segment_that_reappears_does_not_hide_new_batches)
{
        _cleanup_free_ char *first = NULL;
        _cleanup_buf_ struct buf content;
        struct error err;
        glob_t segments;

        open_fixture();
        store_fixture_append(&fixture, 0, 0x1000);
        list_segments(&segments);
        first = strdup(segments.gl_pathv[0]);
        globfree(&segments);
        buf_init(&content, MiB(1));
        check_ok(file_read(first, &content, &err), &err);
        store_fixture_flush(&fixture);
        for (unsigned i = 1; i < 9; i++)
                store_fixture_append(&fixture, i, 0x1000);
        store_fixture_flush(&fixture);
        profile_store_close(fixture.store);
        check_ok(file_write_durable(first, content.data, content.size, &err), &err);
        storage->is_cut = true;
        store_fixture_open(&fixture);
        store_fixture_append(&fixture, 9, 0x2000);
        restart(false);
        ck_assert_int_eq(store_fixture_sum(&fixture), 10);
        store_fixture_flush(&fixture);
        ck_assert_int_eq(store_fixture_sum(&fixture), 10);
        close_fixture();
}
END_TEST

START_TEST(work_on_absent_tables_is_refused)
{
        const struct sample_limits limits = { .age_s = 1 };
        const struct expiry_request expiry = { .limits = &limits };
        const struct resymbolize_request resymbolize = { 0 };
        struct resymbolize_result resymbolized;
        struct expiry removed = { 0 };
        struct error err;

        open_fixture();
        store_fixture_append(&fixture, 0, 0x1000);
        store_fixture_flush(&fixture);
        restart(true);
        storage->is_cut = false; /* it is back, and no flush has read the tables yet */
        ck_assert_int_eq(profile_store_compact(fixture.store, NULL, NULL, NULL, &err), ST_OS);
        ck_assert_ptr_nonnull(strstr(err.text, "the tables have not been read since the start: cannot "));
        ck_assert_int_eq(profile_store_expire(fixture.store, &expiry, &removed, &err), ST_OS);
        ck_assert_int_eq(profile_store_resymbolize(fixture.store, &resymbolize, &resymbolized, &err), ST_OS);
        check_ok(store_maintain(fixture.store, &err), &err);
        ck_assert_int_eq(store_fixture_sum(&fixture), 0);
        store_fixture_flush(&fixture);
        ck_assert_int_eq(store_fixture_sum(&fixture), 1);
        check_ok(profile_store_compact(fixture.store, NULL, NULL, NULL, &err), &err);
        close_fixture();
}
END_TEST

static unsigned checks;

static enum status refuse_once(void *context, struct storage *tables, struct error *err)
{
        struct storage_info info;

        (void)context;
        if (storage_stat(tables, "absent", &info, err) == ST_OS)
                return ST_OS;
        return ++checks == 1 ? error_set(err, ST_UNSUPPORTED, "no place for tables") : ST_OK;
}

START_TEST(storage_is_checked_before_it_is_used_when_it_is_back)
{
        open_fixture();
        fixture.options.check_tables = refuse_once;
        restart(true);
        store_fixture_append(&fixture, 0, 0x1000);
        ck_assert_int_eq(try_flush(), ST_OS);
        ck_assert_uint_eq(checks, 0);
        storage->is_cut = false;
        ck_assert_int_eq(try_flush(), ST_UNSUPPORTED);
        ck_assert(profile_store_lacks_tables(fixture.store));
        store_fixture_flush(&fixture);
        ck_assert_uint_eq(checks, 2);
        ck_assert_int_eq(store_fixture_sum(&fixture), 1);
        close_fixture();
}
END_TEST

START_TEST(full_queue_refuses_batches_until_the_storage_is_back)
{
        struct profile_store_health h;
        struct test_profile t;
        struct error err;
        unsigned sent = 0;
        uint32_t leaf;
        enum status st;

        open_fixture();
        fixture.options.max_queued_bytes = 40000;
        restart(true);
        do {
                test_profile_init(&t, STORE_FIXTURE_ID, "/bin/x");
                leaf = test_location(&t, 0x1000);
                test_sample(&t, STORE_FIXTURE_T0, 1, &leaf, 1, NULL);
                st = profile_store_append(fixture.store, &t.p, store_fixture_batch_id(sent), NULL, &err);
                test_profile_deinit(&t);
                sent += !st;
        } while (!st);
        ck_assert_int_eq(st, ST_BUSY);
        ck_assert_uint_gt(sent, 3);
        profile_store_get_health(fixture.store, &h);
        ck_assert(h.queue_full);
        ck_assert(h.flush_failing_since != 0);
        storage->is_cut = false;
        store_fixture_flush(&fixture);
        store_fixture_append(&fixture, sent++, 0x1000);
        ck_assert_int_eq(store_fixture_sum(&fixture), sent);
        profile_store_get_health(fixture.store, &h);
        ck_assert(!h.queue_full && !h.flush_failing_since);
        close_fixture();
}
END_TEST

TEST_SUITE("store_away", hour_of_absence_loses_and_doubles_nothing,
           positions_of_an_empty_queue_are_not_those_of_flushed_batches,
           released_segment_that_reappears_does_not_hide_new_batches, work_on_absent_tables_is_refused,
           storage_is_checked_before_it_is_used_when_it_is_back, full_queue_refuses_batches_until_the_storage_is_back)
