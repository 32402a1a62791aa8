/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <pthread.h>

#include "common/limits.h"
#include "common/memory/memory_budget.h"
#include "tests/support/suite.h"

#define LIMIT_BYTES MiB(512)

/* Each test runs in a process of its own, so that limits do not affect other tests. */
static void set_limit(void)
{
        ck_assert_int_eq(memory_budget_set_limit(LIMIT_BYTES, NULL), ST_OK);
}

/* Reserve all memory that a use can get, in steps of 1 MiB. */
static size_t fill_use(struct memory_reservation *r)
{
        while (memory_reserve(r, MiB(1), NULL) == ST_OK)
                ;
        return r->bytes;
}

START_TEST(everything_is_granted_and_counted_without_a_limit)
{
        struct memory_reservation r = { .use = MEMORY_QUERIES };

        ck_assert_int_eq(memory_reserve(&r, GiB(100), NULL), ST_OK);
        ck_assert_uint_eq(memory_use_held(MEMORY_QUERIES), GiB(100));
        memory_release(&r);
        ck_assert_uint_eq(memory_use_held(MEMORY_QUERIES), 0);
}
END_TEST

START_TEST(a_use_stops_at_its_ceiling)
{
        struct memory_reservation r = { .use = MEMORY_ANSWERS }, other = { .use = MEMORY_ANSWERS };
        struct error err;

        set_limit();
        ck_assert_uint_le(fill_use(&r), memory_use_ceiling(MEMORY_ANSWERS));
        ck_assert_uint_gt(r.bytes + MiB(1), memory_use_ceiling(MEMORY_ANSWERS));
        ck_assert_int_eq(memory_reserve(&r, MiB(1), &err),
                         ST_TOO_BIG); /* it exceeds the ceiling by itself: a retry cannot succeed */
        ck_assert_int_eq(memory_reserve(&other, MiB(1), &err), ST_BUSY);
        ck_assert_uint_eq(other.bytes, 0);
        memory_shrink(&r, 0);
        ck_assert_int_eq(memory_reserve(&other, MiB(1), &err), ST_OK);
        memory_release(&other);
}
END_TEST

START_TEST(floors_are_available_when_everything_else_is_used)
{
        static const enum memory_use greedy[] = { MEMORY_QUERIES, MEMORY_UPLOADS, MEMORY_BODIES, MEMORY_SYMBOLIZE,
                                                  MEMORY_ANSWERS };
        static const enum memory_use essential[] = { MEMORY_INGEST, MEMORY_QUEUE, MEMORY_FLUSH, MEMORY_RESYMBOLIZE };
        size_t all = 0;

        set_limit();
        for (unsigned i = 0; i < sizeof greedy / sizeof *greedy; i++)
                all += fill_use(&(struct memory_reservation){ .use = greedy[i] });
        for (unsigned i = 0; i < sizeof essential / sizeof *essential; i++) {
                size_t got = fill_use(&(struct memory_reservation){ .use = essential[i] });

                ck_assert_uint_ge(got, (LIMIT_BYTES - MiB(64)) / 100 * 5 - MiB(1));
                all += got;
        }
        ck_assert_uint_le(all, LIMIT_BYTES);
}
END_TEST

START_TEST(claiming_use_gets_released_memory_first)
{
        struct memory_reservation flush = { .use = MEMORY_FLUSH }, queries = { .use = MEMORY_QUERIES },
                                  answers = { .use = MEMORY_ANSWERS }, ingest = { .use = MEMORY_INGEST },
                                  uploads = { .use = MEMORY_UPLOADS };
        size_t had;

        set_limit();
        fill_use(&queries);
        fill_use(&answers);
        had = fill_use(&flush);
        ck_assert_uint_lt(had + MiB(30), memory_use_ceiling(MEMORY_FLUSH));
        memory_claim(MEMORY_FLUSH);
        memory_shrink(&queries, queries.bytes - MiB(20));
        ck_assert_int_eq(memory_reserve(&uploads, MiB(1), NULL), ST_BUSY);
        ck_assert_int_eq(memory_reserve(&ingest, MiB(1), NULL), ST_OK); /* of its floor */
        ck_assert_int_eq(memory_reserve(&flush, MiB(10), NULL), ST_OK);
        memory_end_claim(MEMORY_FLUSH);
        ck_assert_int_eq(memory_reserve(&uploads, MiB(1), NULL), ST_OK);
        ck_assert_int_eq(memory_reserve(&flush, MiB(10), NULL), ST_BUSY);
}
END_TEST

START_TEST(group_is_limited_and_its_largest_reservation_can_grow)
{
        struct memory_group group = { .most = MiB(10) }, other_group = { .most = MiB(10) };
        struct memory_reservation large = { .use = MEMORY_INGEST, .group = &group },
                                  small = { .use = MEMORY_INGEST, .group = &group },
                                  other = { .use = MEMORY_INGEST, .group = &other_group };

        set_limit();
        ck_assert_int_eq(memory_reserve(&large, MiB(7), NULL), ST_OK);
        ck_assert_int_eq(memory_reserve(&small, MiB(3), NULL), ST_OK);
        ck_assert_int_eq(memory_reserve(&small, 1, NULL), ST_BUSY);
        ck_assert_uint_eq(small.bytes, MiB(3));
        ck_assert_int_eq(memory_reserve(&large, MiB(1), NULL), ST_OK); /* it holds most of it */
        ck_assert_int_eq(memory_reserve(&other, MiB(10), NULL), ST_OK);
        ck_assert_uint_eq(group.held, MiB(11));
        memory_release(&large);
        ck_assert_uint_eq(group.held, MiB(3));
        ck_assert_int_eq(memory_reserve(&small, MiB(12), NULL), ST_OK); /* alone */
        memory_release(&small);
        memory_release(&other);
        ck_assert_uint_eq(group.held, 0);
        ck_assert_uint_eq(memory_use_held(MEMORY_INGEST), 0);
}
END_TEST

START_TEST(reservation_releases_exactly_what_it_holds)
{
        struct memory_reservation r = { .use = MEMORY_FLUSH };

        set_limit();
        ck_assert_int_eq(memory_resize(&r, 1000, NULL), ST_OK);
        ck_assert_int_eq(memory_resize(&r, 10, NULL), ST_OK);
        ck_assert_uint_eq(memory_use_held(MEMORY_FLUSH), 10);
        memory_shrink(&r, 20);
        ck_assert_uint_eq(r.bytes, 10);
        ck_assert_int_eq(memory_resize(&r, LIMIT_BYTES, NULL), ST_TOO_BIG);
        ck_assert_uint_eq(r.bytes, 10);
        memory_release(&r);
        memory_release(&r);
        ck_assert_uint_eq(memory_use_held(MEMORY_FLUSH), 0);
}
END_TEST

START_TEST(too_low_a_limit_is_refused)
{
        struct error err;

        ck_assert_int_eq(memory_budget_set_limit(LIMIT_MEMORY_LEAST_BYTES - 1, &err), ST_USAGE);
        ck_assert_uint_eq(memory_budget_limit(), SIZE_MAX);
        ck_assert_uint_ge(memory_budget_default(), LIMIT_MEMORY_LEAST_BYTES);
}
END_TEST

static void *reserve_and_release(void *arg)
{
        struct memory_reservation r = { .use = MEMORY_QUERIES };

        (void)arg;
        for (unsigned i = 0; i < 20000; i++) {
                ck_assert_int_eq(memory_reserve(&r, i % 777, NULL), ST_OK);
                if (i % 7 == 0)
                        memory_release(&r);
        }
        memory_release(&r);
        return NULL;
}

START_TEST(concurrent_reservations_are_counted_exactly)
{
        pthread_t threads[4];

        set_limit();
        for (unsigned i = 0; i < 4; i++)
                ck_assert_int_eq(pthread_create(&threads[i], NULL, reserve_and_release, NULL), 0);
        for (unsigned i = 0; i < 4; i++)
                pthread_join(threads[i], NULL);
        ck_assert_uint_eq(memory_use_held(MEMORY_QUERIES), 0);
}
END_TEST

TEST_SUITE("memory budget", everything_is_granted_and_counted_without_a_limit, a_use_stops_at_its_ceiling,
           floors_are_available_when_everything_else_is_used, claiming_use_gets_released_memory_first,
           group_is_limited_and_its_largest_reservation_can_grow, reservation_releases_exactly_what_it_holds,
           too_low_a_limit_is_refused, concurrent_reservations_are_counted_exactly)
