/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locations that no stack refers to are removed from the table, and no sample loses a location, whatever is flushed
 * during a sweep.
 */
#include <glob.h>
#include <string.h>
#include <unistd.h>

#include "common/files/file.h"
#include "profile-store/compaction/location_sweep.h"
#include "profile-store/compaction/row_removal.h"
#include "profile-store/core/profile_store_internal.h"
#include "profile-store/lifecycle/sample_retention.h"
#include "profile-store/tables/store_verification.h"
#include "tests/support/profiles.h"
#include "tests/support/store_fixture.h"
#include "tests/support/suite.h"
#include "tests/support/table_rows.h"

#define OLD_DAY 0
#define NEW_DAY 40
#define LOCATIONS 12 /* of the old day; the new one has every third of them */

static struct store_fixture fixture;
static unsigned next_batch;

static void append_location(int day, unsigned location)
{
        struct test_profile t;
        struct error err;
        uint32_t leaf;

        test_profile_init(&t, STORE_FIXTURE_ID, "/bin/x");
        leaf = test_location(&t, 0x1000 + 16 * location);
        test_sample(&t, STORE_FIXTURE_T0 + day * STORE_FIXTURE_DAY_NS, 1, &leaf, 1, NULL);
        check_ok(profile_store_append(fixture.store, &t.p, store_fixture_batch_id(next_batch++), NULL, &err), &err);
        test_profile_deinit(&t);
}

static void begin_with_days(void)
{
        next_batch = 0;
        fixture.options = (struct profile_store_options){ 0 };
        store_fixture_begin(&fixture);
        for (unsigned i = 0; i < LOCATIONS; i++) {
                append_location(OLD_DAY, i);
                if (i % 5 == 4)
                        store_fixture_flush(&fixture); /* three files of locations */
        }
        store_fixture_flush(&fixture);
        for (unsigned i = 0; i < LOCATIONS; i += 3)
                append_location(NEW_DAY, i);
        store_fixture_flush(&fixture);
}

static void tear_down(void)
{
        store_fixture_end(&fixture);
}

static struct expiry expire_old_day(bool sweeps)
{
        const struct sample_limits limits = { .age_s = 10 * 86400 };
        struct expiry e;
        struct error err;

        check_ok(profile_store_expire(fixture.store,
                                      &(struct expiry_request){ .limits = &limits, .sweeps_locations = sweeps }, &e,
                                      &err),
                 &err);
        return e;
}

static void expire_without_sweep(void)
{
        struct expiry e = expire_old_day(false);

        ck_assert_uint_eq(e.count, 2);
        expiry_deinit(&e);
}

static size_t count_locations(void)
{
        struct table_rows rows = read_table_rows(fixture.store, TABLE_LOCATIONS);
        size_t ret = rows.count;

        table_rows_deinit(&rows);
        return ret;
}

static void fail_at_problem(void *context, const char *table, const char *file, const char *problem)
{
        (void)context;
        ck_abort_msg("%s/%s: %s", table, file, problem);
}

/* All references of all samples. */
static void check_references(void)
{
        const struct verify_options o = { .report = fail_at_problem };
        struct store_verify_result r;
        struct error err;

        check_ok(verify_tables(fixture.dir, &o, &r, &err), &err);
        ck_assert_uint_eq(r.problems, 0);
}

static struct expired_day sweep_now(const struct sweep_request *request)
{
        struct sweep_result r;
        struct error err = { 0 };

        check_ok(location_sweep_run(fixture.store, request, &r, &err), &err);
        ck_assert(!r.has_more);
        return r.removed;
}

START_TEST(only_locations_of_removed_stacks_are_removed)
{
        for (int is_compacted = 0; is_compacted < 2; is_compacted++) {
                struct expiry e;
                struct error err;

                begin_with_days();
                if (is_compacted)
                        check_ok(profile_store_compact(fixture.store, NULL, NULL, NULL, &err), &err);
                ck_assert_uint_eq(count_locations(), LOCATIONS);
                e = expire_old_day(true);
                ck_assert_uint_eq(e.count, 3);
                ck_assert_int_eq(e.days[2].table, TABLE_LOCATIONS);
                ck_assert_int_eq(e.days[2].reason, EXPIRY_UNUSED);
                ck_assert_uint_eq(e.days[2].rows, LOCATIONS - LOCATIONS / 3);
                ck_assert_uint_eq(e.days[2].rewritten, is_compacted ? 1 : 2);
                ck_assert_uint_eq(e.days[2].files, is_compacted ? 0 : 1); /* with all of its rows */
                expiry_deinit(&e);
                store_fixture_check_last_commit(&fixture, "locations", "\"remove\"");
                ck_assert_uint_eq(count_locations(), LOCATIONS / 3);
                check_references();
                e = expire_old_day(true);
                ck_assert_uint_eq(e.count, 0);
                expiry_deinit(&e);
                store_fixture_reopen(&fixture);
                ck_assert_int_eq(store_fixture_sum(&fixture), LOCATIONS / 3);
                ck_assert_uint_eq(count_locations(), LOCATIONS / 3);
                check_references();
                tear_down();
        }
}
END_TEST

/* The writer caches the ids of the table: it must forget that these were stored. */
START_TEST(removed_location_is_written_again_when_sampled)
{
        begin_with_days();
        expire_without_sweep();
        append_location(NEW_DAY, 0);
        store_fixture_flush(&fixture); /* which reads the stored ids */
        ck_assert_uint_eq(fixture.store->known.locations.keys.count, LOCATIONS);
        sweep_now(&(struct sweep_request){ 0 });
        ck_assert_uint_eq(count_locations(), LOCATIONS / 3);
        for (unsigned i = 0; i < LOCATIONS; i++)
                append_location(NEW_DAY, i);
        store_fixture_flush(&fixture);
        ck_assert_uint_eq(count_locations(), LOCATIONS);
        check_references();
        tear_down();
}
END_TEST

START_TEST(passes_with_few_ids_have_equal_result)
{
        for (uint64_t pass_ids = 1; pass_ids <= LOCATIONS + 1; pass_ids += 3) {
                begin_with_days();
                expire_without_sweep();
                ck_assert_uint_eq(sweep_now(&(struct sweep_request){ .pass_ids = pass_ids }).rows,
                                  LOCATIONS - LOCATIONS / 3);
                ck_assert_uint_eq(count_locations(), LOCATIONS / 3);
                check_references();
                ck_assert_uint_eq(sweep_now(&(struct sweep_request){ .pass_ids = pass_ids }).rows, 0);
                tear_down();
        }
}
END_TEST

START_TEST(large_sweep_continues_in_next_one)
{
        const struct sweep_request request = { .most_ids = 3 };
        uint64_t removed = 0;
        struct sweep_result r = { .has_more = true };
        struct error err;

        begin_with_days();
        expire_without_sweep();
        while (r.has_more) {
                check_ok(location_sweep_run(fixture.store, &request, &r, &err), &err);
                ck_assert_uint_le(r.removed.rows, 3);
                removed += r.removed.rows;
                check_references();
        }
        ck_assert_uint_eq(removed, LOCATIONS - LOCATIONS / 3);
        ck_assert_uint_eq(count_locations(), LOCATIONS / 3);
        tear_down();
}
END_TEST

/* ---- concurrent flushes ---- */

static struct {
        unsigned calls, act_at; /* the call of proceed() during which samples arrive */
        bool acted, flushes;
} meanwhile;

static bool sample_again_meanwhile(void *context)
{
        (void)context;
        if (meanwhile.calls++ != meanwhile.act_at)
                return true;
        meanwhile.acted = true;
        append_location(NEW_DAY, 1); /* which only the old day had */
        if (meanwhile.flushes)
                store_fixture_flush(&fixture);
        return true;
}

static void sweep_while_sampled_again(void)
{
        struct sweep_result r = { 0 };
        struct error err = { 0 };
        enum status st;

        begin_with_days();
        expire_without_sweep();
        meanwhile.calls = 0;
        meanwhile.acted = false;
        st = location_sweep_run(fixture.store,
                                &(struct sweep_request){ .pass_ids = 5, .proceed = sample_again_meanwhile }, &r, &err);
        if (meanwhile.acted && st) {
                ck_assert_int_eq(st, ST_BUSY);
                ck_assert_ptr_nonnull(strstr(err.text, "sampled again"));
                ck_assert_uint_eq(count_locations(), LOCATIONS);
        }
        check_references();
        store_fixture_flush(&fixture);
        check_references();
        ck_assert_int_eq(store_fixture_sum(&fixture), LOCATIONS / 3 + meanwhile.acted);
        ck_assert_int_eq(sweep_now(&(struct sweep_request){ 0 }).rows,
                         st ? LOCATIONS - LOCATIONS / 3 - meanwhile.acted : 0);
        ck_assert_uint_eq(count_locations(), LOCATIONS / 3 + meanwhile.acted);
        check_references();
        tear_down();
}

START_TEST(location_sampled_during_sweep_is_kept_or_rewritten)
{
        for (int flushes = 0; flushes < 2; flushes++) {
                unsigned given_up = 0;

                meanwhile.flushes = flushes;
                meanwhile.acted = true;
                for (meanwhile.act_at = 0; meanwhile.acted; meanwhile.act_at++) {
                        sweep_while_sampled_again();
                        given_up += meanwhile.acted;
                }
                ck_assert_uint_ge(given_up, 5);
        }
}
END_TEST

/* The stacks of the old day, which stay on disk until the grace period ends, added again by another program. */
static void restore_old_stacks(const char *path)
{
        struct table_logs logs;
        struct table_add add = { .has_day = true, .day = STORE_FIXTURE_T0 / STORE_FIXTURE_DAY_NS + OLD_DAY };
        const struct table_change change = { .table = TABLE_STACKS, .adds = &add, .add_count = 1 };
        _cleanup_free_ char *key = NULL, *to = NULL;
        struct error err;

        check_ok(table_logs_open(fixture.store->storage, "", true, 3600000, &logs, &err), &err);
        add.name = make_day_path(add.day, "restored.parquet");
        key = make_table_key(TABLE_STACKS, add.name);
        to = storage_make_name(logs.storage, key);
        ck_assert_int_eq(link(path, to), 0);
        add.written.bytes = 1;
        check_ok(tables_commit(&logs, &change, &err), &err);
        table_add_deinit(&add);
        table_logs_close(&logs);
        fixture.store->behind = true; /* so that the log is read before the next commit */
}

static const char *old_stacks;

static bool restore_stacks_meanwhile(void *context)
{
        (void)context;
        if (!meanwhile.acted)
                restore_old_stacks(old_stacks);
        meanwhile.acted = true;
        return true;
}

START_TEST(stacks_added_just_before_commit_keep_locations)
{
        _cleanup_free_ char *path = NULL;
        struct sweep_result r;
        struct error err = { 0 };

        begin_with_days();
        path = strdup(fixture.store->tables->parts[TABLE_STACKS][0]->path);
        old_stacks = path;
        expire_without_sweep();
        meanwhile.acted = false;
        ck_assert_int_eq(location_sweep_run(fixture.store,
                                            &(struct sweep_request){ .proceed = restore_stacks_meanwhile }, &r, &err),
                         ST_BUSY);
        ck_assert_ptr_nonnull(strstr(err.text, "sampled again"));
        ck_assert(meanwhile.acted);
        ck_assert_uint_eq(count_locations(), LOCATIONS);
        tear_down();
}
END_TEST

static bool forget_meanwhile(void *context)
{
        (void)context;
        if (meanwhile.calls++ == meanwhile.act_at) {
                meanwhile.acted = true;
                atomic_fetch_add(&fixture.store->resymbolize_waiting, 1);
        }
        return true;
}

START_TEST(sweep_yields_to_resymbolization_without_residue)
{
        _cleanup_free_ char *pattern = NULL;
        unsigned given_way = 0;
        glob_t files;

        meanwhile.acted = true;
        for (meanwhile.act_at = 0; meanwhile.acted; meanwhile.act_at++) {
                struct sweep_result r;
                struct error err;
                enum status st;

                begin_with_days();
                expire_without_sweep();
                meanwhile.calls = 0;
                meanwhile.acted = false;
                st = location_sweep_run(fixture.store, &(struct sweep_request){ .proceed = forget_meanwhile }, &r,
                                        &err);
                ck_assert(!st || st == ST_BUSY);
                atomic_store(&fixture.store->resymbolize_waiting, 0);
                free(pattern);
                pattern = store_fixture_path(&fixture, "tables/locations/compact-*");
                ck_assert_int_eq(glob(pattern, 0, NULL, &files), st ? GLOB_NOMATCH : 0);
                globfree(&files);
                ck_assert_uint_eq(count_locations(), st ? LOCATIONS : LOCATIONS / 3);
                given_way += st != ST_OK;
                check_references();
                tear_down();
        }
        ck_assert_uint_ge(given_way, 1);
}
END_TEST

START_TEST(restorable_file_of_stacks_keeps_all_locations)
{
        _cleanup_free_ char *path = NULL, *away = NULL;
        struct sweep_result r;
        struct error err;

        begin_with_days();
        expire_without_sweep();
        path = strdup(fixture.store->tables->parts[TABLE_STACKS][0]->path);
        ck_assert_int_ge(asprintf(&away, "%s.away", path), 0);
        ck_assert_int_eq(rename(path, away), 0);
        ck_assert_int_eq(location_sweep_run(fixture.store, &(struct sweep_request){ 0 }, &r, &err), ST_OS);
        ck_assert_int_eq(rename(away, path), 0);
        ck_assert_uint_eq(count_locations(), LOCATIONS);
        check_references();
        tear_down();
}
END_TEST

static bool remove_stacks_meanwhile(void *context)
{
        if (meanwhile.acted)
                return true;
        meanwhile.acted = true;
        expire_without_sweep();
        ck_assert_int_eq(unlink(context), 0); /* as after the grace period, if a sweep takes longer */
        return true;
}

START_TEST(stacks_removed_concurrently_do_not_stop_sweep)
{
        _cleanup_free_ char *path = NULL;

        begin_with_days();
        expire_without_sweep();
        append_location((OLD_DAY + NEW_DAY) / 2, 1); /* which is still in the table */
        store_fixture_flush(&fixture);
        ck_assert_uint_eq(fixture.store->tables->part_count[TABLE_STACKS], 2);
        path = strdup(fixture.store->tables->parts[TABLE_STACKS][0]->path);
        meanwhile.acted = false;
        ck_assert_uint_eq(
                sweep_now(&(struct sweep_request){ .pass_ids = 5, .pause = remove_stacks_meanwhile, .context = path })
                        .rows,
                LOCATIONS - LOCATIONS / 3);
        ck_assert_uint_eq(count_locations(), LOCATIONS / 3);
        check_references();
        tear_down();
}
END_TEST

static bool pause_until_call(void *context)
{
        struct compaction *c = fixture.store->compaction;
        struct error err;

        (void)context;
        check_ok(compaction_begin_removal(c, NULL, NULL, &err), &err); /* which would wait forever */
        compaction_end_removal(c);
        return meanwhile.calls++ != meanwhile.act_at;
}

START_TEST(sweep_yields_between_files_and_can_be_cancelled)
{
        struct sweep_result r;
        struct error err;
        enum status st = ST_BUSY;

        begin_with_days();
        expire_without_sweep();
        for (meanwhile.act_at = 0; st; meanwhile.act_at++) {
                meanwhile.calls = 0;
                st = location_sweep_run(fixture.store, &(struct sweep_request){ .pause = pause_until_call }, &r, &err);
                ck_assert(!st || st == ST_BUSY);
                ck_assert_uint_eq(count_locations(), st ? LOCATIONS : LOCATIONS / 3);
                check_references();
        }
        ck_assert_uint_eq(meanwhile.calls, 3 + 1 + 3); /* files of locations, of stacks, and of locations again */
        tear_down();
}
END_TEST

START_TEST(damaged_file_of_locations_is_unchanged)
{
        _cleanup_free_ char *path = NULL;
        struct expired_day removed;

        begin_with_days();
        expire_without_sweep();
        ck_assert_uint_eq(fixture.store->tables->part_count[TABLE_LOCATIONS], 3);
        path = strdup(fixture.store->tables->parts[TABLE_LOCATIONS][1]->path);
        ck_assert_int_eq(truncate(path, 100), 0);
        removed = sweep_now(&(struct sweep_request){ 0 });
        ck_assert_uint_eq(removed.rewritten, 1);
        ck_assert_uint_eq(removed.files, 1);
        ck_assert_uint_eq(removed.rows, 3 + 2); /* of the first five and the last two */
        ck_assert_uint_eq(fixture.store->tables->part_count[TABLE_LOCATIONS], 2);
        tear_down();
}
END_TEST

/* ---- the background thread ---- */

START_TEST(background_sweep_runs_after_retention)
{
        static const struct timespec pause = { .tv_nsec = 1000000 };

        begin_with_days();
        fixture.options.compact_interval_ms = 1;
        store_fixture_reopen(&fixture);
        expire_without_sweep();
        while (count_locations() != LOCATIONS / 3)
                nanosleep(&pause, NULL); /* until the test's time limit */
        check_references();
        ck_assert(!fixture.store->sweep_due);
        ck_assert_int_gt(fixture.store->next_sweep_ns, 0);
        tear_down();
}
END_TEST

TEST_SUITE("location sweep", only_locations_of_removed_stacks_are_removed,
           removed_location_is_written_again_when_sampled, passes_with_few_ids_have_equal_result,
           large_sweep_continues_in_next_one, location_sampled_during_sweep_is_kept_or_rewritten,
           stacks_added_just_before_commit_keep_locations, sweep_yields_to_resymbolization_without_residue,
           restorable_file_of_stacks_keeps_all_locations, stacks_removed_concurrently_do_not_stop_sweep,
           sweep_yields_between_files_and_can_be_cancelled, damaged_file_of_locations_is_unchanged,
           background_sweep_runs_after_retention)
