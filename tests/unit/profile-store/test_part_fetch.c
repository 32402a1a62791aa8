/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time limit: 120 s.
 *
 * A query whose files are in an object store and not in the cache asks for the files of each table at the same time.
 */
#include <pthread.h>
#include <string.h>

#include "common/clock.h"
#include "common/limits.h"
#include "common/threads/condition.h"
#include "common/threads/waiting_tasks.h"
#include "profile-store/scan/table_scan.h"
#include "profile-store/tables/part_fetch.h"
#include "profile-store/tables/table_storage.h"
#include "tests/support/node_fleet.h"
#include "tests/support/store_fixture.h"

#define FLUSHES 6
#define HOLD_S 30 /* requests that are made one after the other wait for so long, and fail the test */

static struct node_fleet fleet;
static struct faulty_storage *storage;
static unsigned flushes; /* of node 0, each with a stack of its own */

/* Each map of a file waits until those of all files of its table have begun; later ones do not wait. */
static struct {
        pthread_mutex_t lock;
        pthread_cond_t changed;
        size_t expected[TABLE_COUNT], begun[TABLE_COUNT];
        bool was_alone;
} maps = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static void hold_map(int t)
{
        const int64_t until_ns = monotonic_ns() + HOLD_S * INT64_C(1000000000);

        pthread_mutex_lock(&maps.lock);
        maps.begun[t]++;
        pthread_cond_broadcast(&maps.changed);
        while (maps.begun[t] < maps.expected[t] && monotonic_ns() < until_ns)
                condition_wait_until(&maps.changed, &maps.lock, until_ns);
        maps.was_alone |= maps.begun[t] < maps.expected[t];
        pthread_mutex_unlock(&maps.lock);
}

static void hold_maps_of_tables(struct faulty_storage *f, const char *call, const char *key)
{
        (void)f;
        for (int t = 0; t < TABLE_COUNT && strcmp(call, "map") == 0; t++)
                if (strncmp(key, table_name(t), strlen(table_name(t))) == 0 && key[strlen(table_name(t))] == '/')
                        hold_map(t);
}

static void begin_fleet(unsigned count)
{
        flushes = count;
        fleet = (struct node_fleet){ .hands_nothing = true };
        node_fleet_begin(&fleet, 2);
        for (unsigned i = 0; i < flushes; i++) {
                node_fleet_append_stack(&fleet, 0, i, 0x1000 + 16 * i);
                node_fleet_flush(&fleet, 0);
        }
        node_fleet_follow(&fleet, 1);
        storage = fleet.nodes[1].storage;
        storage->lacked = "";
}

static void set_up(void)
{
        begin_fleet(FLUSHES);
}

static void tear_down(void)
{
        storage->before = NULL;
        node_fleet_end(&fleet);
}

START_TEST(the_files_of_each_table_are_asked_for_at_the_same_time)
{
        const struct tables *t = fleet.nodes[1].store->tables;

        for (int i = 0; i < TABLE_COUNT; i++)
                maps.expected[i] = i == TABLE_HISTORY ? 0 : t->part_count[i];
        ck_assert_uint_eq(maps.expected[TABLE_SAMPLES], FLUSHES);
        ck_assert_uint_eq(maps.expected[TABLE_STACKS], FLUSHES);
        storage->before = hold_maps_of_tables;
        ck_assert_int_eq(node_fleet_sum(&fleet, 1), FLUSHES);
        ck_assert(!maps.was_alone);
}
END_TEST

static enum status fetch_samples(struct table_part *const *parts, size_t count, struct error *err)
{
        static const char *const columns[] = { "value", "time", "no such column" };
        const struct part_fetch what = { .columns = columns, .column_count = 3 };

        return part_files_fetch(parts, count, &what, NULL, err);
}

START_TEST(only_a_store_that_does_not_answer_is_a_failure)
{
        const struct tables *t = fleet.nodes[1].store->tables;
        struct table_part *const *parts = t->parts[TABLE_SAMPLES];
        struct error err = { 0 };

        check_ok(fetch_samples(parts, FLUSHES, &err), &err);
        faulty_storage_set(storage, STORAGE_FAULT_CUT, 4);
        ck_assert_int_eq(fetch_samples(parts, FLUSHES, &err), ST_OS);
        faulty_storage_set(storage, STORAGE_FAULT_NONE, 0);
        check_ok(storage_remove(storage->inner, parts[2]->key, &err), &err);
        check_ok(fetch_samples(parts, FLUSHES, &err), &err); /* its reader reports that it is missing */
        storage->lacked = NULL;
        faulty_storage_set(storage, STORAGE_FAULT_CUT, 1);
        check_ok(fetch_samples(parts, FLUSHES, &err), &err); /* nothing is asked for */
}
END_TEST

/* ---- files of the cache ---- */

/* Called for the stack of each flush alone. */
typedef void take_resolved(enum status st);

static void resolve_each_stack(take_resolved *take)
{
        const struct scan_filter all = { INT64_MIN, INT64_MAX, NULL, NULL, 0 };
        struct profile_store *s = fleet.nodes[1].store;
        struct stack_sums sums = { 0 };
        struct store_scan *scan;
        struct error err;

        check_ok(store_scan_begin_tables(s, s->tables, &scan, &err), &err);
        check_ok(store_scan_sum(scan, &all, &sums, &err), &err);
        ck_assert_uint_eq(sums.count, flushes);
        for (size_t i = 0; i < sums.count; i++) {
                struct stack_sums one = sums;
                const struct scan_stacks *stacks;
                enum status st;

                one.items += i;
                one.count = 1;
                st = store_scan_resolve(scan, &one, &stacks, &err);
                if (!st) {
                        ck_assert_uint_eq(stacks->location_count, 1);
                        ck_assert(stacks->locations[0].build_id->size);
                }
                take(st);
        }
        stack_sums_deinit(&sums);
        store_scan_end(scan);
}

static unsigned found, failed, late_fetches;
static bool has_failed;

static void count_result(enum status st)
{
        found += !st;
        failed += st == ST_OS;
        has_failed = false;
}

/* Wherever it is among those that the cache has. */
static void fail_file(enum table t, size_t part)
{
        found = failed = 0;
        storage->lacked = fleet.nodes[1].store->tables->parts[t][part]->key;
        storage->is_away = true;
        resolve_each_stack(count_result);
        ck_assert_uint_eq(failed, 1);
        ck_assert_uint_eq(found, flushes - 1);
}

START_TEST(a_file_that_the_cache_lacks_fails_only_queries_that_need_it)
{
        fail_file(TABLE_STACKS, FLUSHES - 1);
        for (size_t i = 0; i < FLUSHES; i++)
                fail_file(TABLE_LOCATIONS, i);
}
END_TEST

#define FLUSHES_OF_ONE_THREAD 3 /* whose files are read by one thread */

static void count_fetches_after_failure(struct faulty_storage *f, const char *call, const char *key)
{
        late_fetches += has_failed && strcmp(call, "require") == 0;
        has_failed |= strcmp(call, "map") == 0 && strstr(key, f->lacked);
}

/* As if it had the end of that file only. */
START_TEST(after_a_failure_one_thread_reads_what_the_cache_has_of_other_files)
{
        node_fleet_end(&fleet);
        begin_fleet(FLUSHES_OF_ONE_THREAD);
        storage->has_ends = true;
        storage->before = count_fetches_after_failure;
        fail_file(TABLE_STACKS, FLUSHES_OF_ONE_THREAD - 1);
        for (size_t i = 0; i < FLUSHES_OF_ONE_THREAD; i++)
                fail_file(TABLE_LOCATIONS, i);
        ck_assert_uint_eq(late_fetches, 0);
}
END_TEST

/* None is in the cache. */
START_TEST(other_files_are_fetched_when_one_is_lost)
{
        struct error err;

        check_ok(storage_remove(storage->inner, fleet.nodes[1].store->tables->parts[TABLE_STACKS][FLUSHES - 1]->key,
                                &err),
                 &err);
        found = failed = 0;
        resolve_each_stack(count_result);
        ck_assert_uint_eq(failed, 1);
        ck_assert_uint_eq(found, FLUSHES - 1);
}
END_TEST

static _Atomic unsigned lacked_maps;
static unsigned asking;

static void count_maps_of_lacked_file(struct faulty_storage *f, const char *call, const char *key)
{
        lacked_maps += strcmp(call, "map") == 0 && strstr(key, f->lacked);
}

static void count_asking(enum status st)
{
        ck_assert_int_eq(st, ST_OK);
        asking += lacked_maps > 0;
        lacked_maps = 0;
}

START_TEST(a_file_is_not_asked_for_when_those_of_the_cache_suffice)
{
        storage->before = count_maps_of_lacked_file;
        storage->lacked = fleet.nodes[1].store->tables->parts[TABLE_STACKS][0]->key; /* the oldest */
        resolve_each_stack(count_asking);
        ck_assert_uint_eq(asking, 1);
        asking = 0;
        storage->lacked = fleet.nodes[1].store->tables->parts[TABLE_LOCATIONS][2]->key;
        resolve_each_stack(count_asking);
        ck_assert_uint_eq(asking, 1);
}
END_TEST

/* ---- without a helper thread ---- */

#define CALLS (WAITING_HELPERS_MAX / (WAITING_THREADS_MAX - 1) + 1) /* that use all helpers */

/* Tasks that wait until they are released. */
static struct {
        pthread_mutex_t lock;
        pthread_cond_t changed;
        size_t begun;
        bool is_released;
} held = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static void hold_task(void *context, size_t index)
{
        (void)context, (void)index;
        pthread_mutex_lock(&held.lock);
        held.begun++;
        pthread_cond_broadcast(&held.changed);
        while (!held.is_released)
                pthread_cond_wait(&held.changed, &held.lock);
        pthread_mutex_unlock(&held.lock);
}

static void *hold_helpers(void *context)
{
        do_waiting_tasks(WAITING_THREADS_MAX, hold_task, context);
        return NULL;
}

static void take_all_helpers(pthread_t callers[static CALLS])
{
        for (size_t i = 0; i < CALLS; i++)
                ck_assert_int_eq(pthread_create(&callers[i], NULL, hold_helpers, NULL), 0);
        pthread_mutex_lock(&held.lock);
        while (held.begun < CALLS + WAITING_HELPERS_MAX)
                pthread_cond_wait(&held.changed, &held.lock);
        pthread_mutex_unlock(&held.lock);
}

static void release_helpers(const pthread_t callers[static CALLS])
{
        pthread_mutex_lock(&held.lock);
        held.is_released = true;
        pthread_cond_broadcast(&held.changed);
        pthread_mutex_unlock(&held.lock);
        for (size_t i = 0; i < CALLS; i++)
                pthread_join(callers[i], NULL);
}

static unsigned map_count;

static _Atomic unsigned require_count;

static void count_requires(struct faulty_storage *f, const char *call, const char *key)
{
        (void)f, (void)key;
        require_count += strcmp(call, "require") == 0;
}

static unsigned count_requires_of_fetch(uint64_t cache_bytes)
{
        const uint64_t limit = get_table_cache_limit();
        struct error err = { 0 };

        require_count = 0;
        storage->before = count_requires;
        set_table_cache_limit(cache_bytes);
        check_ok(fetch_samples(fleet.nodes[1].store->tables->parts[TABLE_SAMPLES], FLUSHES, &err), &err);
        set_table_cache_limit(limit);
        return require_count;
}

START_TEST(no_columns_are_fetched_that_a_small_cache_would_drop)
{
        unsigned ends = count_requires_of_fetch(2); /* of the files, which are read to open them */

        ck_assert_uint_eq(count_requires_of_fetch(PART_FETCH_MAX_BYTES), ends + FLUSHES);
}
END_TEST

static void count_maps(struct faulty_storage *f, const char *call, const char *key)
{
        (void)f, (void)key;
        map_count += strcmp(call, "map") == 0;
}

START_TEST(one_thread_asks_for_no_further_file_after_a_failure)
{
        const struct tables *t = fleet.nodes[1].store->tables;
        pthread_t callers[CALLS];
        struct error err = { 0 };
        enum status st;

        take_all_helpers(callers);
        storage->before = count_maps;
        faulty_storage_set(storage, STORAGE_FAULT_CUT, 1);
        st = fetch_samples(t->parts[TABLE_SAMPLES], FLUSHES, &err);
        release_helpers(callers);
        ck_assert_int_eq(st, ST_OS);
        ck_assert_uint_eq(map_count, 1);
}
END_TEST

TEST_SUITE_WITH_FIXTURE("part fetch", the_files_of_each_table_are_asked_for_at_the_same_time,
                        only_a_store_that_does_not_answer_is_a_failure,
                        no_columns_are_fetched_that_a_small_cache_would_drop,
                        a_file_that_the_cache_lacks_fails_only_queries_that_need_it,
                        after_a_failure_one_thread_reads_what_the_cache_has_of_other_files,
                        other_files_are_fetched_when_one_is_lost,
                        a_file_is_not_asked_for_when_those_of_the_cache_suffice,
                        one_thread_asks_for_no_further_file_after_a_failure)
