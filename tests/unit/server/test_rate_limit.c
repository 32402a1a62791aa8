/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>

#include "common/limits.h"
#include "server/access/rate_limit.h"
#include "tests/support/suite.h"

#define SECOND INT64_C(1000000000)
#define DAY (86400 * SECOND)

static struct rate_limit *make(void)
{
        struct rate_limit *r = NULL;

        ck_assert_int_eq(rate_limit_create(&r, NULL), ST_OK);
        return r;
}

static unsigned request_many(struct rate_limit *r, uint64_t who, const struct rate_limit_config *limits, unsigned n,
                             int64_t now_ns)
{
        unsigned fine = 0;
        uint64_t wait_s;

        for (unsigned i = 0; i < n; i++)
                fine += rate_limit_take(r, who, limits, 0, now_ns, &wait_s) == RATE_FINE;
        return fine;
}

START_TEST(requests_are_limited_to_rate_after_burst)
{
        static const struct rate_limit_config five = { .requests_per_s = 5 };
        struct rate_limit *r = make();
        uint64_t wait_s = 0;

        ck_assert_uint_eq(request_many(r, 1, &five, 200, 0), 5 * RATE_LIMIT_BURST_S);
        ck_assert_int_eq(rate_limit_take(r, 1, &five, 0, 0, &wait_s), RATE_REQUESTS);
        ck_assert_uint_eq(wait_s, 1);
        ck_assert_uint_eq(request_many(r, 1, &five, 200, 2 * SECOND), 10);
        ck_assert_uint_eq(request_many(r, 1, &five, 200, 3600 * SECOND), 5 * RATE_LIMIT_BURST_S);
        rate_limit_destroy(r);
}
END_TEST

START_TEST(each_client_has_its_own_bucket)
{
        static const struct rate_limit_config one = { .requests_per_s = 1 };
        struct rate_limit *r = make();

        ck_assert_uint_eq(request_many(r, 1, &one, 100, 0), RATE_LIMIT_BURST_S);
        ck_assert_uint_eq(request_many(r, 1 + 4096, &one, 100, 0),
                          RATE_LIMIT_BURST_S); /* in the same slot of the table */
        rate_limit_destroy(r);
}
END_TEST

START_TEST(daily_bytes_may_arrive_at_once)
{
        static const struct rate_limit_config limits = { .bytes_per_day = MiB(864) };
        struct rate_limit *r = make();
        uint64_t wait_s = 0;

        ck_assert_int_eq(rate_limit_take(r, 1, &limits, MiB(800), 0, &wait_s), RATE_FINE);
        ck_assert_int_eq(rate_limit_take(r, 1, &limits, MiB(100), 0, &wait_s),
                         RATE_BYTES); /* although no bytes were counted yet */
        rate_limit_correct(r, 1, &limits, MiB(800), MiB(800), 0);
        ck_assert_int_eq(rate_limit_take(r, 1, &limits, MiB(100), 0, &wait_s), RATE_BYTES);
        ck_assert_uint_eq(wait_s, 3600); /* 36 MiB over a limit of 864 per day */
        ck_assert_int_eq(rate_limit_take(r, 1, &limits, MiB(64), 0, &wait_s), RATE_FINE);
        rate_limit_correct(r, 1, &limits, MiB(64), 0, 0);
        ck_assert_int_eq(rate_limit_take(r, 1, &limits, MiB(100), 3600 * SECOND, &wait_s), RATE_FINE);
        rate_limit_destroy(r);
}
END_TEST

START_TEST(bytes_of_unknown_size_are_charged_afterwards)
{
        static const struct rate_limit_config limits = { .bytes_per_day = MiB(1) };
        struct rate_limit *r = make();
        uint64_t wait_s = 0;

        ck_assert_int_eq(rate_limit_take(r, 1, &limits, 0, 0, &wait_s), RATE_FINE);
        rate_limit_correct(r, 1, &limits, 0, MiB(3), 0);
        ck_assert_int_eq(rate_limit_take(r, 1, &limits, 0, DAY, &wait_s), RATE_BYTES);
        ck_assert_int_eq(rate_limit_take(r, 1, &limits, 0, 2 * DAY + SECOND, &wait_s), RATE_FINE);
        rate_limit_destroy(r);
}
END_TEST

START_TEST(object_larger_than_daily_limit_is_admitted_with_full_bucket)
{
        static const struct rate_limit_config limits = { .bytes_per_day = MiB(1) };
        struct rate_limit *r = make();
        uint64_t wait_s = 0;

        ck_assert_int_eq(rate_limit_take(r, 1, &limits, GiB(1), 0, &wait_s), RATE_FINE);
        ck_assert_int_eq(rate_limit_take(r, 1, &limits, GiB(1), 0, &wait_s), RATE_BYTES);
        ck_assert_uint_eq(wait_s, 86400);
        rate_limit_correct(r, 1, &limits, GiB(1), 1, 0);
        ck_assert_int_eq(rate_limit_take(r, 1, &limits, GiB(1), 0, &wait_s), RATE_BYTES);
        ck_assert_uint_eq(wait_s, 1);
        rate_limit_correct(r, 1, &limits, 1, 0, 0);
        ck_assert_int_eq(rate_limit_take(r, 1, &limits, UINT64_MAX, 0, &wait_s), RATE_FINE);
        rate_limit_correct(r, 1, &limits, UINT64_MAX, 1, 0);
        ck_assert_int_eq(rate_limit_take(r, 1, &limits, MiB(1) - 1, 0, &wait_s), RATE_FINE);
        rate_limit_destroy(r);
}
END_TEST

START_TEST(number_of_buckets_is_limited)
{
        static const struct rate_limit_config one = { .requests_per_s = 1 };
        struct rate_limit *r = make();

        ck_assert_uint_eq(request_many(r, 0, &one, 100, 0), RATE_LIMIT_BURST_S);
        for (uint64_t who = 1; who < RATE_LIMIT_BUCKETS_MAX; who++)
                ck_assert_uint_eq(request_many(r, who, &one, 1, 1), 1);
        ck_assert_uint_eq(request_many(r, 0, &one, 1, 2), 0);
        ck_assert_uint_eq(request_many(r, RATE_LIMIT_BUCKETS_MAX, &one, 1, 3),
                          1); /* evicts the least recently used one, which is 1 */
        ck_assert_uint_eq(request_many(r, 0, &one, 1, 4), 0);
        rate_limit_destroy(r);
}
END_TEST

TEST_SUITE("rate_limit", requests_are_limited_to_rate_after_burst, each_client_has_its_own_bucket,
           daily_bytes_may_arrive_at_once, bytes_of_unknown_size_are_charged_afterwards,
           object_larger_than_daily_limit_is_admitted_with_full_bucket, number_of_buckets_is_limited)
