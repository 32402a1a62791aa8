/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "debuginfo-store/federation/fetch_queue.h"
#include "tests/support/suite.h"

#define IDS 2000
#define CHAIN_MAX 16 /* of 2,000 entries in 4,096 buckets; only one in 10^15 random tables has a longer chain */

static const struct forward_list direct = { .header = "", .via = "" };

/* The next build-id of a sequence whose unkeyed FNV-1a falls into bucket 0. */
static struct build_id find_colliding_id(uint64_t *number)
{
        for (;;) {
                struct build_id id = { .size = 8 };
                uint32_t h = 2166136261u;

                ++*number;
                memcpy(id.bytes, number, sizeof *number);
                for (unsigned i = 0; i < id.size; i++)
                        h = (h ^ id.bytes[i]) * 16777619u;
                for (const char *p = "debuginfo"; *p; p++)
                        h = (h ^ (unsigned char)*p) * 16777619u;
                if (h % FETCH_QUEUE_BUCKETS == 0)
                        return id;
        }
}

static size_t longest_chain(const struct fetch_queue *q)
{
        size_t longest = 0;

        for (size_t i = 0; i < FETCH_QUEUE_BUCKETS; i++) {
                size_t n = 0;

                for (const struct fetch_entry *e = q->buckets[i]; e; e = e->next)
                        n++;
                longest = n > longest ? n : longest;
        }
        return longest;
}

START_TEST(ids_that_collide_in_an_unkeyed_hash_are_spread)
{
        static struct fetch_queue q;
        uint64_t number = 0;
        struct build_id last = { 0 };

        for (unsigned i = 0; i < IDS; i++) {
                last = find_colliding_id(&number);
                ck_assert_ptr_null(fetch_queue_find(&q, &last, "debuginfo", &direct));
                ck_assert_ptr_nonnull(fetch_queue_add(&q, &last, "debuginfo", &direct));
        }
        ck_assert_uint_eq(q.count, IDS);
        ck_assert_uint_le(longest_chain(&q), CHAIN_MAX);
        ck_assert_ptr_nonnull(fetch_queue_find(&q, &last, "debuginfo", &direct));
        ck_assert_ptr_null(fetch_queue_find(&q, &last, "executable", &direct));
        fetch_queue_deinit(&q);
}
END_TEST

TEST_SUITE("fetch_queue", ids_that_collide_in_an_unkeyed_hash_are_spread)
