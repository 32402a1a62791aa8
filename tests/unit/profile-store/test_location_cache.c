/* SPDX-License-Identifier: Apache-2.0 */
/* The cache of decoded locations: when row groups are cached, what queries read from it, and eviction with the part. */
#include <string.h>

#include "common/limits.h"
#include "common/memory/memory_budget.h"
#include "common/text.h"
#include "profile-store/core/profile_store_internal.h"
#include "profile-store/profile_store.h"
#include "profile-store/scan.h"
#include "profile-store/tables/location_cache.h"
#include "tests/support/profiles.h"
#include "tests/support/store_fixture.h"
#include "tests/support/suite.h"

#define LOCATIONS 50

static struct store_fixture fixture;

static void begin_with_flushed_locations(void)
{
        struct error err;
        _cleanup_free_ char *index = NULL;

        store_fixture_begin(&fixture);
        index = store_fixture_path(&fixture, "index");
        check_ok(symbol_index_open(index, false, &fixture.options.symbols, &err), &err);
        store_fixture_reopen(&fixture);
        for (unsigned i = 0; i < LOCATIONS; i++)
                store_fixture_append(&fixture, i, 0x1000 + 0x10 * i);
        store_fixture_flush(&fixture);
}

static void tear_down(void)
{
        struct symbol_index *symbols = fixture.options.symbols;

        store_fixture_end(&fixture);
        symbol_index_close(symbols);
        fixture.options.symbols = NULL;
}

/* Resolve all stacks: each has one location at an address of its own, with or without frames. */
static void expect_locations(bool with_frames)
{
        const struct scan_filter all = { 0, INT64_MAX, NULL, NULL, 0 };
        const struct scan_stacks *s;
        bool seen[LOCATIONS] = { 0 };
        struct store_scan *scan;
        struct stack_sums sums;
        struct error err;

        check_ok(store_scan_begin(fixture.store, &scan, &err), &err);
        check_ok(store_scan_sum(scan, &all, &sums, &err), &err);
        check_ok(store_scan_resolve(scan, &sums, &s, &err), &err);
        ck_assert_uint_eq(s->count, LOCATIONS);
        ck_assert_uint_eq(s->location_count, LOCATIONS);
        for (size_t i = 0; i < s->count; i++) {
                const struct scan_location *l = &s->locations[s->indexes[s->first[i]]];
                uint64_t number = (l->address - 0x1000) / 0x10;

                ck_assert_uint_eq(s->first[i + 1] - s->first[i], 1);
                ck_assert_uint_lt(number, LOCATIONS);
                ck_assert(!seen[number]);
                seen[number] = true;
                ck_assert_str_eq(l->mapping, "/bin/x");
                ck_assert_int_eq(l->frame_count > 0, with_frames);
                for (uint32_t k = 0; k < l->frame_count; k++)
                        ck_assert(starts_with(l->frames[k].function, "work"));
        }
        stack_sums_deinit(&sums);
        store_scan_end(scan);
}

START_TEST(second_query_fills_cache_and_later_ones_use_it)
{
        size_t before;

        begin_with_flushed_locations();
        expect_locations(false);
        before = memory_use_held(MEMORY_CACHES); /* the first query has cached its stacks */
        expect_locations(false);
        ck_assert_uint_ge(memory_use_held(MEMORY_CACHES), before + LOCATIONS * sizeof(struct scan_location));
        before = memory_use_held(MEMORY_CACHES);
        for (int i = 0; i < 3; i++)
                expect_locations(false);
        ck_assert_uint_eq(memory_use_held(MEMORY_CACHES), before);
        tear_down();
}
END_TEST

START_TEST(locations_resolved_later_replace_cached_ones)
{
        struct resymbolize_result result;
        struct error err;
        size_t stacks, cached;

        begin_with_flushed_locations();
        expect_locations(false);
        stacks = memory_use_held(MEMORY_CACHES);
        expect_locations(false);
        cached = memory_use_held(MEMORY_CACHES);
        test_load_symbols(fixture.options.symbols, STORE_FIXTURE_ID, QUALITY_DWARF, 0x1000, LOCATIONS / 16 + 1, "work",
                          "/src/work.c");
        check_ok(profile_store_resymbolize(fixture.store, &(struct resymbolize_request){ 0 }, &result, &err), &err);
        ck_assert_uint_eq(result.locations_changed, LOCATIONS);
        ck_assert_uint_eq(memory_use_held(MEMORY_CACHES), stacks); /* the cached rows were evicted with their part */
        for (int i = 0; i < 3; i++)
                expect_locations(true);
        ck_assert_uint_ge(memory_use_held(MEMORY_CACHES), cached);
        tear_down();
}
END_TEST

START_TEST(startup_fills_cache)
{
        static const atomic_bool never;
        size_t before;

        begin_with_flushed_locations();
        before = memory_use_held(MEMORY_CACHES);
        location_cache_fill(fixture.store->tables, &never);
        ck_assert_uint_ge(memory_use_held(MEMORY_CACHES), before + LOCATIONS * sizeof(struct scan_location));
        expect_locations(false);
        tear_down();
}
END_TEST

START_TEST(queries_read_files_without_cache_memory)
{
        struct memory_reservation all = { .use = MEMORY_CACHES };
        struct error err;

        check_ok(memory_budget_set_limit(LIMIT_MEMORY_LEAST_BYTES, &err), &err);
        begin_with_flushed_locations();
        for (size_t n = memory_use_ceiling(MEMORY_CACHES); n; n /= 2)
                while (!memory_reserve(&all, n, NULL))
                        ;
        for (int i = 0; i < 3; i++)
                expect_locations(false);
        memory_release(&all);
        tear_down();
        ck_assert_uint_eq(memory_use_held(MEMORY_CACHES), 0);
}
END_TEST

TEST_SUITE("location_cache", second_query_fills_cache_and_later_ones_use_it,
           locations_resolved_later_replace_cached_ones, startup_fills_cache, queries_read_files_without_cache_memory)
