/* SPDX-License-Identifier: Apache-2.0 */
/* What a scan holds in memory counts against its query, and what it does with that ends with the query. */
#include <stdlib.h>
#include <string.h>

#include "profile-store/key_map.h"
#include "profile-store/scan/scan_internal.h"
#include "profile-store/scan/stack_table.h"
#include "query/frames.h"
#include "tests/support/suite.h"

#define STACKS 100000

static void fill_stack_table(struct stack_table *t)
{
        struct error err;

        stack_table_init(t);
        for (uint64_t i = 0; i < STACKS; i++) {
                struct hash128 id = make_u64_key(i);

                ck_assert_int_eq(stack_table_add(t, id.bytes, 1, 1, &err), ST_OK);
        }
}

START_TEST(a_map_that_is_refused_memory_says_so)
{
        struct memory_account account = { .limit = 1 << 20 };
        struct key_map m = { .memory.use = MEMORY_QUERIES };
        struct error err = { 0 };
        enum status st = ST_OK;

        memory_set_account(&account);
        for (uint64_t i = 0; !st && i < STACKS; i++) {
                struct hash128 key = make_u64_key(i);

                st = key_map_put(&m, &key, i, NULL, NULL, &err);
        }
        ck_assert_int_eq(st, ST_TOO_BIG); /* not ST_NO_MEMORY, which would say to try again */
        ck_assert(account.refused);
        ck_assert_ptr_nonnull(strstr(err.text, "a query may hold 1 MiB"));
        key_map_deinit(&m);
        ck_assert_uint_eq(account.held, 0);
}
END_TEST

START_TEST(sums_stay_charged_until_they_are_freed)
{
        struct memory_account account = { .limit = SIZE_MAX };
        struct stack_sums sums = { 0 };
        struct stack_table t;
        struct error err;

        memory_set_account(&account);
        fill_stack_table(&t);
        ck_assert_int_eq(stack_table_finish(&t, NULL, &sums, &err), ST_OK);
        ck_assert_uint_eq(sums.count, STACKS);
        ck_assert_uint_eq(account.held, STACKS * sizeof(struct stack_sum));
        stack_sums_deinit(&sums);
        ck_assert_uint_eq(account.held, 0);
}
END_TEST

static enum status interrupt_always(void *context, struct error *err)
{
        (void)context;
        return error_set(err, ST_BUSY, "the client left");
}

START_TEST(a_merge_ends_with_the_query)
{
        struct stack_table a, b;
        struct work_meter meter;
        struct error err;

        fill_stack_table(&a);
        fill_stack_table(&b);
        work_meter_init(&meter, interrupt_always, NULL);
        ck_assert_int_eq(stack_table_merge(&a, &b, &meter, &err), ST_BUSY);
        ck_assert_str_eq(err.text, "the client left");
        stack_table_deinit(&a);
        stack_table_deinit(&b);
}
END_TEST

START_TEST(of_repeated_keys_the_last_value_counts)
{
        struct parquet_bytes names[] = { { (const uint8_t *)"pod", 3 }, { (const uint8_t *)"zone", 4 } };
        struct parquet_bytes texts[] = { { (const uint8_t *)"a", 1 }, { (const uint8_t *)"b", 1 } };
        uint32_t offsets[] = { 0, 4, 4 }, name_codes[] = { 0, 1, 0, 0 }, text_codes[] = { 0, 0, 1, PARQUET_NULL_CODE };
        const struct parquet_column keys = { .offsets = offsets, .codes = name_codes, .dict = names, .count = 4 };
        const struct parquet_column values = { .offsets = offsets, .codes = text_codes, .dict = texts, .count = 4 };
        struct parquet_bytes found = scan_find_rest_value(&keys, &values, 0, "pod");

        ck_assert_uint_eq(found.size, 1);
        ck_assert_int_eq(found.data[0], 'b');
        ck_assert_uint_eq(scan_find_rest_value(&keys, &values, 1, "pod").size, 0);
        ck_assert_uint_eq(scan_find_rest_value(&keys, &values, 0, "po").size, 0);
}
END_TEST

START_TEST(frames_of_locations_are_charged)
{
        struct memory_account account = { .limit = SIZE_MAX };
        struct scan_location *locations = calloc(STACKS, sizeof *locations);
        const struct scan_stacks stacks = { .locations = locations, .location_count = STACKS };
        struct location_frames l = { 0 };
        struct frame_table t;
        struct error err;

        ck_assert_ptr_nonnull(locations);
        for (size_t i = 0; i < STACKS; i++)
                locations[i] = (struct scan_location){ .address = i + 1, .mapping = "", .state = "" };
        memory_set_account(&account);
        frame_table_init(&t, NULL);
        ck_assert_int_eq(location_frames_build(&t, &stacks, &l, &err), ST_OK);
        ck_assert_uint_ge(l.memory.bytes, STACKS * (2 * sizeof *l.first + LOCATION_FRAME_BYTES));
        ck_assert_uint_ge(t.memory.bytes, STACKS * sizeof *t.items);
        ck_assert_uint_ge(account.held, l.memory.bytes + t.memory.bytes);
        location_frames_deinit(&l);
        frame_table_deinit(&t);
        ck_assert_uint_eq(account.held, 0);
        account.limit = 1 << 20;
        frame_table_init(&t, NULL);
        ck_assert_int_eq(location_frames_build(&t, &stacks, &l, &err), ST_TOO_BIG);
        frame_table_deinit(&t);
        ck_assert_uint_eq(account.held, 0);
        free(locations);
}
END_TEST

TEST_SUITE("scan memory", a_map_that_is_refused_memory_says_so, sums_stay_charged_until_they_are_freed,
           a_merge_ends_with_the_query, of_repeated_keys_the_last_value_counts, frames_of_locations_are_charged)
