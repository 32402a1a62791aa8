/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Concurrent appends, flushes, re-symbolization, compaction and queries: a query must see every batch acknowledged
 * before it started exactly once, while batches move from the head to parts and from part to part.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "common/files/file.h"
#include "profile-store/profile_store.h"
#include "profile-store/scan.h"
#include "tests/support/profiles.h"
#include "tests/support/suite.h"
#include "tests/support/temporary_dir.h"

#define ID "00112233445566778899aabbccddeeff00112233"
#define T0 INT64_C(1728000000000000000)
#define APPENDERS 3
#define BATCHES 60

static struct profile_store *store;
static struct symbol_index *symbols;
static atomic_int begun, acknowledged, appenders_done;

static void *append_all(void *context)
{
        uint32_t thread = (uint32_t)(uintptr_t)context;

        for (uint32_t i = 0; i < BATCHES; i++) {
                const uint32_t identity[] = { thread, i };
                struct test_profile t;
                struct error err;
                uint32_t leaf;

                test_profile_init(&t, ID, "/bin/x");
                leaf = test_location(&t, 0x1000 + i);
                test_sample(&t, T0, 1, &leaf, 1, NULL);
                atomic_fetch_add(&begun, 1);
                check_ok(profile_store_append(store, &t.p, hash_bytes128(identity, sizeof identity), NULL, &err), &err);
                atomic_fetch_add(&acknowledged, 1);
                test_profile_deinit(&t);
                if (thread == 0 && i == BATCHES / 2) /* two files at least, on a fast machine too */
                        check_ok(profile_store_flush(store, &err), &err);
        }
        atomic_fetch_add(&appenders_done, 1);
        return NULL;
}

/* Symbols of increasing quality: each round rewrites what earlier rounds and flushes have written. */
static void *resymbolize_all(void *context)
{
        char name[32];
        struct error err;

        (void)context;
        for (int q = QUALITY_DYNSYM; q <= QUALITY_DWARF; q++) {
                snprintf(name, sizeof name, "quality%d", q);
                test_load_symbols(symbols, ID, q, 0x1000, 1, name, "/src/x.c");
                check_ok(profile_store_resymbolize(store, &(struct resymbolize_request){ 0 }, NULL, &err), &err);
        }
        while (atomic_load(&appenders_done) < APPENDERS)
                check_ok(profile_store_resymbolize(store, &(struct resymbolize_request){ 0 }, NULL, &err), &err);
        return NULL;
}

/* In addition to the compaction thread, which waits until there are ten files. */
static void *compact_all(void *context)
{
        uint64_t *merges = context;
        struct compaction_result r;
        struct error err = { 0 };

        do {
                check_ok(profile_store_compact(store, NULL, NULL, &r, &err), &err);
                ck_assert_uint_eq(r.skipped_files, 0);
                *merges += r.merges;
        } while (atomic_load(&appenders_done) < APPENDERS);
        return NULL;
}

static int64_t total(void)
{
        const struct scan_filter all = { 0, INT64_MAX, NULL, NULL, 0 };
        struct store_scan *scan;
        struct stack_sums sums;
        const struct scan_stacks *stacks;
        struct error err;
        int64_t ret = 0;

        check_ok(store_scan_begin(store, &scan, &err), &err);
        check_ok(store_scan_sum(scan, &all, &sums, &err), &err);
        check_ok(store_scan_resolve(scan, &sums, &stacks, &err), &err);
        for (size_t i = 0; i < sums.count; i++) {
                ck_assert_uint_eq(stacks->first[i + 1] - stacks->first[i], 1);
                ck_assert_str_eq(stacks->locations[stacks->indexes[stacks->first[i]]].mapping, "/bin/x");
                ret += sums.items[i].value;
        }
        stack_sums_deinit(&sums);
        store_scan_end(scan);
        return ret;
}

START_TEST(a_query_sees_each_acknowledged_batch_once_while_they_are_flushed)
{
        char dir[TEMPORARY_DIR_BYTES];
        struct profile_store_options options = { .size = sizeof options, .flush_interval_ms = 5 };
        _cleanup_free_ char *index = NULL;
        pthread_t threads[APPENDERS], resymbolizer, compactor;
        uint64_t merges = 0;
        struct profile_store_stat stat;
        struct error err;

        temporary_dir_create(dir, "threads");
        index = path_join(dir, "index");
        check_ok(symbol_index_open(index, false, &symbols, &err), &err);
        options.symbols = symbols;
        check_ok(profile_store_open(dir, &options, &store, &err), &err);
        for (uintptr_t i = 0; i < APPENDERS; i++)
                ck_assert_int_eq(pthread_create(&threads[i], NULL, append_all, (void *)i), 0);
        ck_assert_int_eq(pthread_create(&resymbolizer, NULL, resymbolize_all, NULL), 0);
        ck_assert_int_eq(pthread_create(&compactor, NULL, compact_all, &merges), 0);
        while (atomic_load(&appenders_done) < APPENDERS) {
                int least = atomic_load(&acknowledged);
                int64_t seen = total();

                ck_assert_int_ge(seen, least);
                ck_assert_int_le(seen, atomic_load(&begun));
        }
        for (int i = 0; i < APPENDERS; i++)
                pthread_join(threads[i], NULL);
        pthread_join(resymbolizer, NULL);
        pthread_join(compactor, NULL);
        check_ok(profile_store_flush(store, &err), &err);
        ck_assert_int_eq(total(), APPENDERS * BATCHES);
        compact_all(&merges);
        ck_assert_uint_gt(merges, 0);
        ck_assert_int_eq(total(), APPENDERS * BATCHES);
        check_ok(profile_store_stat(store, &stat, &err), &err);
        ck_assert_uint_eq(stat.sample_rows, APPENDERS * BATCHES);
        ck_assert_uint_eq(stat.location_rows, BATCHES);
        ck_assert_uint_eq(stat.failed_flushes, 0);
        ck_assert_uint_eq(stat.sample_files, 1);
        ck_assert_uint_eq(stat.location_files, 1);
        ck_assert_uint_eq(stat.unresolved_locations, 0);
        profile_store_close(store);
        symbol_index_close(symbols);
        temporary_dir_remove(dir);
}
END_TEST

/* A file of stacks per day, so that threads share them; half of a day's stacks are those of the previous day. */
START_TEST(stacks_of_many_days_are_found_by_several_threads)
{
        enum { DAYS = 12, STACKS = 40, ROUNDS = 8 };
        const int64_t day_ns = INT64_C(86400000000000);
        char dir[TEMPORARY_DIR_BYTES];
        const struct profile_store_options options = { .size = sizeof options, .flush_interval_ms = 1000000 };
        struct error err;

        temporary_dir_create(dir, "threads");
        check_ok(profile_store_open(dir, &options, &store, &err), &err);
        for (uint32_t day = 0; day < DAYS; day++) {
                struct test_profile t;

                test_profile_init(&t, ID, "/bin/x");
                for (uint32_t i = 0; i < STACKS; i++) {
                        uint32_t leaf = test_location(&t, 0x1000 + day * STACKS / 2 + i);

                        test_sample(&t, T0 + day * day_ns, 1, &leaf, 1, NULL);
                }
                check_ok(profile_store_append(store, &t.p, hash_bytes128(&day, sizeof day), NULL, &err), &err);
                test_profile_deinit(&t);
        }
        check_ok(profile_store_flush(store, &err), &err);
        for (int round = 0; round < ROUNDS; round++) { /* each with an empty cache */
                profile_store_close(store);
                check_ok(profile_store_open(dir, &options, &store, &err), &err);
                ck_assert_int_eq(total(), DAYS * STACKS);
        }
        profile_store_close(store);
        temporary_dir_remove(dir);
}
END_TEST

TEST_SUITE("profile store threads", a_query_sees_each_acknowledged_batch_once_while_they_are_flushed,
           stacks_of_many_days_are_found_by_several_threads)
