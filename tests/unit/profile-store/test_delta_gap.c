/* SPDX-License-Identifier: Apache-2.0 */
/* When a refresh asks whether log cleaning has deleted the commits that it lacks; reading several commits at once. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/limits.h"
#include "profile-store/delta/delta_log.h"
#include "storage/local_storage.h"
#include "tests/support/faulty_storage.h"
#include "tests/support/suite.h"
#include "tests/support/temporary_dir.h"

#define LIFETIME_MS 40000

static const struct parquet_field one_column[] = { { .name = "n", .kind = PARQUET_INT64, .optional = true } };

static const struct delta_retention usual_retention = { .removed_s = 1, .log_s = LIFETIME_MS / 1000 };

static char dir[TEMPORARY_DIR_BYTES];
static struct faulty_storage *storage;
static struct delta_table *writer, *idle; /* idle does not commit */
static unsigned questions, reads;

static void count_calls(struct faulty_storage *f, const char *call, const char *key)
{
        (void)f;
        questions += strcmp(call, "stat") == 0 && strstr(key, "/_delta_log/");
        reads += strcmp(call, "read") == 0 && strstr(key, "/_delta_log/");
}

static struct delta_table *open_gap_table(void)
{
        struct delta_table *t = NULL;
        struct error err = { 0 };

        check_ok(delta_table_open(&storage->storage, "table", &t, &err), &err);
        return t;
}

static void set_up(void)
{
        struct storage *inner;
        struct error err = { 0 };

        temporary_dir_create(dir, "gap");
        check_ok(local_storage_open(dir, &inner, &err), &err);
        storage = faulty_storage_create(inner);
        storage->now_ms = storage_now_ms(inner);
        check_ok(delta_table_create(&storage->storage, "table", one_column, 1, NULL, 0, &usual_retention, &err), &err);
        writer = open_gap_table();
        idle = open_gap_table();
        storage->before = count_calls;
}

static void tear_down(void)
{
        delta_table_close(writer);
        delta_table_close(idle);
        storage_close(&storage->storage);
        temporary_dir_remove(dir);
}

static void commit_some(unsigned first, unsigned count)
{
        struct error err = { 0 };

        for (unsigned i = first; i < first + count; i++) {
                char path[32];
                const struct delta_add add = { .path = path, .size = 10, .stats = "{\"numRecords\":3}" };
                const struct delta_commit c = { .size = sizeof c, .adds = &add, .add_count = 1 };

                snprintf(path, sizeof path, "%u.parquet", i);
                check_ok(delta_commit(writer, &c, &err), &err);
        }
}

/* More than is read ahead of one commit. */
static void commit_much(void)
{
        const size_t n = DELTA_AHEAD_BYTES + 1;
        _cleanup_free_ char *stats = malloc(n + 64);
        const struct delta_add add = { .path = "large.parquet", .size = 10, .stats = stats };
        const struct delta_commit c = { .size = sizeof c, .adds = &add, .add_count = 1 };
        struct error err = { 0 };

        snprintf(stats, n + 64, "{\"numRecords\":3,\"note\":\"%0*d\"}", (int)n, 0);
        check_ok(delta_commit(writer, &c, &err), &err);
}

static size_t count_idle_files(void)
{
        struct delta_snapshot *s = NULL;
        struct error err = { 0 };
        size_t ret;

        check_ok(delta_snapshot_acquire(idle, &s, &err), &err);
        ret = s->file_count;
        delta_snapshot_release(s);
        return ret;
}

/* Delete all commits but the last ones, as some time after they were made. */
static void clean_up_log(void)
{
        struct delta_log_cleanup cleaned = { 0 };
        struct error err = { 0 };

        check_ok(delta_checkpoint(writer, &err), &err);
        commit_some(100, 1);
        check_ok(delta_checkpoint(writer, &err), &err);
        commit_some(101, 1);
        check_ok(delta_table_clean_up_log(writer, INT64_MAX, &cleaned, &err), &err);
        ck_assert_uint_gt(cleaned.files, 0);
}

/* The number of files after a refresh of the idle table; *questions_ret tells how often it asked. */
static size_t refresh_idle(unsigned *questions_ret)
{
        struct error err = { 0 };

        questions = reads = 0;
        check_ok(delta_table_refresh(idle, &err), &err);
        *questions_ret = questions;
        return count_idle_files();
}

START_TEST(a_refresh_soon_after_another_one_asks_only_for_the_next_commit)
{
        unsigned asked;

        ck_assert_uint_eq(refresh_idle(&asked), 0);
        ck_assert_uint_eq(asked, 1);
        ck_assert_uint_eq(refresh_idle(&asked), 0);
        ck_assert_uint_eq(asked, 0);
        ck_assert_uint_eq(reads, 1);
        commit_some(0, 3);
        ck_assert_uint_eq(refresh_idle(&asked), 3);
        ck_assert_uint_eq(asked, 0);
        ck_assert_uint_eq(reads, 4);
        storage->now_ms += LIFETIME_MS / 2;
        ck_assert_uint_eq(refresh_idle(&asked), 3);
        ck_assert_uint_eq(asked, 1);
}
END_TEST

START_TEST(deleted_commits_are_noticed_once_they_can_have_been_old_enough)
{
        unsigned asked;

        refresh_idle(&asked);
        commit_some(0, 3);
        storage->now_ms += LIFETIME_MS;
        clean_up_log();
        ck_assert_uint_eq(refresh_idle(&asked), 5);
        ck_assert_uint_ge(asked, 1);
}
END_TEST

/* Another writer may keep commits for less time than this one was told. */
START_TEST(after_a_commit_met_deleted_ones_a_refresh_asks)
{
        const struct delta_add add = { .path = "idle.parquet", .size = 10 };
        const struct delta_commit c = { .size = sizeof c, .adds = &add, .add_count = 1 };
        unsigned asked;

        refresh_idle(&asked);
        commit_some(0, 3);
        clean_up_log();
        ck_assert_int_eq(delta_commit(idle, &c, NULL), ST_BUSY);
        ck_assert_uint_eq(refresh_idle(&asked), 5);
        ck_assert_int_eq(delta_commit(idle, &c, NULL), ST_OK);
}
END_TEST

START_TEST(a_clock_that_was_set_back_is_not_trusted)
{
        unsigned asked;

        storage->now_ms += LIFETIME_MS;
        refresh_idle(&asked);
        storage->now_ms -= LIFETIME_MS;
        refresh_idle(&asked);
        ck_assert_uint_eq(asked, 1);
}
END_TEST

/* The table may lack commits that were deleted, so a refresh that does not know it fails. */
START_TEST(without_an_answer_a_refresh_fails_and_the_next_one_asks_again)
{
        struct error err = { 0 };
        unsigned asked;

        refresh_idle(&asked);
        commit_some(0, 3);
        storage->now_ms += LIFETIME_MS;
        clean_up_log();
        for (unsigned at = 2; at <= 3; at++) { /* after the read of the next commit */
                faulty_storage_set(storage, STORAGE_FAULT_REFUSED, at);
                ck_assert_int_eq(delta_table_refresh(idle, &err), ST_OS);
                ck_assert_int_eq(err.os_errno, EIO);
        }
        ck_assert_uint_eq(refresh_idle(&asked), 5);
        ck_assert_uint_ge(asked, 1);
        refresh_idle(&asked);
        ck_assert_uint_eq(asked, 0);
}
END_TEST

/* Another program may set the property, in its own words. */
static void set_lifetime(const char *property)
{
        _cleanup_free_ char *text = NULL;
        struct error err = { 0 };
        unsigned unused;

        ck_assert_int_ge(asprintf(&text,
                                  "{\"metaData\":{\"id\":\"x\",\"format\":{\"provider\":\"parquet\",\"options\":{}},"
                                  "\"schemaString\":\"{\\\"type\\\":\\\"struct\\\",\\\"fields\\\":[]}\","
                                  "\"partitionColumns\":[],\"configuration\":{%s}}}\n",
                                  property),
                         0);
        check_ok(storage_put(&storage->storage, "table/_delta_log/00000000000000000001.json", text, strlen(text),
                             STORAGE_NEW, &err),
                 &err);
        refresh_idle(&unused);
        refresh_idle(&unused);
}

/* Whether refreshes ask each time. */
static bool is_lifetime_known(void)
{
        unsigned asked;

        refresh_idle(&asked);
        return !asked;
}

START_TEST(the_lifetime_is_that_which_the_table_says)
{
        static const struct {
                const char *property;
                bool is_known;
        } cases[] = {
                { "\"delta.logRetentionDuration\":\"interval 30 days\"", true },
                { "\"delta.logRetentionDuration\":\"INTERVAL 1 WEEK 2 hours\"", true },
                { "\"delta.logRetentionDuration\":\"90 seconds\"", true },
                { "\"delta.logRetentionDuration\":\"interval 2 months\"", false },
                { "\"delta.logRetentionDuration\":\"interval 0 days\"", false },
                { "\"delta.logRetentionDuration\":\"interval -5 days\"", false },
                { "\"delta.logRetentionDuration\":\"interval 5 days ago\"", false },
                { "\"delta.logRetentionDuration\":\"interval 999999999999 weeks\"", false },
                { "\"delta.logRetentionDuration\":\"interval\"", false },
                { "\"delta.logRetentionDuration\":\"\"", false },
                { "", false },
        };

        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                tear_down();
                set_up();
                set_lifetime(cases[i].property);
                ck_assert_msg(is_lifetime_known() == cases[i].is_known, "%s", cases[i].property);
        }
}
END_TEST

START_TEST(a_large_commit_among_those_that_are_asked_for_at_once_is_asked_for_again)
{
        struct error err = { 0 };
        bool has_removed = true;

        commit_some(1, 2);
        commit_much(); /* asked for with the second one */
        commit_some(3, 2);
        reads = 0;
        check_ok(delta_table_catch_up(idle, &has_removed, &err), &err);
        ck_assert(!has_removed);
        ck_assert_uint_eq(count_idle_files(), 5);
        ck_assert_uint_eq(reads, 1 + 2 + 4);
}
END_TEST

TEST_SUITE_WITH_FIXTURE("delta_gap", a_refresh_soon_after_another_one_asks_only_for_the_next_commit,
                        deleted_commits_are_noticed_once_they_can_have_been_old_enough,
                        after_a_commit_met_deleted_ones_a_refresh_asks, a_clock_that_was_set_back_is_not_trusted,
                        without_an_answer_a_refresh_fails_and_the_next_one_asks_again,
                        the_lifetime_is_that_which_the_table_says,
                        a_large_commit_among_those_that_are_asked_for_at_once_is_asked_for_again)
