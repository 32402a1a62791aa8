/* SPDX-License-Identifier: Apache-2.0 */
/* Counts of unresolved samples of two stores, whose sums are a metric. */
#include <sched.h>
#include <string.h>

#include "common/limits.h"
#include "common/metrics.h"
#include "common/program/metrics_write.h"
#include "pipeline/unresolved_counts.h"
#include "tests/support/profiles.h"
#include "tests/support/store_fixture.h"
#include "tests/support/suite.h"

static struct store_fixture first, second;
static struct profile_store *stores[2];

static void set_up(void)
{
        store_fixture_begin(&first);
        store_fixture_begin(&second);
        stores[0] = first.store;
        stores[1] = second.store;
}

static void tear_down(void)
{
        store_fixture_end(&first);
        store_fixture_end(&second);
}

static struct unresolved_counts *start_counts(void)
{
        struct unresolved_counts *u = NULL;
        struct error err;

        check_ok(unresolved_counts_start(stores, 2, &u, &err), &err);
        return u;
}

/* Value of cairn_unresolved_samples for no_debuginfo; -1: absent. */
static int64_t read_gauge(const char *when)
{
        _cleanup_buf_ struct buf text;
        const char *found;
        char line[128];

        buf_init(&text, MiB(1));
        metrics_write(&text);
        snprintf(line, sizeof line, "\ncairn_unresolved_samples{when=\"%s\",reason=\"no_debuginfo\"} ", when);
        found = strstr(buf_cstr(&text), line);
        return found ? strtoll(found + strlen(line), NULL, 10) : -1;
}

static void append_sample(struct store_fixture *f, unsigned batch, uint64_t address)
{
        struct test_profile t;
        struct error err;
        uint32_t leaf;

        test_profile_init(&t, STORE_FIXTURE_ID, "/bin/x");
        leaf = test_location(&t, address);
        test_sample(&t, STORE_FIXTURE_T0, TEST_PROFILE_PERIOD, &leaf, 1, NULL);
        check_ok(profile_store_append(f->store, &t.p, store_fixture_batch_id(batch), NULL, &err), &err);
        test_profile_deinit(&t);
}

static void wait_for_gauge(const char *when, int64_t value)
{
        while (read_gauge(when) != value) /* until the test's time limit */
                sched_yield();
}

START_TEST(a_count_is_the_sum_of_all_stores_and_the_last_one_becomes_the_one_before)
{
        struct unresolved_counts *u = start_counts();

        append_sample(&first, 1, 0x1000);
        append_sample(&second, 1, 0x1000);
        append_sample(&second, 2, 0x2000);
        ck_assert_int_eq(read_gauge("after"), -1);
        unresolved_counts_request(u);
        wait_for_gauge("after", 3);
        ck_assert_int_eq(read_gauge("before"), -1);
        append_sample(&first, 2, 0x2000);
        unresolved_counts_request(u);
        wait_for_gauge("after", 4);
        wait_for_gauge("before", 3);
        unresolved_counts_stop(u);
        ck_assert_int_eq(read_gauge("after"), 0);
        ck_assert_int_eq(read_gauge("before"), 0);
}
END_TEST

START_TEST(counts_of_one_store_keep_those_of_the_others)
{
        const uint64_t before[SYMBOL_STATE_COUNT] = { [SYMBOL_NO_DEBUGINFO] = 70 };
        const uint64_t after[SYMBOL_STATE_COUNT] = { [SYMBOL_NO_DEBUGINFO] = 20 };
        struct unresolved_counts *u = start_counts();

        append_sample(&first, 1, 0x1000);
        append_sample(&second, 1, 0x1000);
        unresolved_counts_request(u);
        wait_for_gauge("after", 2); /* both are counted */
        unresolved_counts_set(u, stores[1], before, after);
        ck_assert_int_eq(read_gauge("after"), 21);
        ck_assert_int_eq(read_gauge("before"), 70);
        unresolved_counts_stop(u);
}
END_TEST

TEST_SUITE_WITH_FIXTURE("unresolved counts", a_count_is_the_sum_of_all_stores_and_the_last_one_becomes_the_one_before,
                        counts_of_one_store_keep_those_of_the_others)
