/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store opened read-only whose directory is replaced by another copy, such as a restored backup, which may be older,
 * or have the same version with other samples.
 */
#include <stdlib.h>

#include "profile-store/core/profile_store_internal.h"
#include "profile-store/history/history_marks.h"
#include "tests/support/store_fixture.h"
#include "tests/support/suite.h"

static struct store_fixture fixture;
static struct profile_store *reader;

static void run_command(const char *format, ...)
{
        _cleanup_free_ char *command = NULL;
        va_list args;

        va_start(args, format);
        ck_assert_int_ge(vasprintf(&command, format, args), 0);
        va_end(args);
        ck_assert_int_eq(system(command), 0);
}

static void append_and_flush(unsigned first, unsigned count)
{
        for (unsigned i = first; i < first + count; i++)
                store_fixture_append(&fixture, i, 0x1000 + 16 * i);
        store_fixture_flush(&fixture);
}

static void set_up(void)
{
        const struct profile_store_options options = { .size = sizeof options, .read_only = true };
        struct error err;

        store_fixture_begin(&fixture);
        append_and_flush(0, 1);
        run_command("cp -a '%s' '%s.copy'", fixture.dir, fixture.dir);
        append_and_flush(1, 2);
        check_ok(profile_store_open(fixture.dir, &options, &reader, &err), &err);
}

static int64_t sum_of_reader(void)
{
        struct store_fixture f = { .store = reader };

        return store_fixture_sum(&f);
}

/* Replace the directory by the copy with 1 sample, and flush `more` samples into it at once. */
static void restore_copy(unsigned more)
{
        struct profile_store *live = fixture.store;

        profile_store_close(live);
        run_command("mv '%s' '%s.old' && mv '%s.copy' '%s'", fixture.dir, fixture.dir, fixture.dir, fixture.dir);
        store_fixture_open(&fixture);
        if (more)
                append_and_flush(10, more);
}

static void tear_down(void)
{
        profile_store_close(reader);
        run_command("rm -rf '%s.old'", fixture.dir);
        store_fixture_end(&fixture);
}

START_TEST(reader_follows_restored_older_tables)
{
        ck_assert_int_eq(sum_of_reader(), 3);
        restore_copy(0);
        ck_assert_int_eq(sum_of_reader(), 1);
        append_and_flush(20, 5);
        ck_assert_int_eq(sum_of_reader(), 6);
}
END_TEST

/* The log has the same number of commits, and the files have the same names as before. */
START_TEST(reader_follows_replaced_tables_of_equal_version)
{
        ck_assert_int_eq(sum_of_reader(), 3);
        restore_copy(4);
        ck_assert_int_eq(sum_of_reader(), 5);
}
END_TEST

static void read_next_commits(void)
{
        struct delta_reading readings[TABLE_COUNT];
        struct error err;

        for (int i = 0; i < TABLE_COUNT; i++)
                readings[i] = (struct delta_reading){ .table = reader->logs.logs[i], .may_be_replaced = true };
        check_ok(delta_tables_read_next(readings, TABLE_COUNT, &err), &err);
        ck_assert(readings[TABLE_SAMPLES].has_changed);
}

/* As when the storage is away after the first round of a refresh. */
START_TEST(reader_notices_a_copy_that_lacks_the_commit_that_it_has_just_read)
{
        ck_assert_int_eq(sum_of_reader(), 3);
        append_and_flush(3, 1);
        read_next_commits();
        restore_copy(0);
        ck_assert_int_eq(sum_of_reader(), 1);
}
END_TEST

START_TEST(reader_notices_a_copy_with_another_commit_than_it_has_just_read)
{
        ck_assert_int_eq(sum_of_reader(), 3);
        append_and_flush(3, 1);
        read_next_commits();
        restore_copy(4);
        append_and_flush(20, 5);
        ck_assert_int_eq(sum_of_reader(), 10);
}
END_TEST

START_TEST(hard_links_of_snapshot_are_not_a_replacement)
{
        ck_assert_int_eq(sum_of_reader(), 3);
        run_command("cp -al '%s' '%s.old'", fixture.dir, fixture.dir);
        ck_assert_int_eq(sum_of_reader(), 3);
        ck_assert_uint_eq(reader->tables->replacements, 0);
        run_command("rm -rf '%s.copy'", fixture.dir);
}
END_TEST

static void settle_marks(struct history_marks *m)
{
        const uint64_t version = (uint64_t)reader->tables->versions[TABLE_SAMPLES];

        while (m->count)
                history_marks_settle(m, &(int64_t){ m->items[0].hour }, 1, version);
}

static void update_marks(struct history_marks *m)
{
        struct error err;

        check_ok(history_marks_update(m, reader->logs.logs[TABLE_SAMPLES], reader->tables, true, &err), &err);
}

/* The commits of these versions are others, although the last snapshot is of the same copy as the one before. */
START_TEST(hours_are_marked_again_after_a_replacement_that_an_earlier_scan_noticed)
{
        struct history_marks m;

        history_marks_init(&m);
        ck_assert_int_eq(sum_of_reader(), 3);
        update_marks(&m);
        settle_marks(&m);
        restore_copy(4);
        ck_assert_int_eq(sum_of_reader(), 5);
        ck_assert_int_eq(sum_of_reader(), 5);
        update_marks(&m);
        ck_assert_uint_gt(m.count, 0);
        history_marks_deinit(&m);
}
END_TEST

TEST_SUITE_WITH_FIXTURE("store replaced", reader_follows_restored_older_tables,
                        reader_follows_replaced_tables_of_equal_version,
                        reader_notices_a_copy_that_lacks_the_commit_that_it_has_just_read,
                        reader_notices_a_copy_with_another_commit_than_it_has_just_read,
                        hard_links_of_snapshot_are_not_a_replacement,
                        hours_are_marked_again_after_a_replacement_that_an_earlier_scan_noticed)
