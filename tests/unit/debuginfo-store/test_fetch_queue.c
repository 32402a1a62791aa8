/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "debuginfo-store/federation/fetch_queue.h"
#include "tests/support/suite.h"

#define IDS 2000
#define BUCKETS 4096
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
                if (h % BUCKETS == 0)
                        return id;
        }
}

static size_t longest_chain(const struct fetch_queue *q)
{
        size_t longest = 0;

        ck_assert_uint_eq(q->entries.bucket_count, BUCKETS);
        for (size_t i = 0; i < BUCKETS; i++) {
                size_t n = 0;
                const struct lru_entry *e;

                LIST_FOREACH(e, &q->entries.buckets[i], same_bucket)
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

        ck_assert_int_eq(fetch_queue_init(&q, NULL), ST_OK);
        for (unsigned i = 0; i < IDS; i++) {
                last = find_colliding_id(&number);
                ck_assert_ptr_null(fetch_queue_find(&q, &last, "debuginfo", &direct));
                ck_assert_ptr_nonnull(fetch_queue_add(&q, &last, "debuginfo", &direct));
        }
        ck_assert_uint_eq(q.entries.count, IDS);
        ck_assert_uint_le(longest_chain(&q), CHAIN_MAX);
        ck_assert_ptr_nonnull(fetch_queue_find(&q, &last, "debuginfo", &direct));
        ck_assert_ptr_null(fetch_queue_find(&q, &last, "executable", &direct));
        fetch_queue_deinit(&q);
}
END_TEST

START_TEST(full_queue_evicts_cached_results_before_pending_requests)
{
        static struct fetch_queue q;
        struct build_id id = { .size = 8 };
        struct fetch_entry *entry;

        ck_assert_int_eq(fetch_queue_init(&q, NULL), ST_OK);
        for (uint64_t i = 0; i < FETCH_QUEUE_MAX; i++) {
                memcpy(id.bytes, &i, sizeof i);
                entry = fetch_queue_add(&q, &id, "debuginfo", &direct);
                ck_assert_ptr_nonnull(entry);
                entry->state = i == 5 || i == 7 ? FETCH_ENTRY_MISSING : FETCH_ENTRY_QUEUED;
                entry->forget_ns = INT64_MAX;
        }
        for (uint64_t evicted = 5; evicted <= 7; evicted += 2) {
                id.bytes[7] = (uint8_t)evicted;
                ck_assert_ptr_nonnull(fetch_queue_add(&q, &id, "debuginfo", &direct));
                id = (struct build_id){ .size = 8 };
                memcpy(id.bytes, &evicted, sizeof evicted);
                ck_assert_ptr_null(fetch_queue_find(&q, &id, "debuginfo", &direct));
                ck_assert_uint_eq(q.entries.count, FETCH_QUEUE_MAX);
        }
        id.bytes[7] = 9;
        ck_assert_ptr_null(fetch_queue_add(&q, &id, "debuginfo", &direct));
        fetch_queue_deinit(&q);
}
END_TEST

TEST_SUITE("fetch_queue", ids_that_collide_in_an_unkeyed_hash_are_spread,
           full_queue_evicts_cached_results_before_pending_requests)
