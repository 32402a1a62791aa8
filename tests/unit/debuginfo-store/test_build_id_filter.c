/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/limits.h"
#include "debuginfo-store/build_id_filter.h"
#include "tests/support/suite.h"

#define IDS_MAX 100000

static struct build_id make_id(uint64_t number)
{
        struct build_id id = { .size = 20 };

        memcpy(id.bytes, &number, sizeof number);
        return id;
}

/* A filter of the ids of the numbers below count; its file stays in to. */
static struct build_id_filter make_filter(size_t count, struct buf *to)
{
        uint64_t *keys = count ? calloc(count, sizeof *keys) : NULL;
        struct build_id_filter f;
        struct error err;

        buf_init(to, LIMIT_FILTER_BYTES);
        for (size_t i = 0; i < count; i++) {
                struct build_id id = make_id(i);

                keys[i] = build_id_filter_key(&id);
        }
        ck_assert_int_eq(build_id_filter_write(keys, count, to, &err), ST_OK);
        free(keys);
        ck_assert_int_eq(build_id_filter_open(to->data, to->size, &f, &err), ST_OK);
        return f;
}

static size_t count_contained(const struct build_id_filter *f, uint64_t from, uint64_t to)
{
        size_t contained = 0;

        for (uint64_t i = from; i < to; i++) {
                struct build_id id = make_id(i);

                contained += build_id_filter_may_contain(f, &id);
        }
        return contained;
}

START_TEST(each_id_is_contained)
{
        static const size_t counts[] = { 0, 1, 2, 3, 4, 5, 7, 10, 33, 100, 1000, 10007, IDS_MAX };

        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
                struct buf file;
                struct build_id_filter f = make_filter(counts[i], &file);

                ck_assert_uint_eq(f.count, counts[i]);
                ck_assert_uint_eq(count_contained(&f, 0, counts[i]), counts[i]);
                buf_deinit(&file);
        }
}
END_TEST

/* The bounds are far beyond what random seeds do: 391 are expected, with a deviation of 20. */
START_TEST(one_of_256_other_ids_is_contained_too)
{
        struct buf file;
        struct build_id_filter f = make_filter(IDS_MAX, &file);
        size_t wrong = count_contained(&f, IDS_MAX, 2 * IDS_MAX);

        ck_assert_uint_ge(wrong, 200);
        ck_assert_uint_le(wrong, 600);
        ck_assert_uint_le(8 * file.size, 10 * IDS_MAX); /* bits */
        buf_deinit(&file);
}
END_TEST

START_TEST(empty_filter_contains_nothing)
{
        struct buf file;
        struct build_id_filter f = make_filter(0, &file);

        ck_assert_uint_eq(count_contained(&f, 0, 1000), 0);
        buf_deinit(&file);
}
END_TEST

START_TEST(equal_ids_are_one)
{
        struct build_id id = make_id(5);
        uint64_t keys[3] = { build_id_filter_key(&id), build_id_filter_key(&id), build_id_filter_key(&id) };
        struct build_id_filter f;
        struct buf file;
        struct error err;

        buf_init(&file, LIMIT_FILTER_BYTES);
        ck_assert_int_eq(build_id_filter_write(keys, 3, &file, &err), ST_OK);
        ck_assert_int_eq(build_id_filter_open(file.data, file.size, &f, &err), ST_OK);
        ck_assert_uint_eq(f.count, 1);
        ck_assert(build_id_filter_may_contain(&f, &id));
        buf_deinit(&file);
}
END_TEST

/* Each byte counts: whatever changes is refused, and nothing is read outside of the file. */
START_TEST(changed_file_is_refused)
{
        struct buf file;
        struct build_id_filter f = make_filter(100, &file);
        struct error err;

        for (size_t i = 0; i < file.size; i++) {
                file.data[i] ^= 0x10;
                ck_assert_int_ne(build_id_filter_open(file.data, file.size, &f, &err), ST_OK);
                file.data[i] ^= 0x10;
        }
        for (size_t n = 0; n < file.size; n++) {
                uint8_t *part = malloc(n + 1);

                memcpy(part, file.data, n);
                ck_assert_int_eq(build_id_filter_open(part, n, &f, &err), ST_BAD_DATA);
                free(part);
        }
        buf_deinit(&file);
}
END_TEST

START_TEST(later_version_is_unsupported)
{
        struct buf file;
        struct build_id_filter f = make_filter(1, &file);
        struct error err;

        store_le32(file.data + 8, 2);
        ck_assert_int_eq(build_id_filter_open(file.data, file.size, &f, &err), ST_UNSUPPORTED);
        buf_deinit(&file);
}
END_TEST

TEST_SUITE("build_id_filter", each_id_is_contained, one_of_256_other_ids_is_contained_too,
           empty_filter_contains_nothing, equal_ids_are_one, changed_file_is_refused, later_version_is_unsupported)
