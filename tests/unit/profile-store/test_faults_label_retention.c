/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Retention of samples by labels with injected faults: on two days a file loses a row, and another one is removed
 * completely. In every case no other sample is lost, none counts twice, and what was removed stays removed. Time limit:
 * 900 s.
 */
#include <stdlib.h>
#include <string.h>

#include "common/files/file.h"
#include "profile-store/core/profile_store_internal.h"
#include "profile-store/lifecycle/sample_retention.h"
#include "tests/faults/fault_samples.h"
#include "tests/support/profiles.h"
#include "tests/support/suite.h"

#define ID "00112233445566778899aabbccddeeff00112233"
#define T0 (INT64_C(20000) * INT64_C(86400000000000))
#define DAY_NS INT64_C(86400000000000)

/* The steps, in this order. */
enum { APPENDED, FLUSHED, EXPIRED, STEPS };

/* One sample each, of value 1 on a stack of its own. */
static const struct {
        int day;
        const char *env;
} made[] = { { 0, "env=dev" }, { 0, "env=prod" }, { 1, "env=dev" }, { 3, "env=dev" } };

#define SAMPLES (sizeof made / sizeof *made)
#define ALL ((1u << SAMPLES) - 1)
#define STAYING 0xau /* bits of the samples that are kept */

static struct profile_store *store;

static enum status open_label_store(const char *dir, struct error *err)
{
        struct profile_store_options options = { .size = sizeof options, .flush_interval_ms = UINT64_MAX };

        return profile_store_open(dir, &options, &store, err);
}

static void close_label_store(void)
{
        if (store)
                profile_store_close(store);
        store = NULL;
}

static enum status append_made_samples(struct error *err)
{
        struct test_profile t;
        enum status st;

        test_profile_init(&t, ID, "/bin/x");
        for (unsigned i = 0; i < SAMPLES; i++) {
                uint32_t leaf = test_location(&t, 0x1000 + i);

                test_sample(&t, T0 + made[i].day * DAY_NS, 1, &leaf, 1, (const char *const[]){ made[i].env, NULL });
        }
        st = profile_store_append(store, &t.p, hash_bytes128("batch", 5), NULL, err);
        test_profile_deinit(&t);
        return st;
}

static enum status expire_dev_samples(struct error *err)
{
        const struct label_matcher matcher = { .key = "env", .op = LABEL_EQUAL, .value = "dev" };
        const struct label_rule rule = { .matchers = &matcher, .matcher_count = 1, .age_s = 86400 };
        const struct sample_limits limits = { .rules = &rule, .rule_count = 1 };
        struct expiry removed = { 0 };
        enum status st = profile_store_expire(store, &(struct expiry_request){ .limits = &limits }, &removed, err);

        expiry_deinit(&removed);
        return st;
}

static enum status take_label_step(unsigned number, struct error *err)
{
        switch (number) {
        case APPENDED:
                return append_made_samples(err);
        case FLUSHED:
                return profile_store_flush(store, err);
        default:
                return expire_dev_samples(err);
        }
}

static enum status resume_labels(struct error *err)
{
        return fault_resume_store(store, NULL, STEPS, take_label_step, err);
}

static unsigned find_samples(void)
{
        return fault_find_samples(store, SAMPLES, 1, NULL);
}

static void check_labels(const char *dir, uint32_t acknowledged)
{
        struct error err = { 0 };
        unsigned seen;

        close_label_store();
        must(open_label_store(dir, &err) == ST_OK, "%s", err.text);
        seen = find_samples();
        if (acknowledged >> APPENDED & 1)
                must((seen & STAYING) == STAYING, "samples are lost: %x", seen);
        if (!(acknowledged >> FLUSHED & 1))
                must(seen == ALL || (!seen && !(acknowledged >> APPENDED & 1)), "a batch is there in part: %x", seen);
        if (acknowledged >> EXPIRED & 1)
                must(seen == STAYING, "removed samples are back: %x", seen);
        must(append_made_samples(&err) == ST_OK, "%s", err.text); /* again, by a sender that got no response */
        must(profile_store_flush(store, &err) == ST_OK, "%s", err.text);
        must(expire_dev_samples(&err) == ST_OK, "%s", err.text);
        must(find_samples() == STAYING, "retention did not end");
        close_label_store();
        must(open_label_store(dir, &err) == ST_OK, "%s", err.text);
        must(find_samples() == STAYING, "retention did not last");
        must(store->tables->part_count[TABLE_SAMPLES] == 2, "%zu files", store->tables->part_count[TABLE_SAMPLES]);
        close_label_store();
}

static const struct scenario label_scenario = { open_label_store, resume_labels, close_label_store, check_labels,
                                                (UINT32_C(1) << STEPS) - 1 };

START_TEST(other_samples_are_kept_after_kill_at_any_step_of_rewrite)
{
        fault_loop_kills(&label_scenario);
}
END_TEST

START_TEST(failed_call_during_rewrite_neither_loses_nor_duplicates)
{
        fault_loop_errors(&label_scenario);
}
END_TEST

START_TEST(rewrite_on_full_disk_resumes_later)
{
        fault_loop_full_disk(&label_scenario);
}
END_TEST

START_TEST(power_cut_during_rewrite_neither_loses_nor_duplicates)
{
        fault_loop_power_cuts(&label_scenario);
}
END_TEST

START_TEST(interrupted_calls_during_rewrite_neither_lose_nor_duplicate)
{
        fault_loop_interrupts(&label_scenario);
}
END_TEST

START_TEST(late_power_cut_during_rewrite_neither_loses_nor_duplicates)
{
        fault_loop_late_power_cuts(&label_scenario);
}
END_TEST

int main(void)
{
        const TTest *const tests[] = { other_samples_are_kept_after_kill_at_any_step_of_rewrite,
                                       failed_call_during_rewrite_neither_loses_nor_duplicates,
                                       rewrite_on_full_disk_resumes_later,
                                       power_cut_during_rewrite_neither_loses_nor_duplicates,
                                       interrupted_calls_during_rewrite_neither_lose_nor_duplicate,
                                       late_power_cut_during_rewrite_neither_loses_nor_duplicates };

        setenv("CK_TIMEOUT_MULTIPLIER", "4", 0); /* thousands of states: slow on a busy machine */
        return suite_run("faults label retention", tests, sizeof tests / sizeof *tests);
}
