/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sweep of unused locations with injected faults: an old day is removed, and with it the locations that only its
 * stacks referred to. In every case samples that are kept have their locations, also samples that are appended again,
 * and what was removed stays removed.
 * Time limit: 900 s.
 */
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "profile-store/compaction/location_sweep.h"
#include "profile-store/core/profile_store_internal.h"
#include "profile-store/lifecycle/sample_retention.h"
#include "profile-store/tables/store_verification.h"
#include "tests/faults/fault_samples.h"
#include "tests/support/profiles.h"
#include "tests/support/suite.h"

#define ID "00112233445566778899aabbccddeeff00112233"
#define T0 (INT64_C(20000) * INT64_C(86400000000000))
#define DAY_NS INT64_C(86400000000000)

/* The steps, in this order. */
enum { APPENDED, FLUSHED, EXPIRED, SWEPT, STEPS };

/* One sample each, of value 1 on a stack of one location. The first location is kept, the second one removed. */
static const struct {
        int day;
        unsigned location;
} made[] = { { 0, 0 }, { 0, 1 }, { 20, 0 }, { 20, 2 } };

#define SAMPLES (sizeof made / sizeof *made)
#define STAYING 2

static struct profile_store *store;

static enum status open_swept_store(const char *dir, struct error *err)
{
        struct profile_store_options options = { .size = sizeof options, .flush_interval_ms = UINT64_MAX };

        return profile_store_open(dir, &options, &store, err);
}

static void close_swept_store(void)
{
        if (store)
                profile_store_close(store);
        store = NULL;
}

static enum status append_made(unsigned first, unsigned count, const char *id, struct error *err)
{
        struct test_profile t;
        enum status st;

        test_profile_init(&t, ID, "/bin/x");
        for (unsigned i = first; i < first + count; i++) {
                uint32_t leaf = test_location(&t, 0x1000 + made[i].location);

                test_sample(&t, T0 + made[i].day * DAY_NS, 1, &leaf, 1, NULL);
        }
        st = profile_store_append(store, &t.p, hash_bytes128(id, strlen(id)), NULL, err);
        test_profile_deinit(&t);
        return st;
}

static enum status expire_old_samples(struct error *err)
{
        const struct sample_limits limits = { .age_s = 10 * 86400 };
        struct expiry removed = { 0 };
        enum status st = profile_store_expire(store, &(struct expiry_request){ .limits = &limits }, &removed, err);

        expiry_deinit(&removed);
        return st;
}

static enum status sweep_unused_locations(struct error *err)
{
        struct sweep_result r;

        return location_sweep_run(store, &(struct sweep_request){ 0 }, &r, err);
}

static enum status take_sweep_step(unsigned number, struct error *err)
{
        switch (number) {
        case APPENDED:
                return append_made(0, SAMPLES, "batch", err);
        case FLUSHED:
                return profile_store_flush(store, err);
        case EXPIRED:
                return expire_old_samples(err);
        default:
                return sweep_unused_locations(err);
        }
}

static enum status resume_sweep(struct error *err)
{
        return fault_resume_store(store, NULL, STEPS, take_sweep_step, err);
}

static void report_problem(void *context, const char *table, const char *file, const char *problem)
{
        (void)context;
        must(false, "%s/%s: %s", table, file, problem);
}

static void check_all_references(const char *dir)
{
        const struct verify_options o = { .report = report_problem };
        struct store_verify_result r;
        struct error err = { 0 };

        must(verify_tables(dir, &o, &r, &err) == ST_OK, "%s", err.text);
}

static struct profile_store_stat get_stat(void)
{
        struct profile_store_stat stat;
        struct error err = { 0 };

        must(profile_store_stat(store, &stat, &err) == ST_OK, "%s", err.text);
        return stat;
}

static void check_sweep(const char *dir, uint32_t acknowledged)
{
        struct error err = { 0 };

        close_swept_store();
        must(open_swept_store(dir, &err) == ST_OK, "%s", err.text);
        check_all_references(dir);
        if (acknowledged >> SWEPT & 1) {
                must(get_stat().location_rows == 2, "%ju locations", (uintmax_t)get_stat().location_rows);
                must(get_stat().sample_rows == STAYING, "%ju samples", (uintmax_t)get_stat().sample_rows);
        }
        if (acknowledged >> EXPIRED & 1) { /* the removed location is appended again; a state may be checked twice */
                char id[32];

                snprintf(id, sizeof id, "again %jd", (intmax_t)monotonic_ns());
                must(append_made(1, 1, id, &err) == ST_OK, "%s", err.text);
                must(profile_store_flush(store, &err) == ST_OK, "%s", err.text);
                must(get_stat().location_rows == 3, "%ju locations", (uintmax_t)get_stat().location_rows);
                check_all_references(dir);
        }
        must(append_made(0, SAMPLES, "batch", &err) == ST_OK, "%s", err.text); /* by a sender that got no response */
        must(profile_store_flush(store, &err) == ST_OK, "%s", err.text);
        must(expire_old_samples(&err) == ST_OK, "%s", err.text);
        must(sweep_unused_locations(&err) == ST_OK, "%s", err.text);
        close_swept_store();
        must(open_swept_store(dir, &err) == ST_OK, "%s", err.text);
        must(get_stat().sample_rows == STAYING, "%ju samples", (uintmax_t)get_stat().sample_rows);
        must(get_stat().location_rows == 2, "%ju locations", (uintmax_t)get_stat().location_rows);
        check_all_references(dir);
        close_swept_store();
}

static const struct scenario sweep_scenario = { open_swept_store, resume_sweep, close_swept_store, check_sweep,
                                                (UINT32_C(1) << STEPS) - 1 };

START_TEST(no_location_is_lost_after_kill_at_any_step_of_sweep)
{
        fault_loop_kills(&sweep_scenario);
}
END_TEST

START_TEST(failed_call_during_sweep_loses_nothing)
{
        fault_loop_errors(&sweep_scenario);
}
END_TEST

START_TEST(sweep_on_full_disk_resumes_later)
{
        fault_loop_full_disk(&sweep_scenario);
}
END_TEST

START_TEST(power_cut_during_sweep_loses_nothing)
{
        fault_loop_power_cuts(&sweep_scenario);
}
END_TEST

START_TEST(interrupted_calls_during_sweep_lose_nothing)
{
        fault_loop_interrupts(&sweep_scenario);
}
END_TEST

START_TEST(late_power_cut_during_sweep_loses_nothing)
{
        fault_loop_late_power_cuts(&sweep_scenario);
}
END_TEST

int main(void)
{
        const TTest *const tests[] = { no_location_is_lost_after_kill_at_any_step_of_sweep,
                                       failed_call_during_sweep_loses_nothing,
                                       sweep_on_full_disk_resumes_later,
                                       power_cut_during_sweep_loses_nothing,
                                       interrupted_calls_during_sweep_lose_nothing,
                                       late_power_cut_during_sweep_loses_nothing };

        setenv("CK_TIMEOUT_MULTIPLIER", "4", 0); /* thousands of states: slow on a busy machine */
        return suite_run("faults location sweep", tests, sizeof tests / sizeof *tests);
}
