/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compaction with injected faults: a flush of several files of each table, which are then merged. In every case each
 * sample counts exactly once, a completed compaction persists, and an incomplete one leaves no files behind. Time
 * limit: 900 s.
 */
#include <ftw.h>
#include <string.h>

#include "common/files/file.h"
#include "profile-store/core/profile_store_internal.h"
#include "tests/faults/fault_samples.h"
#include "tests/support/profiles.h"
#include "tests/support/suite.h"

#define ID "00112233445566778899aabbccddeeff00112233"
#define T0 (INT64_C(20000) * INT64_C(86400000000000))
#define SAMPLES 2

/* The steps, in this order. */
enum { APPENDED, FLUSHED, COMPACTED, STEPS };

static struct profile_store *store;

static enum status open_store(const char *dir, struct error *err)
{
        struct profile_store_options options = {
                .size = sizeof options,
                .flush_interval_ms = UINT64_MAX,
                .removed_grace_ms = 3600000, /* set explicitly, because opening removes old files */
                .part_rows = 1
        };

        return profile_store_open(dir, &options, &store, err);
}

static void close_store(void)
{
        profile_store_close(store);
        store = NULL;
}

/* Samples of value 1, each on a stack of its own. */
static enum status append(struct error *err)
{
        struct test_profile t;
        enum status st;

        test_profile_init(&t, ID, "/bin/x");
        for (unsigned i = 0; i < SAMPLES; i++) {
                uint32_t leaf = test_location(&t, 0x1000 + i);

                test_sample(&t, T0 + i, 1, &leaf, 1, i ? (const char *const[]){ "odd=1", NULL } : NULL);
        }
        st = profile_store_append(store, &t.p, hash_bytes128("batch", 5), NULL, err);
        test_profile_deinit(&t);
        return st;
}

static enum status take_step(unsigned number, struct error *err)
{
        switch (number) {
        case APPENDED:
                return append(err);
        case FLUSHED:
                return profile_store_flush(store, err);
        default:
                return profile_store_compact(store, NULL, NULL, NULL, err);
        }
}

static enum status resume_steps(struct error *err)
{
        return fault_resume_store(store, NULL, STEPS, take_step, err);
}

/* ---- checks ---- */

static void check_counts(uint32_t acknowledged)
{
        unsigned seen = fault_find_samples(store, SAMPLES, 1, NULL);

        must(seen == (1u << SAMPLES) - 1 || (!seen && !(acknowledged >> APPENDED & 1)), "samples are lost: %x", seen);
}

static void is_compacted(void)
{
        for (int t = 0; t <= TABLE_LOCATIONS; t++)
                must(store->tables->part_count[t] == 1, "%zu files of %s", store->tables->part_count[t], table_name(t));
}

static bool is_live(const char *path)
{
        for (int t = 0; t < TABLE_COUNT; t++) {
                for (size_t i = 0; i < store->tables->part_count[t]; i++) {
                        if (strcmp(path_base(store->tables->parts[t][i]->path), path_base(path)) == 0)
                                return true;
                }
        }
        return false;
}

static int is_no_leftover(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
        (void)st;
        (void)flag;
        (void)ftw;
        must(!strstr(path, "/.tmp-"), "'%s' stays", path);
        must(!strstr(path, "/compact-") || is_live(path), "'%s' stays", path);
        return 0;
}

static void reopen(const char *dir)
{
        struct error err = { 0 };

        close_store();
        must(open_store(dir, &err) == ST_OK, "%s", err.text);
}

static void check(const char *dir, uint32_t acknowledged)
{
        struct error err = { 0 };

        reopen(dir);
        check_counts(acknowledged);
        if (acknowledged >> COMPACTED & 1)
                is_compacted();
        fault_age_files(dir);
        reopen(dir);
        ck_assert_int_eq(nftw(dir, is_no_leftover, 16, FTW_PHYS), 0);
        check_counts(acknowledged);
        if (acknowledged >> FLUSHED & 1) {
                must(profile_store_compact(store, NULL, NULL, NULL, &err) == ST_OK, "%s", err.text);
                is_compacted();
                check_counts(acknowledged);
        }
        close_store();
}

static const struct scenario scenario = { open_store, resume_steps, close_store, check, (UINT32_C(1) << STEPS) - 1 };

START_TEST(batches_count_once_after_kill_at_any_step_of_compaction)
{
        fault_loop_kills(&scenario);
}
END_TEST

START_TEST(failed_call_during_compaction_neither_loses_nor_duplicates)
{
        fault_loop_errors(&scenario);
}
END_TEST

START_TEST(full_disk_during_compaction_is_reported_and_recovered)
{
        fault_loop_full_disk(&scenario);
}
END_TEST

START_TEST(power_cut_during_compaction_neither_loses_nor_duplicates)
{
        fault_loop_power_cuts(&scenario);
}
END_TEST

START_TEST(interrupted_calls_during_compaction_neither_lose_nor_duplicate)
{
        fault_loop_interrupts(&scenario);
}
END_TEST

START_TEST(late_power_cut_during_compaction_neither_loses_nor_duplicates)
{
        fault_loop_late_power_cuts(&scenario);
}
END_TEST

int main(void)
{
        const TTest *const tests[] = { batches_count_once_after_kill_at_any_step_of_compaction,
                                       failed_call_during_compaction_neither_loses_nor_duplicates,
                                       full_disk_during_compaction_is_reported_and_recovered,
                                       power_cut_during_compaction_neither_loses_nor_duplicates,
                                       interrupted_calls_during_compaction_neither_lose_nor_duplicate,
                                       late_power_cut_during_compaction_neither_loses_nor_duplicates };

        setenv("CK_TIMEOUT_MULTIPLIER", "4", 0); /* thousands of states: slow on a busy machine */
        return suite_run("faults compaction", tests, sizeof tests / sizeof *tests);
}
