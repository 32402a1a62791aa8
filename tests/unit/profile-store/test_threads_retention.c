/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Retention by labels with concurrent appends, flushes, compactions and queries: selected samples are removed, and all
 * others count exactly once at any time.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "profile-store/compaction/location_sweep.h"
#include "profile-store/lifecycle/sample_retention.h"
#include "profile-store/scan.h"
#include "tests/support/profiles.h"
#include "tests/support/suite.h"
#include "tests/support/temporary_dir.h"

#define ID "00112233445566778899aabbccddeeff00112233"
#define DAY_NS INT64_C(86400000000000)
#define T0 (INT64_C(20000) * DAY_NS)
#define APPENDERS 3
#define BATCHES 40

static struct profile_store *store;
static atomic_int begun, acknowledged, appenders_done;

/* Two samples of an old day, of which one is kept, or a new sample. */
static void append_pair(uint32_t thread, uint32_t number, int day)
{
        const uint32_t identity[] = { thread, number };
        const char *const labels[2][2] = { { "env=prod" }, { "env=dev" } };
        struct test_profile t;
        struct error err;
        uint32_t leaf;

        test_profile_init(&t, ID, "/bin/x");
        leaf = test_location(&t, 0x1000 + number % 5);
        for (int i = 0; i < 2; i++)
                test_sample(&t, T0 + day * DAY_NS, 1, &leaf, 1, labels[i]);
        check_ok(profile_store_append(store, &t.p, hash_bytes128(identity, sizeof identity), NULL, &err), &err);
        test_profile_deinit(&t);
}

static void *append_all_pairs(void *context)
{
        uint32_t thread = (uint32_t)(uintptr_t)context;

        for (uint32_t i = 0; i < BATCHES; i++) {
                atomic_fetch_add(&begun, 1);
                append_pair(thread, i, (int)(i % 2));
                atomic_fetch_add(&acknowledged, 1);
        }
        atomic_fetch_add(&appenders_done, 1);
        return NULL;
}

/* A matcher is used by one thread at a time, as regular expressions require: the count is not atomic. */
static bool match_dev(void *context, const char *text, size_t n)
{
        ++*(unsigned *)context;
        return n == 3 && memcmp(text, "dev", 3) == 0;
}

/* It yields to batches that sample a location again. */
static void sweep_all(void)
{
        struct sweep_result r;
        struct error err = { 0 };
        enum status st = location_sweep_run(store, &(struct sweep_request){ 0 }, &r, &err);

        ck_assert_msg(!st || st == ST_BUSY, "%s", err.text);
}

/* With the store's rules, like its own thread; concurrently with compactions, which rewrite the same files. */
static void *expire_all(void *context)
{
        struct error err = { 0 };

        (void)context;
        do {
                struct expiry e;

                check_ok(profile_store_expire(store, &(struct expiry_request){ 0 }, &e, &err), &err);
                ck_assert_uint_eq(e.skipped_files, 0);
                expiry_deinit(&e);
                check_ok(profile_store_compact(store, NULL, NULL, NULL, &err), &err);
                sweep_all();
        } while (atomic_load(&appenders_done) < APPENDERS);
        return NULL;
}

/* Dry runs do not wait, and use the same matchers. */
static void *plan_all(void *context)
{
        struct error err = { 0 };

        (void)context;
        do {
                struct expiry e;

                check_ok(profile_store_expire(store, &(struct expiry_request){ .dry_run = true }, &e, &err), &err);
                expiry_deinit(&e);
        } while (atomic_load(&appenders_done) < APPENDERS);
        return NULL;
}

static int64_t count_env(const char *env)
{
        const struct label_matcher matcher = { .key = "env", .op = LABEL_EQUAL, .value = env };
        const struct scan_filter filter = { 0, INT64_MAX, NULL, &matcher, 1 };
        struct store_scan *scan;
        struct stack_sums sums;
        struct error err;
        int64_t ret = 0;

        check_ok(store_scan_begin(store, &scan, &err), &err);
        check_ok(store_scan_sum(scan, &filter, &sums, &err), &err);
        for (size_t i = 0; i < sums.count; i++)
                ret += sums.items[i].value;
        stack_sums_deinit(&sums);
        store_scan_end(scan);
        return ret;
}

START_TEST(unselected_samples_count_once_during_retention)
{
        char dir[TEMPORARY_DIR_BYTES];
        struct profile_store_options options = { .size = sizeof options, .flush_interval_ms = 5 };
        unsigned looks = 0;
        const struct label_matcher matcher = { "env", LABEL_REGEX, "dev", match_dev, &looks };
        const struct label_rule rule = { .matchers = &matcher, .matcher_count = 1, .age_s = 86400 };
        pthread_t threads[APPENDERS], expirer, planner;
        struct error err;

        temporary_dir_create(dir, "threads");
        options.limits = (struct sample_limits){ .rules = &rule, .rule_count = 1 };
        check_ok(profile_store_open(dir, &options, &store, &err), &err);
        append_pair(APPENDERS, 0, 3);
        for (uintptr_t i = 0; i < APPENDERS; i++)
                ck_assert_int_eq(pthread_create(&threads[i], NULL, append_all_pairs, (void *)i), 0);
        ck_assert_int_eq(pthread_create(&expirer, NULL, expire_all, NULL), 0);
        ck_assert_int_eq(pthread_create(&planner, NULL, plan_all, NULL), 0);
        while (atomic_load(&appenders_done) < APPENDERS) {
                int least = atomic_load(&acknowledged) + 1;
                int64_t seen = count_env("prod");

                ck_assert_int_ge(seen, least);
                ck_assert_int_le(seen, atomic_load(&begun) + 1);
        }
        for (int i = 0; i < APPENDERS; i++)
                pthread_join(threads[i], NULL);
        pthread_join(expirer, NULL);
        pthread_join(planner, NULL);
        check_ok(profile_store_flush(store, &err), &err);
        expire_all(NULL);
        ck_assert_int_eq(count_env("prod"), APPENDERS * BATCHES + 1);
        ck_assert_int_eq(count_env("dev"), 1);
        profile_store_close(store);
        check_ok(profile_store_open(dir, &options, &store, &err), &err);
        ck_assert_int_eq(count_env("prod"), APPENDERS * BATCHES + 1);
        ck_assert_int_eq(count_env("dev"), 1);
        profile_store_close(store);
        ck_assert_uint_gt(looks, 0);
        temporary_dir_remove(dir);
}
END_TEST

TEST_SUITE("threads retention", unselected_samples_count_once_during_retention)
