/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The profile store and the symbol index with injected faults: batches that are acknowledged, flushed into the tables,
 * and re-symbolized once symbols are loaded.
 * Time limit: 900 s.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "common/files/file.h"
#include "profile-store/profile_store.h"
#include "profile-store/core/profile_store_internal.h"
#include "profile-store/queue/quarantine.h"
#include "symbol-index/index_load.h"
#include "symbol-index/index_verify.h"
#include "tests/faults/fault_fs.h"
#include "tests/faults/fault_samples.h"
#include "tests/support/profiles.h"
#include "tests/support/suite.h"
#include "tests/support/temporary_dir.h"

#define ID "00112233445566778899aabbccddeeff00112233"
#define T0 (INT64_C(20000) * INT64_C(86400000000000))
#define DAY_NS INT64_C(86400000000000)
#define BATCHES 4
#define RANGES 24 /* so that several pages of the index are written */

/* The steps, in this order; the first ones are batches. */
enum { LAST_BATCH = BATCHES - 1, FLUSHED, LOADED, RESYMBOLIZED, AGAIN, STEPS };

static struct profile_store *store;
static struct symbol_index *symbols;
static uint64_t resymbolize_rows;

/* For the open store and each one opened later. */
static enum status (*injected_failure)(const struct batch *b, struct error *err);

static void inject_flush_failure(enum status (*failure)(const struct batch *b, struct error *err))
{
        injected_failure = failure;
        if (store)
                store->inject_failure = failure;
}

static enum status open_both(const char *dir, struct error *err)
{
        _cleanup_free_ char *index = path_join(dir, "index"), *profiles = path_join(dir, "profiles");
        struct profile_store_options options = {
                .size = sizeof options, .flush_interval_ms = UINT64_MAX, .removed_grace_ms = 3600000
        }; /* set explicitly, because opening removes old files */
        enum status st = symbol_index_open(index, false, &symbols, err);

        options.symbols = symbols;
        options.resymbolize_rows = resymbolize_rows;
        if (!st)
                st = profile_store_open(profiles, &options, &store, err);
        if (!st)
                store->inject_failure = injected_failure;
        return st;
}

static void close_both(void)
{
        if (store)
                profile_store_close(store);
        symbol_index_close(symbols);
        store = NULL;
        symbols = NULL;
}

/* One sample of value 1 on a stack of its own; odd ones have a label, late ones are from the next day. */
static enum status append(unsigned i, struct error *err)
{
        struct test_profile t;
        uint32_t leaf;
        enum status st;

        test_profile_init(&t, ID, "/bin/x");
        leaf = test_location(&t, 0x1000 + 0x100 * i);
        test_sample(&t, T0 + (i / 2) * DAY_NS, 1, &leaf, 1, i % 2 ? (const char *const[]){ "odd=1", NULL } : NULL);
        st = profile_store_append(store, &t.p, hash_bytes128(&i, sizeof i), NULL, err);
        test_profile_deinit(&t);
        return st;
}

static enum status load_symbols(struct error *err)
{
        struct symbol_table t = { .quality = QUALITY_DWARF };
        bool replaced;
        uint64_t generation;
        size_t at = 1;
        enum status st;

        ck_assert(build_id_from_hex(&t.build_id, ID, strlen(ID)));
        t.ranges = calloc(RANGES, sizeof *t.ranges);
        t.chains = calloc(RANGES, sizeof *t.chains);
        t.frames = calloc(RANGES, sizeof *t.frames);
        t.functions = calloc(RANGES, sizeof *t.functions);
        t.strings = calloc(RANGES + 1, 32);
        for (uint32_t i = 0; i < RANGES; i++) {
                t.ranges[i] = (struct symbol_range){ 0x1000 + 0x100 * i, 0x1100 + 0x100 * i, i };
                t.chains[i] = (struct symbol_chain){ i, 1 };
                t.frames[i] = (struct symbol_table_frame){ i, 0, i + 1 };
                t.functions[i].name = (uint32_t)at;
                at += (size_t)snprintf(t.strings + at, 32, "function_%u", i) + 1;
        }
        t.range_count = t.chain_count = t.frame_count = t.function_count = RANGES;
        t.string_bytes = (uint32_t)at;
        ck_assert_int_eq(symbol_table_check(&t, err), ST_OK);
        st = symbol_index_load(symbols, &t, &replaced, &generation, err);
        symbol_table_deinit(&t);
        return st;
}

static enum status step(unsigned number, struct error *err)
{
        switch (number) {
        case FLUSHED:
        case AGAIN:
                return profile_store_flush(store, err);
        case LOADED:
                return load_symbols(err);
        case RESYMBOLIZED:
                return profile_store_resymbolize(store, &(struct resymbolize_request){ 0 }, NULL, err);
        default:
                return append(number, err);
        }
}

/* One batch is appended after the first flush. */
static enum status resume_steps(struct error *err)
{
        static const unsigned order[STEPS] = { 0, 1, 2, FLUSHED, LOADED, RESYMBOLIZED, LAST_BATCH, AGAIN };
        return fault_resume_store(store, order, STEPS, step, err);
}

/* ---- checks ---- */

static void is_named(const struct scan_location *l, unsigned i)
{
        char name[32];

        snprintf(name, sizeof name, "function_%u", i);
        must(l->frame_count == 1 && strcmp(l->frames[0].function, name) == 0, "batch %u has no names (%s)", i,
             l->state);
}

static void check_counts(uint32_t acknowledged)
{
        unsigned seen = fault_find_samples(store, BATCHES, 0x100, acknowledged >> RESYMBOLIZED & 1 ? is_named : NULL);

        must((acknowledged & ((1u << BATCHES) - 1) & ~seen) == 0, "acknowledged %x, there are %x", acknowledged, seen);
}

static void report_problem(void *context, const char *text)
{
        (void)context;
        must(false, "%s", text);
}

static void check_index(uint32_t acknowledged)
{
        struct index_verify v = { .problem = report_problem };
        struct error err = { 0 };

        must(symbol_index_verify(symbols, &v, &err) == ST_OK, "%s", err.text);
        must(v.objects == 1 || !(acknowledged >> LOADED & 1), "the symbols are lost");
}

static int is_no_leftover(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
        (void)st;
        (void)flag;
        (void)ftw;
        must(!strstr(path, "/.tmp-"), "'%s' stays", path);
        return 0;
}

static void reopen(const char *dir)
{
        struct error err = { 0 };

        close_both();
        must(open_both(dir, &err) == ST_OK, "%s", err.text);
}

static void check(const char *dir, uint32_t acknowledged)
{
        struct error err = { 0 };

        reopen(dir);
        check_counts(acknowledged);
        check_index(acknowledged);
        for (unsigned i = 0; i < BATCHES; i++)
                must(append(i, &err) == ST_OK, "%s", err.text); /* again, by senders that got no response */
        must(profile_store_flush(store, &err) == ST_OK, "%s", err.text);
        check_counts(acknowledged | ((1u << BATCHES) - 1));
        fault_age_files(dir);
        reopen(dir);
        check_counts(acknowledged | ((1u << BATCHES) - 1));
        ck_assert_int_eq(nftw(dir, is_no_leftover, 16, FTW_PHYS), 0);
        close_both();
}

static const struct scenario scenario = { open_both, resume_steps, close_both, check, (UINT32_C(1) << STEPS) - 1 };

START_TEST(batches_count_once_after_kill_at_any_step)
{
        fault_loop_kills(&scenario);
}
END_TEST

START_TEST(failed_call_neither_loses_nor_duplicates)
{
        fault_loop_errors(&scenario);
}
END_TEST

START_TEST(full_disk_is_reported_and_recovered)
{
        fault_loop_full_disk(&scenario);
}
END_TEST

START_TEST(interrupted_write_has_no_effect)
{
        fault_loop_interrupts(&scenario);
}
END_TEST

START_TEST(power_cut_neither_loses_nor_duplicates)
{
        fault_loop_power_cuts(&scenario);
}
END_TEST

START_TEST(power_cut_following_fault_neither_loses_nor_duplicates)
{
        fault_loop_late_power_cuts(&scenario);
}
END_TEST

/* ---- a batch whose flush fails ---- */

static enum status fail_second_batch(const struct batch *b, struct error *err)
{
        unsigned second = 1;
        struct hash128 id = hash_bytes128(&second, sizeof second);

        return memcmp(&b->batch_id, &id, sizeof id) == 0 ? error_set(err, ST_TOO_BIG, "made to fail by a test") : ST_OK;
}

/* It is queued, quarantined or back in the tables, and in exactly one of these places. */
static void check_quarantine(const char *dir, uint32_t acknowledged)
{
        _cleanup_free_ char *profiles = path_join(dir, "profiles");
        _cleanup_free_ struct quarantine_item *items = NULL;
        struct error err = { 0 };
        size_t count;

        inject_flush_failure(fail_second_batch);
        reopen(dir);
        for (unsigned i = 0; i < BATCHES; i++)
                must(append(i, &err) == ST_OK, "%s", err.text);
        must(profile_store_flush(store, &err) == ST_OK, "%s", err.text);
        must(quarantine_list(profiles, &items, &count, &err) == ST_OK, "%s", err.text);
        must(count <= 1 && (!count || !items[0].damaged), "%zu batches in the quarantine", count);
        check_counts(acknowledged & ~2u & ((1u << BATCHES) - 1));
        inject_flush_failure(NULL);
        if (count) /* a previous check has already put it back */
                must(profile_store_requeue(store, &items[0], &err) == ST_OK, "%s", err.text);
        must(profile_store_flush(store, &err) == ST_OK, "%s", err.text);
        check_counts((1u << BATCHES) - 1);
        reopen(dir);
        check_counts((1u << BATCHES) - 1);
        free(steal_ptr(items));
        must(quarantine_list(profiles, &items, &count, &err) == ST_OK && count == 0, "%zu stay in the quarantine",
             count);
        close_both();
        inject_flush_failure(fail_second_batch);
}

static enum status resume_quarantine(struct error *err)
{
        static const unsigned order[] = { 0, 1, 2, LAST_BATCH, FLUSHED };

        inject_flush_failure(fail_second_batch);
        return fault_resume_store(store, order, sizeof order / sizeof *order, step, err);
}

static const struct scenario quarantine_scenario = { open_both, resume_quarantine, close_both, check_quarantine,
                                                     (UINT32_C(1) << (FLUSHED + 1)) - 1 };

START_TEST(batches_count_once_after_kill_at_any_step_of_quarantine)
{
        fault_loop_kills(&quarantine_scenario);
}
END_TEST

START_TEST(failed_call_during_quarantine_neither_loses_nor_duplicates)
{
        fault_loop_errors(&quarantine_scenario);
}
END_TEST

/* Killed at each step of putting a batch back into the queue. */
START_TEST(batch_of_killed_retry_counts_once)
{
        bool killed = true;

        for (unsigned at = 1; killed; at++) {
                char dir[TEMPORARY_DIR_BYTES];
                _cleanup_free_ char *profiles = NULL;
                _cleanup_free_ struct quarantine_item *items = NULL;
                struct error err = { 0 };
                size_t count;
                int status;
                pid_t child;

                ck_assert_uint_lt(at, 200);
                temporary_dir_create(dir, "faults");
                profiles = path_join(dir, "profiles");
                inject_flush_failure(fail_second_batch);
                ck_assert_msg(open_both(dir, &err) == ST_OK, "%s", err.text);
                ck_assert(append(0, &err) == ST_OK && append(1, &err) == ST_OK &&
                          profile_store_flush(store, &err) == ST_OK);
                close_both();
                inject_flush_failure(NULL);
                ck_assert_int_eq(quarantine_list(profiles, &items, &count, &err), ST_OK);
                ck_assert_uint_eq(count, 1);
                child = fork();
                ck_assert_int_ge(child, 0);
                if (!child) {
                        fault_fs_watch(dir);
                        fault_fs_kill_at(at);
                        _exit(open_both(dir, &err) || profile_store_requeue(store, &items[0], &err));
                }
                ck_assert_int_eq(waitpid(child, &status, 0), child);
                killed = WIFSIGNALED(status);
                ck_assert(killed || WEXITSTATUS(status) == 0);
                ck_assert_msg(open_both(dir, &err) == ST_OK, "%s", err.text);
                free(steal_ptr(items));
                ck_assert_int_eq(quarantine_list(profiles, &items, &count, &err), ST_OK);
                if (count)
                        ck_assert_msg(profile_store_requeue(store, &items[0], &err) == ST_OK, "%s", err.text);
                ck_assert_msg(profile_store_flush(store, &err) == ST_OK, "%s", err.text);
                check_counts(3);
                close_both();
                temporary_dir_remove(dir);
        }
}
END_TEST

/* ---- a flush between two rounds of re-symbolization ---- */

struct between {
        unsigned fail_at; /* step of the flush that fails; 0: none */
        unsigned steps, rounds;
        bool failed;
};

static void flush_between(void *context, uint64_t done, uint64_t all)
{
        struct between *b = context;
        struct error err = { 0 };

        if (b->rounds++)
                return;
        ck_assert_uint_lt(done, all);
        ck_assert_msg(append(LAST_BATCH, &err) == ST_OK, "%s", err.text);
        if (b->fail_at)
                fault_fs_fail_at(b->fail_at, EIO);
        else
                fault_fs_count();
        b->failed = profile_store_flush(store, &err) != ST_OK;
        b->steps = fault_fs_steps();
        fault_fs_off();
}

static void resymbolize_with_flush_between(struct between *b)
{
        char dir[TEMPORARY_DIR_BYTES];
        struct error err = { 0 };

        temporary_dir_create(dir, "faults");
        fault_fs_watch(dir);
        ck_assert_msg(open_both(dir, &err) == ST_OK, "%s", err.text);
        for (unsigned i = 0; i < LAST_BATCH; i++) /* each flush writes a part, and each part is a round */
                ck_assert_msg(append(i, &err) == ST_OK && profile_store_flush(store, &err) == ST_OK, "%s", err.text);
        ck_assert_int_eq(load_symbols(&err), ST_OK);
        ck_assert_msg(profile_store_resymbolize(
                              store, &(struct resymbolize_request){ .progress = flush_between, .context = b }, NULL,
                              &err) == ST_OK,
                      "%s", err.text);
        ck_assert_uint_eq(b->rounds, LAST_BATCH);
        ck_assert_msg(append(LAST_BATCH, &err) == ST_OK && profile_store_flush(store, &err) == ST_OK, "%s", err.text);
        check_counts((1u << BATCHES) - 1);
        close_both();
        temporary_dir_remove(dir);
}

START_TEST(flush_that_fails_between_resymbolization_rounds_is_repeated)
{
        struct between b = { 0 };
        unsigned steps, failed = 0;

        resymbolize_rows = 1;
        resymbolize_with_flush_between(&b);
        ck_assert(!b.failed);
        steps = b.steps;
        for (unsigned at = 1; at <= steps; at++) {
                b = (struct between){ .fail_at = at };
                resymbolize_with_flush_between(&b);
                failed += b.failed;
        }
        ck_assert_uint_gt(failed, steps / 2);
}
END_TEST

int main(void)
{
        const TTest *const tests[] = { batches_count_once_after_kill_at_any_step,
                                       failed_call_neither_loses_nor_duplicates,
                                       full_disk_is_reported_and_recovered,
                                       interrupted_write_has_no_effect,
                                       power_cut_neither_loses_nor_duplicates,
                                       power_cut_following_fault_neither_loses_nor_duplicates,
                                       batches_count_once_after_kill_at_any_step_of_quarantine,
                                       failed_call_during_quarantine_neither_loses_nor_duplicates,
                                       batch_of_killed_retry_counts_once,
                                       flush_that_fails_between_resymbolization_rounds_is_repeated };

        setenv("CK_TIMEOUT_MULTIPLIER", "4", 0); /* thousands of states: slow on a busy machine */
        return suite_run("faults profiles", tests, sizeof tests / sizeof *tests);
}
