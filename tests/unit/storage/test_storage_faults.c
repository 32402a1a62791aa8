/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flushes, a compaction and a vacuum on a storage of which each call fails once: with and without its effect, and with
 * the loss of the machine. Acknowledged samples count exactly once, the tables verify, and no orphan stays. Time limit:
 * 900 s.
 */
#include <string.h>

#include "common/files/file.h"
#include "profile-store/core/profile_store_internal.h"
#include "profile-store/tables/store_verification.h"
#include "profile-store/tables/table_storage.h"
#include "profile-store/tables/table_vacuum.h"
#include "tests/support/faulty_storage.h"
#include "tests/support/store_fixture.h"
#include "tests/support/suite.h"
#include "tests/support/temporary_dir.h"

#define BATCHES 2 /* in a file of each table each */
#define TWO_DAYS_MS (INT64_C(2) * 86400000)

static struct store_fixture fixture;
static struct faulty_storage *faulty;

static void set_up(void)
{
        struct storage *inner = NULL;
        struct error err;

        fixture = (struct store_fixture){ .options = { .removed_grace_ms = 3600000, .part_rows = 1 } };
        temporary_dir_create(fixture.dir, "faults");
        check_ok(open_table_storage(fixture.dir, &inner, &err), &err);
        faulty = faulty_storage_create(inner);
        fixture.options.tables = &faulty->storage;
        store_fixture_open(&fixture);
}

static void tear_down(void)
{
        store_fixture_end(&fixture);
        storage_close(&faulty->storage);
}

/* A fault may fail the first attempt; afterwards it is over, unless the machine is lost. */
static enum status flush_twice(struct error *err)
{
        enum status st = profile_store_flush(fixture.store, err);

        return st ? profile_store_flush(fixture.store, err) : ST_OK;
}

static enum status compact_twice(struct error *err)
{
        enum status st = profile_store_compact(fixture.store, NULL, NULL, NULL, err);

        return st ? profile_store_compact(fixture.store, NULL, NULL, NULL, err) : ST_OK;
}

/* Remove replaced files and orphans, as two days later. */
static enum status vacuum_once(struct error *err)
{
        struct error unused;
        enum status st = store_reconcile(fixture.store, err), second;

        faulty->ahead_ms = TWO_DAYS_MS;
        if (!st)
                st = tables_vacuum_removed(&fixture.store->logs, NULL, err);
        second = st == ST_OS || !st ? tables_vacuum_orphans(&fixture.store->logs, NULL, st ? &unused : err) : st;
        faulty->ahead_ms = 0;
        return st ? st : second;
}

static enum status vacuum_twice(struct error *err)
{
        enum status st = vacuum_once(err);

        return st ? vacuum_once(err) : ST_OK;
}

static enum status run_scenario(struct error *err)
{
        enum status st = flush_twice(err);

        if (!st)
                st = compact_twice(err);
        return st ? st : vacuum_twice(err);
}

static void append_batches(void)
{
        for (unsigned i = 0; i < BATCHES; i++)
                store_fixture_append(&fixture, i, 0x1000 + i);
}

static void report_verify_problem(void *context, const char *table, const char *file, const char *problem)
{
        ck_abort_msg("%s: %s %s: %s", (const char *)context, table, file, problem);
}

static enum status count_data_key(void *context, const char *key, const struct storage_info *info, struct error *err)
{
        (void)info;
        (void)err;
        *(size_t *)context += !strstr(key, "/_delta_log/");
        return ST_OK;
}

static void check_store(const char *about)
{
        const struct verify_options verify = { .report = report_verify_problem, .context = (void *)about };
        struct store_verify_result result;
        size_t stored = 0, live = 0;
        struct error err;

        check_ok(flush_twice(&err), &err);
        check_ok(vacuum_once(&err), &err);
        ck_assert_msg(store_fixture_sum(&fixture) == BATCHES, "%s: %jd samples of %d", about,
                      (intmax_t)store_fixture_sum(&fixture), BATCHES);
        ck_assert_msg(store_fixture_count_stacks(&fixture) == BATCHES, "%s: stacks", about);
        check_ok(verify_tables(fixture.dir, &verify, &result, &err), &err);
        ck_assert_uint_eq(result.problems, 0);
        check_ok(storage_list(faulty->inner, "", "", count_data_key, &stored, &err), &err);
        for (int t = 0; t < TABLE_COUNT; t++)
                live += fixture.store->tables->part_count[t];
        ck_assert_msg(stored == live, "%s: %zu files of %zu are live", about, stored, live);
}

/* @return whether the scenario had so many calls. */
static bool run_with_fault(enum storage_fault fault, unsigned at)
{
        char about[64];
        struct error err = { 0 };
        enum status st;
        bool is_reached;

        snprintf(about, sizeof about, "fault %d at call %u", fault, at);
        set_up();
        append_batches();
        faulty_storage_set(faulty, fault, at);
        st = run_scenario(&err);
        is_reached = faulty->calls >= at;
        /* Only a lost machine fails both attempts. */
        ck_assert_msg(!st || fault == STORAGE_FAULT_CUT || fault == STORAGE_FAULT_CUT_LATE, "%s: %s", about, err.text);
        ck_assert_msg(!faulty->is_cut || st, "%s: the loss of the machine is not noticed", about);
        profile_store_close(fixture.store);
        faulty_storage_set(faulty, STORAGE_FAULT_NONE, 0);
        store_fixture_open(&fixture);
        check_store(about);
        tear_down();
        return is_reached;
}

static void run_with_each_fault(enum storage_fault fault)
{
        unsigned at = 1;

        while (run_with_fault(fault, at))
                at++;
        ck_assert_uint_gt(at, 30); /* the scenario has calls */
}

START_TEST(refused_call_neither_loses_nor_duplicates)
{
        run_with_each_fault(STORAGE_FAULT_REFUSED);
}
END_TEST

START_TEST(lost_answer_neither_loses_nor_duplicates)
{
        run_with_each_fault(STORAGE_FAULT_ANSWER_LOST);
}
END_TEST

START_TEST(loss_of_the_machine_neither_loses_nor_duplicates)
{
        run_with_each_fault(STORAGE_FAULT_CUT);
}
END_TEST

START_TEST(late_loss_of_the_machine_neither_loses_nor_duplicates)
{
        run_with_each_fault(STORAGE_FAULT_CUT_LATE);
}
END_TEST

/* The next commit is asked for by its name. */
START_TEST(commits_are_followed_although_lists_are_late)
{
        struct delta_table *reader = NULL;
        struct delta_snapshot *now;
        struct error err;

        set_up();
        check_ok(delta_table_open(&faulty->storage, "samples", &reader, &err), &err);
        faulty->is_list_late = true;
        append_batches();
        check_ok(flush_twice(&err), &err);
        check_ok(delta_table_refresh(reader, &err), &err);
        check_ok(delta_snapshot_acquire(reader, &now, &err), &err);
        ck_assert_uint_eq(now->file_count, BATCHES);
        delta_snapshot_release(now);
        delta_table_close(reader);
        tear_down();
}
END_TEST

static unsigned delayed_commits;

/* While the commit is on its way, another writer takes its version. */
static void commit_meanwhile(struct faulty_storage *f, const char *call, const char *key)
{
        const struct delta_commit c = { .size = sizeof c, .operation = "WRITE" };
        struct delta_table *other = NULL;
        struct error err;

        if (strcmp(call, "publish") != 0 || !strstr(key, "samples/_delta_log/"))
                return;
        f->before = NULL;
        delayed_commits++;
        check_ok(delta_table_open(f->inner, "samples", &other, &err), &err);
        check_ok(delta_commit(other, &c, &err), &err);
        delta_table_close(other);
}

START_TEST(delayed_commit_goes_after_that_of_another_writer)
{
        struct error err;

        set_up();
        append_batches();
        faulty->before = commit_meanwhile;
        check_ok(profile_store_flush(fixture.store, &err), &err);
        ck_assert_uint_eq(delayed_commits, 1);
        check_store("a delayed commit");
        tear_down();
}
END_TEST

TEST_SUITE("storage faults", refused_call_neither_loses_nor_duplicates, lost_answer_neither_loses_nor_duplicates,
           loss_of_the_machine_neither_loses_nor_duplicates, late_loss_of_the_machine_neither_loses_nor_duplicates,
           commits_are_followed_although_lists_are_late, delayed_commit_goes_after_that_of_another_writer)
