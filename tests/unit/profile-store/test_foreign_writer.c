/* SPDX-License-Identifier: Apache-2.0 */
/* A writer of another project commits to the tables between two commits of Cairn. */
#include <string.h>

#include "profile-store/core/profile_store_internal.h"
#include "symbol-index/lookup.h"
#include "tests/support/foreign_writer.h"
#include "tests/support/profiles.h"
#include "tests/support/suite.h"

static struct store_fixture fixture;
static char index_dir[96];

static void set_up(void)
{
        struct error err;

        fixture = (struct store_fixture){ 0 };
        store_fixture_begin(&fixture);
        snprintf(index_dir, sizeof index_dir, "%s/index", fixture.dir);
        check_ok(symbol_index_open(index_dir, false, &fixture.options.symbols, &err), &err);
        store_fixture_reopen(&fixture);
        store_fixture_append(&fixture, 0, 0x1000);
        store_fixture_flush(&fixture);
}

static void tear_down(void)
{
        store_fixture_end(&fixture);
        symbol_index_close(fixture.options.symbols);
}

/* Its rows are stored twice then. */
static void double_table(enum table table)
{
        foreign_writer_add_copy(&fixture, table, fixture.store->tables->parts[table][0], "foreign.parquet");
}

START_TEST(flush_commits_after_another_writer)
{
        struct profile_store_stat stat;

        for (enum table t = 0; t <= TABLE_LOCATIONS; t++)
                double_table(t);
        store_fixture_append(&fixture, 1, 0x2000);
        store_fixture_flush(&fixture); /* the first attempt succeeds */
        stat = store_fixture_stat(&fixture);
        ck_assert_uint_eq(stat.sample_files, 3);
        ck_assert_uint_eq(stat.stack_files, 3);
        ck_assert_uint_eq(stat.location_files, 3);
        ck_assert_uint_eq(stat.queued_batches, 0);
        ck_assert_int_eq(store_fixture_sum(&fixture), 3);
        store_fixture_reopen(&fixture);
        ck_assert_int_eq(store_fixture_sum(&fixture), 3);
}
END_TEST

START_TEST(resymbolization_commits_after_another_writer)
{
        struct resymbolize_result result;
        struct error err;

        double_table(TABLE_LOCATIONS);
        test_load_symbols(fixture.options.symbols, STORE_FIXTURE_ID, QUALITY_DWARF, 0x1000, 4, "work", "/src/work.c");
        check_ok(profile_store_resymbolize(fixture.store, &(struct resymbolize_request){ 0 }, &result, &err), &err);
        ck_assert_uint_eq(result.locations_changed, 1);
        check_ok(profile_store_resymbolize(fixture.store, &(struct resymbolize_request){ 0 }, &result, &err), &err);
        ck_assert_uint_eq(result.locations_seen, 2); /* including the foreign file */
        ck_assert_uint_eq(store_fixture_stat(&fixture).unresolved_locations, 0);
}
END_TEST

START_TEST(a_file_that_another_writer_removed_is_not_rewritten)
{
        struct resymbolize_result result;
        struct error err;

        double_table(TABLE_LOCATIONS);
        foreign_writer_remove(&fixture, TABLE_LOCATIONS, fixture.store->tables->parts[TABLE_LOCATIONS][0]);
        test_load_symbols(fixture.options.symbols, STORE_FIXTURE_ID, QUALITY_DWARF, 0x1000, 4, "work", "/src/work.c");
        ck_assert_int_eq(profile_store_resymbolize(fixture.store, &(struct resymbolize_request){ 0 }, &result, &err),
                         ST_NOT_FOUND);
        check_ok(profile_store_resymbolize(fixture.store, &(struct resymbolize_request){ 0 }, &result, &err), &err);
        ck_assert_uint_eq(result.locations_changed, 1);
        ck_assert_uint_eq(store_fixture_stat(&fixture).location_rows, 1);
}
END_TEST

TEST_SUITE_WITH_FIXTURE("foreign writer", flush_commits_after_another_writer,
                        resymbolization_commits_after_another_writer,
                        a_file_that_another_writer_removed_is_not_rewritten)
