/* SPDX-License-Identifier: Apache-2.0 */
/* Lookups in loaded tables, compared with symbol_table_find(). */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "symbol-index/block.h"
#include "symbol-index/index_load.h"
#include "symbol-index/lookup_internal.h"
#include "symbol-index/name_cache.h"
#include "symbol-index/symbol_index_internal.h"
#include "tests/support/random_table.h"
#include "tests/support/suite.h"
#include "tests/support/temporary_dir.h"

static char dir[TEMPORARY_DIR_BYTES];
static struct symbol_index *tested; /* empty before each test */
static struct symbol_batch batch;

static void set_up(void)
{
        struct error err = { 0 };

        temporary_dir_create(dir, "test");
        ck_assert_msg(symbol_index_open(dir, false, &tested, &err) == ST_OK, "%s", err.text);
}

static void tear_down(void)
{
        symbol_batch_deinit(&batch);
        symbol_index_close(tested);
        temporary_dir_remove(dir);
}

static uint64_t load(const struct symbol_table *t)
{
        uint64_t generation = 0;
        struct error err = { 0 };
        bool replaced;

        ck_assert_msg(symbol_index_load(tested, t, &replaced, &generation, &err) == ST_OK, "%s", err.text);
        return generation;
}

static struct symbol_view *begin(void)
{
        struct symbol_view *view;

        ck_assert_int_eq(symbol_view_begin(tested, &view, NULL), ST_OK);
        return view;
}

static void look_up(struct symbol_view *view, const struct symbol_key *keys, size_t count)
{
        struct error err = { 0 };

        if (symbol_view_lookup(view, keys, count, &batch, &err) || batch.result_count != count)
                ck_abort_msg("%s", err.text);
}

static uint32_t kept_start_line(const struct symbol_table *t, const struct symbol_table_frame *f)
{
        uint32_t line = symbol_table_start_line(t, f);

        return line <= INT32_MAX ? line : 0;
}

static bool frame_agrees(struct symbol_view *view, const struct symbol_table *t, const struct symbol_table_frame *want,
                         bool inlined, const struct symbol_frame *got)
{
        const char *name, *linkage, *path, *wanted = "";

        if (want->function != UINT32_MAX) {
                const struct symbol_function *f = &t->functions[want->function];

                wanted = t->strings + (f->linkage_name ? f->linkage_name : f->name);
        }
        return got->line == want->line && got->inlined == inlined && got->start_line == kept_start_line(t, want) &&
               symbol_view_get_function(view, got->function, &name, &linkage, NULL) == ST_OK &&
               strcmp(linkage, wanted) == 0 && symbol_view_get_file(view, got->file, &path, NULL) == ST_OK &&
               strcmp(path, t->strings + want->file) == 0;
}

/* Check that the result for an address agrees with the table. */
static bool agrees(struct symbol_view *view, const struct symbol_table *t, uint64_t address,
                   const struct symbol_result *r)
{
        const struct symbol_range *range = symbol_table_find(t, address);
        const struct symbol_chain *chain = range ? &t->chains[range->chain] : NULL;

        if (r->address != address || r->quality != t->quality || r->generation == 0 ||
            r->state != symbol_table_gap_state(t, address) || r->frame_count != (range ? chain->frame_count : 0))
                return false;
        for (uint32_t k = 0; k < r->frame_count; k++)
                if (!frame_agrees(view, t, &t->frames[chain->first_frame + k], k + 1 < r->frame_count,
                                  &batch.frames[r->first_frame + k]))
                        return false;
        return true;
}

/* Asserts only on a difference: libcheck records every assertion, and there are many here. */
static void check_result(struct symbol_view *view, const struct symbol_table *t, uint64_t address, size_t i)
{
        if (!agrees(view, t, address, &batch.results[i]))
                ck_abort_msg("result %zu for 0x%llx differs from the table", i, (unsigned long long)address);
}

/* Look up all keys in one batch and compare each result with the table. */
static void check_batch(struct symbol_view *view, const struct symbol_table *t, const struct symbol_key *keys,
                        size_t count)
{
        look_up(view, keys, count);
        for (size_t i = 0; i < count; i++)
                check_result(view, t, keys[i].address, i);
}

static struct symbol_table table_of(uint64_t seed, uint32_t ranges, uint64_t base)
{
        return random_table(&(struct random_table_spec){ .seed = seed,
                                                         .range_count = ranges,
                                                         .function_count = ranges / 20 + 1,
                                                         .file_count = ranges / 500 + 1,
                                                         .base = base,
                                                         .version = 3,
                                                         .quality = QUALITY_DWARF });
}

/* All kinds of addresses: inside ranges, in gaps, at both edges of ranges, and random ones. */
static uint64_t some_address(const struct symbol_table *t, uint64_t *state)
{
        uint64_t r = random_next(state);
        const struct symbol_range *range = &t->ranges[(r >> 8) % t->range_count];

        switch (r % 8) {
        case 0:
                return range->start;
        case 1:
                return range->end - 1;
        case 2:
                return range->end;
        case 3:
                return range->start - 1;
        case 4:
                return r;
        case 5:
                return range->end + (r >> 40) % 4096;
        default:
                return range->start + (r >> 40) % (range->end - range->start);
        }
}

/* Sparse keys decode single rows, dense ones whole blocks: each stride uses a different mix. */
START_TEST(dense_and_sparse_batches_agree_with_the_table)
{
        struct symbol_table t = table_of(31, 20000, 0x401000);
        struct symbol_key *keys = calloc(t.range_count, sizeof *keys);
        struct symbol_view *view;

        load(&t);
        view = begin();
        for (uint32_t stride = 1; stride < 3000; stride = stride * 3 / 2 + 1) {
                size_t count = 0;

                for (uint32_t i = 0; i < t.range_count; i += stride)
                        keys[count++] = (struct symbol_key){ .build_id = &t.build_id, .address = t.ranges[i].end - 1 };
                check_batch(view, &t, keys, count);
        }
        symbol_view_end(view);
        symbol_table_deinit(&t);
        free(keys);
}
END_TEST

START_TEST(several_threads_agree_with_one)
{
        enum { KEYS = 50001 };
        struct symbol_table t = table_of(32, 20000, 0xfffffff0), other = table_of(33, 500, 0x1000);
        struct symbol_key *keys = calloc(KEYS, sizeof *keys);
        struct symbol_view *view;
        struct error err = { 0 };
        uint64_t state = 5;

        load(&t);
        load(&other);
        for (size_t i = 0; i < KEYS; i++) {
                const struct symbol_table *of = i % 5 ? &t : &other;

                keys[i] = (struct symbol_key){ .build_id = &of->build_id, .address = some_address(of, &state) };
        }
        view = begin();
        for (unsigned threads = 2; threads < 70; threads *= 3) {
                ck_assert_msg(symbol_view_lookup_threads(view, keys, KEYS, threads, &batch, &err) == ST_OK, "%s",
                              err.text);
                ck_assert_uint_eq(batch.result_count, KEYS);
                for (size_t i = 0; i < KEYS; i++)
                        check_result(view, i % 5 ? &t : &other, keys[i].address, i);
        }
        symbol_view_end(view);
        symbol_table_deinit(&t);
        symbol_table_deinit(&other);
        free(keys);
}
END_TEST

/* The threads' own transactions see the load in between; the view does not. */
START_TEST(threads_read_the_snapshot_of_the_view)
{
        enum { KEYS = 20000 };
        struct symbol_table t = table_of(34, 3000, 0x1000);
        struct symbol_key *keys = calloc(KEYS, sizeof *keys);
        struct symbol_view *view;
        uint64_t generation = load(&t);

        for (size_t i = 0; i < KEYS; i++)
                keys[i] = (struct symbol_key){ .build_id = &t.build_id, .address = t.ranges[i % t.range_count].start };
        view = begin();
        ck_assert_uint_gt(load(&t), generation);
        ck_assert_int_eq(symbol_view_lookup_threads(view, keys, KEYS, 4, &batch, NULL), ST_OK);
        for (size_t i = 0; i < KEYS; i++)
                if (batch.results[i].generation != generation)
                        ck_abort_msg("result %zu is of generation %llu", i,
                                     (unsigned long long)batch.results[i].generation);
        symbol_view_end(view);
        symbol_table_deinit(&t);
        free(keys);
}
END_TEST

START_TEST(random_batch_over_a_big_table_agrees_with_the_table)
{
        enum { KEYS = 200000 };
        struct symbol_table t = table_of(11, 100000, 0x400000);
        struct symbol_key *keys = calloc(KEYS, sizeof *keys);
        struct symbol_view *view;
        uint64_t state = 5;

        load(&t);
        for (size_t i = 0; i < KEYS; i++)
                keys[i] = (struct symbol_key){ .build_id = &t.build_id, .address = some_address(&t, &state) };
        view = begin();
        check_batch(view, &t, keys, KEYS);
        ck_assert_uint_eq(batch.damaged_count, 0);
        symbol_view_end(view);
        symbol_table_deinit(&t);
        free(keys);
}
END_TEST

/* Enough keys to fill tiles, the last one partially. */
START_TEST(all_of_a_large_batch_in_one_object_agrees_with_the_table)
{
        enum { KEYS = 70001 };
        struct symbol_table t = table_of(14, 20000, 0x400000);
        struct symbol_key *keys = calloc(KEYS, sizeof *keys);
        struct symbol_view *view;
        uint64_t state = 5;

        load(&t);
        for (size_t i = 0; i < KEYS; i++)
                keys[i] = (struct symbol_key){ .build_id = &t.build_id,
                                               .address = t.ranges[random_next(&state) % t.range_count].end - i % 2 };
        view = begin();
        check_batch(view, &t, keys, KEYS);
        symbol_view_end(view);
        symbol_table_deinit(&t);
        free(keys);
}
END_TEST

START_TEST(every_edge_in_order_agrees_with_the_table)
{
        struct symbol_table t = table_of(12, 20000, UINT64_C(0xffffffff80000000));
        struct symbol_key *keys = calloc(t.range_count * 4, sizeof *keys);
        struct symbol_view *view;
        size_t n = 0;

        load(&t);
        for (uint32_t i = 0; i < t.range_count; i++) {
                const uint64_t edges[] = { t.ranges[i].start - 1, t.ranges[i].start, t.ranges[i].end - 1,
                                           t.ranges[i].end };

                for (unsigned k = 0; k < 4; k++)
                        keys[n++] = (struct symbol_key){ .build_id = &t.build_id, .address = edges[k] };
        }
        view = begin();
        check_batch(view, &t, keys, n);
        symbol_view_end(view);
        symbol_table_deinit(&t);
        free(keys);
}
END_TEST

/* Single keys use the search path of a new cursor. */
START_TEST(single_keys_agree_with_table)
{
        struct symbol_table t = table_of(13, 5000, 0);
        struct symbol_view *view;
        uint64_t state = 9;

        load(&t);
        view = begin();
        for (unsigned i = 0; i < 20000; i++) {
                struct symbol_key key = { .build_id = &t.build_id, .address = some_address(&t, &state) };

                look_up(view, &key, 1);
                check_result(view, &t, key.address, 0);
        }
        symbol_view_end(view);
        symbol_table_deinit(&t);
}
END_TEST

START_TEST(mixed_objects_keep_order_of_keys)
{
        enum { OBJECTS = 40, KEYS = 20000 };
        struct symbol_table t[OBJECTS];
        struct build_id copies[OBJECTS], unknown = random_build_id(12345), none = { 0 };
        struct symbol_key *keys = calloc(KEYS, sizeof *keys);
        unsigned *of = calloc(KEYS, sizeof *of);
        struct symbol_view *view;
        uint64_t state = 6;

        for (unsigned i = 0; i < OBJECTS; i++) {
                t[i] = table_of(100 + i, 50 + 30 * i, (uint64_t)i << 30);
                copies[i] = t[i].build_id;
                load(&t[i]);
        }
        for (size_t i = 0; i < KEYS; i++) {
                of[i] = (unsigned)(random_next(&state) % (OBJECTS + 2));
                if (of[i] == OBJECTS)
                        keys[i].build_id = i % 2 ? &none : NULL;
                else if (of[i] > OBJECTS)
                        keys[i].build_id = &unknown;
                else
                        keys[i] = (struct symbol_key){ .build_id = i % 2 ? &copies[of[i]] : &t[of[i]].build_id,
                                                       .address = some_address(&t[of[i]], &state) };
        }
        view = begin();
        look_up(view, keys, KEYS);
        for (size_t i = 0; i < KEYS; i++) {
                if (of[i] < OBJECTS) {
                        check_result(view, &t[of[i]], keys[i].address, i);
                        continue;
                }
                ck_assert_int_eq(batch.results[i].state, of[i] == OBJECTS ? SYMBOL_NO_BUILD_ID : SYMBOL_NO_DEBUGINFO);
                ck_assert_uint_eq(batch.results[i].generation, 0);
                ck_assert_uint_eq(batch.results[i].frame_count, 0);
        }
        symbol_view_end(view);
        for (unsigned i = 0; i < OBJECTS; i++)
                symbol_table_deinit(&t[i]);
        free(keys);
        free(of);
}
END_TEST

START_TEST(file_offsets_are_translated_by_the_segments)
{
        struct symbol_table t = table_of(14, 100, 0x401000);
        struct symbol_key keys[] = {
                { .build_id = &t.build_id, .address = 0x2000 + 5, .is_file_offset = true },
                { .build_id = &t.build_id, .address = 0x1800, .is_file_offset = true },
                { .build_id = &t.build_id, .address = 0x401000 + 5 },
                { .build_id = &t.build_id, .address = 0x401000 + 5, .is_file_offset = true },
        };
        struct symbol_view *view;

        load(&t);
        view = begin();
        look_up(view, keys, 4);
        check_result(view, &t, 0x401005, 0);
        check_result(view, &t, 0x401005,
                     3); /* after the end of the file: addresses of a program that is not relocated */
        check_result(view, &t, 0x401005, 2);
        ck_assert_int_eq(batch.results[1].state, SYMBOL_NOT_IN_OBJECT);
        symbol_view_end(view);
        symbol_table_deinit(&t);
}
END_TEST

START_TEST(empty_batch_is_valid_and_batches_are_reusable)
{
        struct symbol_table t = table_of(15, 100, 0x1000);
        struct symbol_key key = { .build_id = &t.build_id, .address = 0x1000 };
        struct symbol_view *view;

        load(&t);
        view = begin();
        look_up(view, NULL, 0);
        look_up(view, &key, 1);
        check_result(view, &t, key.address, 0);
        look_up(view, NULL, 0);
        ck_assert_uint_eq(batch.frame_count, 0);
        symbol_view_end(view);
        symbol_table_deinit(&t);
}
END_TEST

START_TEST(view_keeps_generation_during_reload)
{
        struct symbol_table t = table_of(16, 3000, 0x1000);
        struct symbol_key key = { .build_id = &t.build_id, .address = t.ranges[1500].start };
        struct symbol_view *view;
        uint64_t generation = load(&t);

        view = begin();
        ck_assert_uint_gt(load(&t), generation);
        look_up(view, &key, 1);
        ck_assert_uint_eq(batch.results[0].generation, generation);
        check_result(view, &t, key.address, 0);
        symbol_view_end(view);
        symbol_table_deinit(&t);
}
END_TEST

START_TEST(table_without_ranges_is_stripped_with_a_generation)
{
        char strings[] = "";
        struct symbol_table t = { .build_id = random_build_id(3), .strings = strings, .string_bytes = 1 };
        struct symbol_key key = { .build_id = &t.build_id, .address = 1 };
        struct symbol_view *view;
        uint64_t generation = load(&t);

        view = begin();
        look_up(view, &key, 1);
        ck_assert_int_eq(batch.results[0].state, SYMBOL_STRIPPED);
        ck_assert_uint_eq(batch.results[0].generation, generation);
        symbol_view_end(view);
}
END_TEST

/* Flip one bit of one value of a database. */
static void damage(MDB_dbi dbi, size_t nth, size_t byte)
{
        MDB_txn *txn;
        MDB_cursor *cursor;
        MDB_val key, value;
        uint8_t *copy, key_copy[64];

        ck_assert_int_eq(mdb_txn_begin(tested->env, NULL, 0, &txn), 0);
        ck_assert_int_eq(mdb_cursor_open(txn, dbi, &cursor), 0);
        for (size_t i = 0; i <= nth; i++)
                ck_assert_int_eq(mdb_cursor_get(cursor, &key, &value, MDB_NEXT), 0);
        mdb_cursor_close(cursor);
        copy = malloc(value.mv_size);
        memcpy(copy, value.mv_data, value.mv_size);
        copy[byte % value.mv_size] ^= 0x10;
        memcpy(key_copy, key.mv_data, key.mv_size);
        key.mv_data = key_copy;
        value.mv_data = copy;
        ck_assert_int_eq(mdb_put(txn, dbi, &key, &value, 0), 0);
        ck_assert_int_eq(mdb_txn_commit(txn), 0);
        free(copy);
}

START_TEST(damaged_block_fails_only_its_keys)
{
        struct symbol_table t = table_of(17, 5000, 0x1000);
        struct symbol_key *keys = calloc(t.range_count, sizeof *keys);
        struct symbol_view *view;
        size_t failed = 0;

        load(&t);
        for (uint32_t i = 0; i < t.range_count; i++)
                keys[i] = (struct symbol_key){ .build_id = &t.build_id, .address = t.ranges[i].start };
        damage(tested->blocks, 2, 100);
        view = begin();
        look_up(view, keys, t.range_count);
        for (uint32_t i = 0; i < t.range_count; i++) {
                if (batch.results[i].state == SYMBOL_FAILED)
                        failed++;
                else
                        check_result(view, &t, keys[i].address, i);
        }
        ck_assert_uint_gt(failed, 20);
        ck_assert_uint_lt(failed, 1500);
        ck_assert_uint_eq(batch.damaged_count, failed);
        symbol_view_end(view);
        symbol_table_deinit(&t);
        free(keys);
}
END_TEST

START_TEST(damaged_object_record_fails_its_keys_and_a_load_repairs_it)
{
        struct symbol_table t = table_of(18, 50, 0x1000);
        struct symbol_key key = { .build_id = &t.build_id, .address = 0x1000 };
        struct symbol_object o;
        struct symbol_view *view;
        struct error err;

        load(&t);
        damage(tested->objects, 0, 9);
        view = begin();
        look_up(view, &key, 1);
        ck_assert_int_eq(batch.results[0].state, SYMBOL_FAILED);
        ck_assert_uint_eq(batch.damaged_count, 1);
        ck_assert_int_eq(symbol_view_get_object(view, &t.build_id, &o, &err), ST_BAD_DATA);
        symbol_view_end(view);
        load(&t);
        view = begin();
        look_up(view, &key, 1);
        check_result(view, &t, key.address, 0);
        symbol_view_end(view);
        symbol_table_deinit(&t);
}
END_TEST

START_TEST(damaged_string_page_is_bad_data)
{
        struct symbol_table t = table_of(19, 50, 0x1000);
        const char *name = NULL, *linkage = NULL;
        struct symbol_view *view;
        struct error err;

        load(&t);
        damage(tested->texts.pages, 0, 20);
        view = begin();
        ck_assert_int_eq(symbol_view_get_function(view, 1, &name, &linkage, &err), ST_BAD_DATA);
        ck_assert_ptr_null(name);
        ck_assert_int_eq(symbol_view_get_function(view, 4000000000u, &name, &linkage, &err), ST_BAD_DATA);
        ck_assert_int_eq(symbol_view_get_function(view, 0, &name, &linkage, &err), ST_OK);
        ck_assert_str_eq(name, "");
        symbol_view_end(view);
        symbol_table_deinit(&t);
}
END_TEST

START_TEST(demangled_names_are_cached_and_plain_ones_shared)
{
        struct symbol_table t = table_of(20, 200, 0x1000);
        const char *name, *linkage;
        unsigned mangled = 0, plain = 0;
        struct buf cached;

        buf_init(&cached, 4096);
        load(&t);
        for (unsigned round = 0; round < 2; round++) {
                struct symbol_view *view = begin();

                for (uint32_t i = 1; i <= t.function_count; i++) {
                        ck_assert_int_eq(symbol_view_get_function(view, i, &name, &linkage, NULL), ST_OK);
                        if (linkage[0] != '_') {
                                ck_assert_ptr_eq(name, linkage);
                                plain++;
                                continue;
                        }
                        ck_assert_msg(strstr(name, "space::inside<"), "%s", name);
                        ck_assert(name_cache_get(tested->names, i, &cached));
                        ck_assert_uint_eq(cached.size, strlen(name));
                        mangled++;
                }
                symbol_view_end(view);
        }
        ck_assert_uint_gt(mangled, 0);
        ck_assert_uint_gt(plain, 0);
        buf_deinit(&cached);
        symbol_table_deinit(&t);
}
END_TEST

START_TEST(sort_orders_by_the_upper_half)
{
        static const size_t sizes[] = { 0, 1, 2, 31, 33, 1000, 8191, 8192, 16383, 16384, 100000 };
        uint64_t state = 4;

        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
                for (unsigned width = 1; width <= 32; width += 5) {
                        uint64_t *e = calloc(sizes[s] + 1, sizeof *e), *tmp = calloc(sizes[s] + 1, sizeof *tmp);
                        uint64_t sum = 0, sorted_sum = 0;

                        for (size_t i = 0; i < sizes[s]; i++) {
                                e[i] = random_next(&state) >> (32 - width) << 32 >> (32 - width) << (32 - width) | i;
                                sum += e[i] * 31;
                        }
                        lookup_sort(e, tmp, sizes[s]);
                        for (size_t i = 0; i < sizes[s]; i++) {
                                sorted_sum += e[i] * 31;
                                if (i > 0 && e[i - 1] >> 32 > e[i] >> 32)
                                        ck_abort_msg("out of order at %zu", i);
                        }
                        ck_assert_uint_eq(sum, sorted_sum);
                        free(e);
                        free(tmp);
                }
        }
}
END_TEST

TEST_SUITE_WITH_FIXTURE("lookup", dense_and_sparse_batches_agree_with_the_table, several_threads_agree_with_one,
                        threads_read_the_snapshot_of_the_view, random_batch_over_a_big_table_agrees_with_the_table,
                        all_of_a_large_batch_in_one_object_agrees_with_the_table,
                        every_edge_in_order_agrees_with_the_table, single_keys_agree_with_table,
                        mixed_objects_keep_order_of_keys, file_offsets_are_translated_by_the_segments,
                        empty_batch_is_valid_and_batches_are_reusable, view_keeps_generation_during_reload,
                        table_without_ranges_is_stripped_with_a_generation, damaged_block_fails_only_its_keys,
                        damaged_object_record_fails_its_keys_and_a_load_repairs_it, damaged_string_page_is_bad_data,
                        demangled_names_are_cached_and_plain_ones_shared, sort_orders_by_the_upper_half)
