/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An hour of flushes of 10 s into a store whose compaction thread runs: after each of them no table has more files than
 * a plan allows. test_compaction_plan.c simulates more hours. Syncs are not passed to the kernel (fault_fs.h), which
 * would take most of the time.
 */
#include <sched.h>

#include "profile-store/compaction/compaction_plan.h"
#include "tests/faults/fault_fs.h"
#include "tests/support/profiles.h"
#include "tests/support/store_fixture.h"
#include "tests/support/suite.h"

#define FLUSHES 360
#define FLUSH_NS INT64_C(10000000000)

static struct store_fixture fixture;

/* Three samples, on stacks and locations that no other flush has. */
static void append_flush(unsigned flush)
{
        struct test_profile t;
        struct error err;

        test_profile_init(&t, STORE_FIXTURE_ID, "/bin/x");
        for (unsigned i = 0; i < 3; i++) {
                uint32_t location = test_location(&t, 0x1000 + 16 * (3 * flush + i));

                test_sample(&t, STORE_FIXTURE_T0 + flush * FLUSH_NS + i, 1, &location, 1, NULL);
        }
        check_ok(profile_store_append(fixture.store, &t.p, store_fixture_batch_id(flush), NULL, &err), &err);
        test_profile_deinit(&t);
        store_fixture_flush(&fixture);
}

static struct profile_store_stat wait_for_merges(void)
{
        struct profile_store_stat stat;

        while ((stat = store_fixture_stat(&fixture)).compaction_backlog_files) /* until the test's time limit */
                sched_yield();
        return stat;
}

START_TEST(an_hour_of_flushes_stays_in_few_files)
{
        fixture.options.compact_interval_ms = 1;
        store_fixture_begin(&fixture);
        fault_fs_watch(fixture.dir);
        fault_fs_count();
        for (unsigned i = 0; i < FLUSHES; i++) {
                struct profile_store_stat stat;

                append_flush(i);
                stat = wait_for_merges();
                ck_assert_uint_le(stat.sample_files, COMPACTION_SMALL_FILES);
                ck_assert_uint_le(stat.stack_files, COMPACTION_SMALL_FILES);
                ck_assert_uint_le(stat.location_files, COMPACTION_SMALL_FILES);
        }
        ck_assert_int_eq(store_fixture_sum(&fixture), 3 * FLUSHES);
        fault_fs_off();
        store_fixture_end(&fixture);
}
END_TEST

TEST_SUITE("compaction hour", an_hour_of_flushes_stays_in_few_files)
