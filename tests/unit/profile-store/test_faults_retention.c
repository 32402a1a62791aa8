/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Retention of samples, checkpoints, and deletion of old commits and of removed files, with injected faults. Time
 * limit: 900 s.
 */
#include <stdlib.h>
#include <string.h>

#include "common/files/file.h"
#include "profile-store/lifecycle/maintenance.h"
#include "profile-store/profile_store.h"
#include "profile-store/lifecycle/sample_retention.h"
#include "profile-store/tables/table_vacuum.h"
#include "tests/faults/fault_samples.h"
#include "tests/support/profiles.h"
#include "tests/support/suite.h"

#define ID "00112233445566778899aabbccddeeff00112233"
#define T0 (INT64_C(20000) * INT64_C(86400000000000))
#define DAY_NS INT64_C(86400000000000)
#define BATCHES 4
#define OLD_BATCHES 3u /* bits of the batches whose day is removed */

/* The steps, in this order; the first ones are batches. */
enum { FLUSHED = BATCHES, CHECKPOINT, EXPIRED, AGAIN, SECOND_CHECKPOINT, LOG_CLEANED, UNLINKED, STEPS };

static struct profile_store *store;

static enum status open_store(const char *dir, struct error *err)
{
        _cleanup_free_ char *profiles = path_join(dir, "profiles");
        struct profile_store_options options = {
                .size = sizeof options, .flush_interval_ms = UINT64_MAX, .removed_grace_ms = 3600000
        }; /* set explicitly, because opening removes old files */

        return profile_store_open(profiles, &options, &store, err);
}

static void close_store(void)
{
        if (store)
                profile_store_close(store);
        store = NULL;
}

/* One sample of value 1 on a stack of its own; two batches per day. */
static enum status append_sample(unsigned i, struct error *err)
{
        struct test_profile t;
        uint32_t leaf;
        enum status st;

        test_profile_init(&t, ID, "/bin/x");
        leaf = test_location(&t, 0x1000 + 0x100 * i);
        test_sample(&t, T0 + (i / 2) * DAY_NS, 1, &leaf, 1, NULL);
        st = profile_store_append(store, &t.p, hash_bytes128(&i, sizeof i), NULL, err);
        test_profile_deinit(&t);
        return st;
}

/* For one table, since the others would repeat the same calls. */
static enum status write_samples_checkpoint(struct error *err)
{
        return delta_checkpoint(store->logs.logs[TABLE_SAMPLES], err);
}

/* As if all commits were from yesterday. */
static enum status clean_samples_log(struct error *err)
{
        struct delta_log_cleanup cleaned = { 0 };

        return delta_table_clean_up_log(store->logs.logs[TABLE_SAMPLES], INT64_MAX, &cleaned, err);
}

/* As if the grace period had ended. */
static enum status unlink_removed(struct error *err)
{
        int64_t grace_ms = store->logs.grace_ms;
        enum status st;

        store->logs.grace_ms = -60000;
        st = tables_vacuum_removed(&store->logs, NULL, err);
        store->logs.grace_ms = grace_ms;
        return st;
}

static enum status expire_first_day(struct error *err)
{
        const struct sample_limits limits = { .age_s = 86400 };
        struct expiry removed = { 0 };
        enum status st = profile_store_expire(store, &(struct expiry_request){ .limits = &limits }, &removed, err);

        expiry_deinit(&removed);
        return st;
}

static enum status take_step(unsigned number, struct error *err)
{
        switch (number) {
        case FLUSHED:
        case AGAIN:
                return profile_store_flush(store, err);
        case CHECKPOINT:
        case SECOND_CHECKPOINT:
                return write_samples_checkpoint(err);
        case EXPIRED:
                return expire_first_day(err);
        case LOG_CLEANED:
                return clean_samples_log(err);
        case UNLINKED:
                return unlink_removed(err);
        default:
                return append_sample(number, err);
        }
}

/* The last batch is appended after the retention. */
static enum status resume_expiry(struct error *err)
{
        static const unsigned order[STEPS] = { 0,       1,           2,     FLUSHED,           CHECKPOINT,
                                               EXPIRED, BATCHES - 1, AGAIN, SECOND_CHECKPOINT, LOG_CLEANED,
                                               UNLINKED };
        struct profile_store_health health;
        enum status st = ST_OK;

        profile_store_get_health(store, &health);
        if (health.sync_failing_since)
                st = profile_store_flush(store, err);
        if (!st && store->behind) /* as at the start of maintenance and of each flush */
                st = store_maintain(store, err);
        return st ? st : run_remaining_steps(order, STEPS, take_step, err);
}

/* Each batch counts at most once; those that retention did not select must be there. */
static unsigned count_batches(uint32_t acknowledged)
{
        unsigned seen = fault_find_samples(store, BATCHES, 0x100, NULL), want = acknowledged & ((1u << BATCHES) - 1);

        must((want & ~OLD_BATCHES & ~seen) == 0, "acknowledged %x, there are %x", acknowledged, seen);
        if (!(acknowledged >> FLUSHED & 1))
                must((want & ~seen) == 0, "acknowledged %x, there are %x", acknowledged, seen);
        return seen;
}

static void check_retention(const char *dir, uint32_t acknowledged)
{
        struct error err = { 0 };
        unsigned seen;

        close_store();
        must(open_store(dir, &err) == ST_OK, "%s", err.text);
        seen = count_batches(acknowledged) & OLD_BATCHES;
        if (acknowledged >> FLUSHED & 1)
                must(seen == 0 || seen == OLD_BATCHES, "a day went in part: %x", seen);
        if (acknowledged >> EXPIRED & 1)
                must(seen == 0, "removed samples are back: %x", seen);
        for (unsigned i = 0; i < BATCHES; i++)
                must(append_sample(i, &err) == ST_OK, "%s", err.text); /* again, by senders that got no response */
        must(profile_store_flush(store, &err) == ST_OK, "%s", err.text);
        must(expire_first_day(&err) == ST_OK, "%s", err.text);
        must(write_samples_checkpoint(&err) == ST_OK && clean_samples_log(&err) == ST_OK, "%s", err.text);
        must(unlink_removed(&err) == ST_OK, "%s", err.text);
        close_store();
        must(open_store(dir, &err) == ST_OK, "%s", err.text);
        must(count_batches(((1u << BATCHES) - 1) | 1u << FLUSHED) == (((1u << BATCHES) - 1) & ~OLD_BATCHES),
             "retention did not end");
        close_store();
}

static const struct scenario retention_scenario = { open_store, resume_expiry, close_store, check_retention,
                                                    (UINT32_C(1) << STEPS) - 1 };

START_TEST(other_samples_are_kept_after_kill_at_any_step_of_retention)
{
        fault_loop_kills(&retention_scenario);
}
END_TEST

START_TEST(failed_call_during_retention_loses_no_other_samples)
{
        fault_loop_errors(&retention_scenario);
}
END_TEST

START_TEST(retention_on_full_disk_resumes_later)
{
        fault_loop_full_disk(&retention_scenario);
}
END_TEST

START_TEST(power_cut_during_retention_loses_no_other_samples)
{
        fault_loop_power_cuts(&retention_scenario);
}
END_TEST

START_TEST(interrupted_calls_during_retention_lose_no_other_samples)
{
        fault_loop_interrupts(&retention_scenario);
}
END_TEST

START_TEST(late_power_cut_during_retention_loses_no_other_samples)
{
        fault_loop_late_power_cuts(&retention_scenario);
}
END_TEST

int main(void)
{
        const TTest *const tests[] = { other_samples_are_kept_after_kill_at_any_step_of_retention,
                                       failed_call_during_retention_loses_no_other_samples,
                                       retention_on_full_disk_resumes_later,
                                       power_cut_during_retention_loses_no_other_samples,
                                       interrupted_calls_during_retention_lose_no_other_samples,
                                       late_power_cut_during_retention_loses_no_other_samples };

        setenv("CK_TIMEOUT_MULTIPLIER", "4", 0); /* thousands of states: slow on a busy machine */
        return suite_run("faults retention", tests, sizeof tests / sizeof *tests);
}
