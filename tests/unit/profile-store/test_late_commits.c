/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commits of merges and of the history of functions whose answers are lost, in tables that are shared: it is unknown
 * whether they are made, now or later, so none of their files is removed.
 */
#include <string.h>

#include "profile-store/core/profile_store_internal.h"
#include "profile-store/lifecycle/maintenance.h"
#include "storage/local_storage.h"
#include "tests/support/faulty_storage.h"
#include "tests/support/store_fixture.h"
#include "tests/support/temporary_dir.h"

static struct store_fixture fixture;
static struct faulty_storage *storage;

/* The commit whose answer is lost, of the table with this folder; after it, reads of the log fail for a while. */
static const char *log_folder;
static bool has_effect, is_lost;
static unsigned failing_reads, removals;
static unsigned sent; /* samples of value 1 */

static void flush_sample(void)
{
        store_fixture_append(&fixture, sent, 0x1000 + sent % 3);
        sent++;
        store_fixture_flush(&fixture);
}

static void set_up(void)
{
        _cleanup_free_ char *tables = NULL;
        struct storage *inner = NULL;
        struct error err;

        temporary_dir_create(fixture.dir, "late-commits");
        tables = store_fixture_path(&fixture, "tables");
        check_ok(local_storage_open(tables, &inner, &err), &err);
        storage = faulty_storage_create(inner);
        fixture.options = (struct profile_store_options){ .tables = &storage->storage, .is_shared = true };
        store_fixture_open(&fixture);
        for (sent = 0; sent < 12;)
                flush_sample();
}

static void tear_down(void)
{
        store_fixture_end(&fixture);
        storage_close(&storage->storage);
}

static void fail_next_call(struct faulty_storage *f, enum storage_fault fault)
{
        f->fault = fault;
        f->fault_at = f->calls + 1;
}

static void lose_commit(struct faulty_storage *f, const char *call, const char *key)
{
        if (!is_lost && strcmp(call, "publish") == 0 && strstr(key, log_folder)) {
                is_lost = true;
                fail_next_call(f, has_effect ? STORAGE_FAULT_ANSWER_LOST : STORAGE_FAULT_REFUSED);
        } else if (is_lost && strcmp(call, "remove") == 0) {
                removals++;
        } else if (is_lost && failing_reads && strstr(key, "_delta_log")) {
                failing_reads--;
                fail_next_call(f, STORAGE_FAULT_REFUSED);
        }
}

static void lose_next_commit(const char *folder, bool with_effect, unsigned reads)
{
        log_folder = folder;
        has_effect = with_effect;
        failing_reads = reads;
        is_lost = false;
        removals = 0;
        storage->before = lose_commit;
}

/* Each file that a version names is there. */
static void check_files(void)
{
        struct error err;

        storage->before = NULL;
        check_ok(store_maintain(fixture.store, &err), &err);
        store_fixture_reopen(&fixture);
        for (size_t t = 0; t < TABLE_COUNT; t++)
                for (size_t i = 0; i < fixture.store->tables->part_count[t]; i++) {
                        _cleanup_free_ char *key = make_table_key(t, fixture.store->tables->parts[t][i]->name);
                        struct storage_info info;

                        check_ok(storage_stat(&storage->storage, key, &info, &err), &err);
                }
        ck_assert_int_eq(store_fixture_sum(&fixture), sent);
}

/* Whether the log can be read after the lost answer. */
static const unsigned reads_that_fail[] = { 0, 1, 2, 5 };

START_TEST(merge_whose_answer_is_lost_keeps_its_files)
{
        for (size_t i = 0; i < sizeof reads_that_fail / sizeof *reads_that_fail; i++) {
                struct error err;

                lose_next_commit("samples/_delta_log/", true, reads_that_fail[i]);
                (void)!profile_store_compact(fixture.store, NULL, NULL, NULL, &err);
                check_files();
        }
}
END_TEST

START_TEST(merge_that_may_be_committed_later_keeps_its_files)
{
        struct error err;

        lose_next_commit("samples/_delta_log/", false, 0);
        ck_assert_int_eq(profile_store_compact(fixture.store, NULL, NULL, NULL, &err), ST_OS);
        ck_assert(is_lost);
        ck_assert_uint_eq(removals, 0);
        check_files();
}
END_TEST

START_TEST(history_whose_answer_is_lost_keeps_its_files)
{
        for (size_t i = 0; i < sizeof reads_that_fail / sizeof *reads_that_fail; i++) {
                struct error err;

                lose_next_commit("function_history/_delta_log/", true, reads_that_fail[i]);
                (void)!profile_store_update_history(fixture.store, &err);
                check_files();
        }
}
END_TEST

START_TEST(history_that_may_be_committed_later_keeps_its_files)
{
        struct error err;

        check_ok(profile_store_update_history(fixture.store, &err), &err);
        flush_sample(); /* in an hour that is derived again */
        lose_next_commit("function_history/_delta_log/", false, 0);
        (void)!profile_store_update_history(fixture.store, &err);
        ck_assert(is_lost);
        ck_assert_uint_eq(removals, 0);
        check_files();
}
END_TEST

TEST_SUITE_WITH_FIXTURE("late commits", merge_whose_answer_is_lost_keeps_its_files,
                        merge_that_may_be_committed_later_keeps_its_files, history_whose_answer_is_lost_keeps_its_files,
                        history_that_may_be_committed_later_keeps_its_files)
