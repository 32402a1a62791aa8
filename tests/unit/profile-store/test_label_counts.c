/* SPDX-License-Identifier: Apache-2.0 */
/* The number of values of all labels is counted in one pass over the samples, in tables and in batches. */
#include <check.h>
#include <string.h>

#include "common/limits.h"
#include "common/threads/work_meter.h"
#include "profile-store/scan.h"
#include "tests/support/profiles.h"
#include "tests/support/store_fixture.h"
#include "tests/support/suite.h"

#define KEYS 400 /* more than LIMIT_LABEL_COLUMNS: the others are in labels_rest */
#define SAMPLES 2000

static struct store_fixture fixture;

static void set_up(void)
{
        fixture.options = (struct profile_store_options){ 0 };
        store_fixture_begin(&fixture);
}

static void tear_down(void)
{
        store_fixture_end(&fixture);
}

/* Sample i has the labels kJ (J of KEYS, in turn) with one of three values, `many` with its number, and `one`. */
static void append_samples(unsigned batch)
{
        struct test_profile t;
        struct error err;
        uint32_t leaf;

        test_profile_init(&t, STORE_FIXTURE_ID, "/bin/x");
        leaf = test_location(&t, 0x1000);
        for (unsigned i = 0; i < SAMPLES; i++) {
                char key[40], many[40];
                const char *labels[] = { key, many, "one=1", NULL };

                snprintf(key, sizeof key, "k%03u=%u", i % KEYS, i / KEYS % 3);
                snprintf(many, sizeof many, "many=%u", i);
                test_sample(&t, STORE_FIXTURE_T0 + i, 1, &leaf, 1, labels);
        }
        check_ok(profile_store_append(fixture.store, &t.p, store_fixture_batch_id(batch), NULL, &err), &err);
        test_profile_deinit(&t);
}

static void check_counts(unsigned sample_count)
{
        const struct scan_filter all = { .from_unix_ns = 0, .to_unix_ns = INT64_MAX };
        struct scan_label_count *counts = NULL;
        struct store_scan *scan;
        struct work_meter meter;
        struct error err;
        size_t count = 0;

        work_meter_init(&meter, NULL, NULL);
        check_ok(store_scan_begin(fixture.store, &scan, &err), &err);
        store_scan_set_meter(scan, &meter);
        check_ok(store_scan_count_label_values(scan, &all, &counts, &count, &err), &err);
        ck_assert_uint_eq(meter.rows, sample_count); /* each is selected once */
        ck_assert_uint_eq(count, KEYS + 2);
        for (size_t i = 0; i < count; i++) {
                unsigned expected = strcmp(counts[i].name, "many") == 0  ? LIMIT_LABEL_VALUES_COUNTED + 1
                                    : strcmp(counts[i].name, "one") == 0 ? 1
                                                                         : 3;

                ck_assert_uint_eq(counts[i].values, expected);
                ck_assert(i == 0 || strcmp(counts[i - 1].name, counts[i].name) < 0);
        }
        store_scan_end(scan);
}

START_TEST(values_are_counted_in_one_pass)
{
        append_samples(0);
        check_counts(SAMPLES); /* in a batch */
        store_fixture_flush(&fixture);
        check_counts(SAMPLES); /* in columns and labels_rest */
        append_samples(1);
        store_fixture_flush(&fixture);
        append_samples(2);
        check_counts(3 * SAMPLES); /* equal values of several files and batches count once */
}
END_TEST

TEST_SUITE_WITH_FIXTURE("label_counts", values_are_counted_in_one_pass)
