/* SPDX-License-Identifier: Apache-2.0 */
/* Batch lookups in a map of 128-bit keys agree with single lookups. */
#include <stdlib.h>

#include "profile-store/rows/key_map.h"
#include "tests/support/suite.h"

#define IDS 5000

static void check_batches(const struct key_map *m, const uint64_t *ids, size_t count)
{
        uint64_t *found[KEY_MAP_BATCH];

        for (size_t at = 0, n; at < count; at += n) {
                n = 1 + at % KEY_MAP_BATCH;
                n = n < count - at ? n : count - at;
                key_map_find_ids(m, ids + at, n, found);
                for (size_t i = 0; i < n; i++) {
                        struct hash128 key = make_u64_key(ids[at + i]);

                        ck_assert_ptr_eq(found[i], key_map_find(m, &key));
                }
        }
}

START_TEST(batch_lookup_agrees_with_single_lookups)
{
        _cleanup_key_map_ struct key_map m = { .memory.use = MEMORY_BASE };
        uint64_t ids[IDS];

        for (uint64_t i = 0; i < IDS; i++)
                ids[i] = i * UINT64_C(0x9e3779b97f4a7c15);
        check_batches(&m, ids, IDS); /* empty */
        for (uint64_t i = 0; i < IDS; i += 2) {
                struct hash128 key = make_u64_key(ids[i]);

                ck_assert_int_eq(key_map_put(&m, &key, i, NULL, NULL, NULL), ST_OK);
                if (i % 500 == 0) /* sparse and dense: the map grows at a load of seven eighths */
                        check_batches(&m, ids, IDS);
        }
        check_batches(&m, ids, IDS);
}
END_TEST

START_TEST(batch_lookup_returns_values)
{
        _cleanup_key_map_ struct key_map m = { .memory.use = MEMORY_BASE };
        const uint64_t ids[] = { 7, 8, 7, 0 };
        uint64_t *found[4];

        for (uint64_t id = 0; id < 8; id++) {
                struct hash128 key = make_u64_key(id);

                ck_assert_int_eq(key_map_put(&m, &key, 100 + id, NULL, NULL, NULL), ST_OK);
        }
        key_map_find_ids(&m, ids, 4, found);
        ck_assert_uint_eq(*found[0], 107);
        ck_assert_ptr_null(found[1]);
        ck_assert_ptr_eq(found[2], found[0]);
        ck_assert_uint_eq(*found[3], 100);
}
END_TEST

TEST_SUITE("key_map", batch_lookup_agrees_with_single_lookups, batch_lookup_returns_values)
