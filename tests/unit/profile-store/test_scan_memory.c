/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of a scan is charged to its query and released at the end of the query. */
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "profile-store/rows/key_map.h"
#include "profile-store/scan/scan_internal.h"
#include "profile-store/scan/stack_table.h"
#include "query/engine/call_tree.h"
#include "query/engine/location_frames.h"
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

START_TEST(map_reports_refused_memory)
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
        ck_assert_int_eq(st, ST_TOO_BIG); /* not ST_NO_MEMORY, which would suggest a retry */
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

/* Distinct ids; every third begins with the same 64 bits. */
static struct hash128 make_stack_id(uint64_t i)
{
        struct hash128 id = hash_bytes128(&i, sizeof i);

        if (i % 3 == 0)
                memset(id.bytes, 0x55, 8);
        return id;
}

START_TEST(sums_of_many_stacks_are_exact_and_sorted_by_id)
{
        struct stack_table tables[2];
        struct stack_sums sums = { 0 };
        int64_t total = 0;
        struct error err;

        for (unsigned k = 0; k < 2; k++) {
                stack_table_init(&tables[k]);
                for (uint64_t i = 0; i < 3 * (uint64_t)STACKS; i++) { /* some ids of the second are in the first */
                        const struct hash128 id = make_stack_id(i % STACKS + k * STACKS / 2);

                        ck_assert_int_eq(stack_table_add(&tables[k], id.bytes, (int64_t)i, 1, &err), ST_OK);
                }
        }
        ck_assert_int_eq(stack_table_merge(&tables[0], &tables[1], NULL, &err), ST_OK);
        ck_assert_int_eq(stack_table_finish(&tables[0], NULL, &sums, &err), ST_OK);
        ck_assert_uint_eq(sums.count, STACKS + STACKS / 2);
        for (size_t i = 0; i < sums.count; i++) {
                ck_assert(i == 0 || memcmp(sums.items[i - 1].id, sums.items[i].id, sizeof(stack_id)) < 0);
                ck_assert(sums.items[i].samples == 3 || sums.items[i].samples == 6);
                total += sums.items[i].value;
        }
        ck_assert_int_eq(total, 3 * (int64_t)STACKS * (3 * (int64_t)STACKS - 1));
        stack_sums_deinit(&sums);
        stack_table_deinit(&tables[1]);
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

START_TEST(last_value_of_repeated_key_wins)
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

/* A tree whose nodes are all children of the root. */
static enum status grow_tree(struct tree *t, size_t nodes, struct error *err)
{
        const struct tree_focus everything = { TREE_ALL, NULL, NULL };
        const struct label_list none = { 0 };
        uint32_t shown_as = 0;
        const struct label_groups groups = { .labels = &none, .shown_as = &shown_as };
        const struct tree_roots roots = { .groups = &groups };
        _cleanup_free_ size_t *stack_first = calloc(nodes + 1, sizeof *stack_first);
        _cleanup_free_ uint32_t *numbers = calloc(nodes + 1, sizeof *numbers);
        _cleanup_free_ int64_t *lines = calloc(nodes, sizeof *lines);
        _cleanup_free_ struct merged_entry *entries = calloc(nodes, sizeof *entries);
        const struct scan_stacks stacks = { .indexes = numbers, .first = stack_first, .count = nodes };
        const struct merged_profile m = {
                .entries = entries,
                .count = nodes,
                .stacks = &stacks,
                .locations = { .first = numbers, .end = numbers + 1, .frames = numbers, .lines = lines },
        };

        for (uint32_t i = 0; i <= nodes; i++)
                stack_first[i] = numbers[i] = i;
        for (uint32_t i = 0; i < nodes; i++)
                entries[i] = (struct merged_entry){ .stack = i, .value = i + 1 };
        return tree_add(t, &m, 0, &everything, &roots, err);
}

START_TEST(trees_and_their_layouts_are_charged)
{
        struct memory_account account = { .limit = SIZE_MAX };
        struct drawing d = { 0 };
        struct tree t;
        struct error err = { 0 };
        size_t held;

        memory_set_account(&account);
        ck_assert_int_eq(tree_init(&t, NULL, &err), ST_OK);
        ck_assert_int_eq(grow_tree(&t, STACKS, &err), ST_OK);
        ck_assert_uint_eq(t.count, STACKS + 1);
        held = t.capacity * sizeof *t.nodes + t.children.slot_count * sizeof *t.children.slots;
        ck_assert_uint_eq(account.held, held);
        tree_sum_totals(&t);
        ck_assert_int_eq(tree_draw(&t, STACKS / 2, &d, &err), ST_OK);
        ck_assert_uint_eq(account.held, held + d.memory.bytes);
        ck_assert_uint_ge(d.memory.bytes, d.count * sizeof *d.nodes);
        drawing_deinit(&d);
        ck_assert_uint_eq(account.held, held);

        account.limit = held + MiB(1); /* less than what sorting takes */
        ck_assert_int_eq(tree_draw(&t, STACKS / 2, &d, &err), ST_TOO_BIG);
        ck_assert_uint_eq(account.held, held);
        tree_deinit(&t);
        ck_assert_uint_eq(account.held, 0);

        account.limit = MiB(1);
        ck_assert_int_eq(tree_init(&t, NULL, &err), ST_OK);
        ck_assert_int_eq(grow_tree(&t, STACKS, &err), ST_TOO_BIG);
        ck_assert_ptr_nonnull(strstr(err.text, "a query may hold 1 MiB"));
        tree_deinit(&t);
        ck_assert_uint_eq(account.held, 0);
}
END_TEST

static enum status check_progress(void *context, struct error *err)
{
        (void)context;
        (void)err;
        return ST_OK;
}

/*
 * The smallest of the remaining values is always in the middle: a selection with the middle as pivot removes one per
 * pass.
 */
START_TEST(the_heaviest_nodes_are_selected_in_linear_time)
{
        enum { COUNT = 1 << 17 };
        _cleanup_memory_ struct memory_reservation memory = { .use = MEMORY_QUERIES };
        _cleanup_free_ uint32_t *order = NULL;
        struct work_meter meter;
        struct tree t;
        struct error err = { 0 };
        uint32_t count;

        work_meter_init(&meter, check_progress, NULL);
        ck_assert_int_eq(tree_init(&t, &meter, &err), ST_OK);
        ck_assert_int_eq(grow_tree(&t, COUNT - 1, &err), ST_OK);
        t.nodes[0].total[0] = COUNT;
        for (uint32_t n = 2; n <= COUNT; n++) {
                t.nodes[n - 1].total[0] = t.nodes[(n - 1) / 2].total[0];
                t.nodes[(n - 1) / 2].total[0] = COUNT - n;
        }
        work_meter_init(&meter, check_progress, NULL);
        ck_assert_int_eq(tree_sort_for_drawing(&t, 2, &memory, &order, &count, &err), ST_OK);
        ck_assert_uint_eq(count, 2);
        ck_assert_int_eq(t.nodes[order[0]].total[0] + t.nodes[order[1]].total[0] >= COUNT - 2, 1);
        ck_assert_uint_ge(meter.checks, 1);
        ck_assert_uint_le(meter.checks, 64 * COUNT / WORK_CHECK_UNITS);
        tree_deinit(&t);
}
END_TEST

TEST_SUITE("scan memory", trees_and_their_layouts_are_charged, the_heaviest_nodes_are_selected_in_linear_time,
           map_reports_refused_memory, sums_stay_charged_until_they_are_freed,
           sums_of_many_stacks_are_exact_and_sorted_by_id, a_merge_ends_with_the_query, last_value_of_repeated_key_wins,
           frames_of_locations_are_charged)
