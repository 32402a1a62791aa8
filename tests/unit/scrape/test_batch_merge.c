/* SPDX-License-Identifier: Apache-2.0 */
/* Merging scraped profiles into batches, passed to a sender and a service that accepts everything. */
#include <pthread.h>
#include <string.h>

#include "common/clock.h"
#include "common/compress/compress.h"
#include "common/limits.h"
#include "profile-formats/otlp/otlp.h"
#include "profile-formats/profile_accept.h"
#include "scrape/batch_merge.h"
#include "tests/support/batch_service.h"
#include "tests/support/profiles.h"
#include "tests/support/suite.h"

static struct batch_service service; /* large */
static struct sender *sender;
static struct batch_merge merge;

static void begin_merging_with(bool holds)
{
        static const struct batch_answer answers[] = { { .code = -1 } }; /* 200 always */
        const struct sender_options o = { .server = service.url };

        batch_service_start(&service, answers);
        ck_assert_int_eq(sender_create(&o, &sender, NULL), ST_OK);
        batch_merge_init(&merge, sender, holds);
}

static void begin_merging(void)
{
        begin_merging_with(false);
}

/* Send the pending profiles and check each batch like the service; returns the sum of all values. */
static int64_t end_merging(uint64_t lost, uint32_t *samples_ret)
{
        int64_t sum = 0;

        ck_assert_int_eq(batch_merge_flush(&merge, 0), INT64_MAX);
        ck_assert(!batch_merge_has_pending(&merge));
        ck_assert_int_eq(sender_flush(sender, 30000, NULL), ST_OK);
        ck_assert_uint_eq(batch_merge_count_lost(&merge), lost);
        batch_merge_deinit(&merge);
        sender_destroy(sender);
        batch_service_stop(&service);
        *samples_ret = 0;
        for (size_t i = 0; i < service.count; i++) {
                _cleanup_buf_ struct buf body;
                struct profile p;

                buf_init(&body, LIMIT_HTTP_BODY_BYTES);
                ck_assert_int_eq(gzip_decompress(service.posts[i].body, service.posts[i].size, &body, NULL), ST_OK);
                ck_assert_int_eq(otlp_decode(body.data, body.size, &p, NULL), ST_OK);
                ck_assert_int_eq(profile_check_labels(&p, NULL), ST_OK);
                *samples_ret += p.samples.count;
                for (uint32_t k = 0; k < p.samples.count; k++)
                        sum += p.samples.items[k].value;
                profile_deinit(&p);
        }
        return sum;
}

/* A profile whose samples each have `last` labels of their own, with names that begin with the prefix. */
static void make_profile(struct test_profile *t, uint32_t samples, unsigned keys, const char *prefix, int64_t value)
{
        uint32_t location;

        test_profile_init(t, "00112233445566778899aabbccddeeff00112233", "/bin/shop");
        for (uint32_t i = 0; i < samples; i++) {
                char texts[128][80];
                const char *labels[129] = { NULL };

                for (unsigned k = 0; k < keys; k++) {
                        snprintf(texts[k], sizeof texts[k], "%s%u=v", prefix, k);
                        labels[k] = texts[k];
                }
                location = test_location(t, 16 * (uint64_t)i);
                test_sample(t, 1700000000000000000, value, &location, 1, labels);
        }
}

static void add_profile(uint32_t samples, unsigned keys, const char *prefix, int64_t value)
{
        struct test_profile t;

        make_profile(&t, samples, keys, prefix, value);
        ck_assert_int_eq(batch_merge_add(&merge, &t.p, 1, NULL), ST_OK);
        test_profile_deinit(&t);
}

START_TEST(small_profiles_share_a_batch)
{
        uint32_t samples;

        begin_merging();
        for (int i = 0; i < 30; i++)
                add_profile(3, 2, "k", 7);
        ck_assert(batch_merge_has_pending(&merge));
        ck_assert_int_eq(end_merging(0, &samples), 30 * 3 * 7);
        ck_assert_uint_eq(samples, 90);
        ck_assert_uint_eq(service.count, 2);
        batch_service_deinit(&service);
}
END_TEST

/* Each has other label names: together more than a service accepts in one batch. */
START_TEST(labels_of_one_target_do_not_displace_others)
{
        uint32_t samples;
        char prefix[80];

        begin_merging();
        for (int i = 0; i < 40; i++) {
                snprintf(prefix, sizeof prefix, "own_%d_%0*d_", i, i % 2 ? 50 : 1, 0);
                add_profile(1, i == 7 ? 120 : 48, prefix, 1);
        }
        ck_assert_int_eq(end_merging(0, &samples), 40);
        ck_assert_uint_ge(service.count, 3);
        ck_assert_uint_le(service.count, 5);
        batch_service_deinit(&service);
}
END_TEST

START_TEST(large_profiles_are_sent_alone_and_recent_ones_wait)
{
        uint32_t samples;

        begin_merging();
        add_profile(1, 0, "", 1);
        ck_assert_int_gt(batch_merge_flush(&merge, INT64_C(3600000000000)), 0);
        ck_assert(batch_merge_has_pending(&merge));
        add_profile(20000, 0, "", 1);
        ck_assert(batch_merge_has_pending(&merge));
        ck_assert_int_eq(end_merging(0, &samples), 20001);
        ck_assert_uint_eq(service.count, 2);
        batch_service_deinit(&service);
}
END_TEST

/* A profile with samples of value 1, each with a type of its own. */
static void add_types(uint32_t count, const char *prefix)
{
        struct test_profile t;
        uint32_t location;
        char id[80];

        make_profile(&t, 0, 0, "", 0);
        location = test_location(&t, 16);
        for (uint32_t i = 0; i < count; i++) {
                struct profile_type type = { .unit = test_string(&t, "count") };

                snprintf(id, sizeof id, "%s_%u:a:count:a:count", prefix, i);
                type.id = test_string(&t, id);
                ck_assert_int_eq(profile_add_type(&t.p, &type, &t.type, NULL), ST_OK);
                test_sample(&t, 1700000000000000000, 1, &location, 1, NULL);
        }
        ck_assert_int_eq(batch_merge_add(&merge, &t.p, 1, NULL), ST_OK);
        test_profile_deinit(&t);
}

/* 256 types fit in one batch: those of one target must not displace those of others. */
START_TEST(types_of_one_target_do_not_displace_others)
{
        uint32_t samples;
        char prefix[40];

        begin_merging();
        add_profile(1, 0, "", 1);
        add_types(250, "hostile");
        ck_assert(batch_merge_has_pending(&merge)); /* as before */
        for (int i = 0; i < 30; i++) {
                snprintf(prefix, sizeof prefix, "own_%d", i);
                add_types(5, prefix);
        }
        ck_assert_int_eq(end_merging(0, &samples), 1 + 250 + 30 * 5);
        ck_assert_uint_eq(service.count, 3);
        batch_service_deinit(&service);
}
END_TEST

START_TEST(profiles_are_sent_singly_without_memory_to_merge)
{
        struct memory_reservation others = { .use = MEMORY_INGEST };
        struct test_profile t;
        uint32_t samples;

        ck_assert_int_eq(memory_budget_set_limit(LIMIT_MEMORY_LEAST_BYTES, NULL), ST_OK);
        begin_merging();
        add_profile(1, 0, "", 1);
        make_profile(&t, 2000, 0, "", 1);
        while (!memory_reserve(&others, KiB(1), NULL))
                ;
        ck_assert_int_eq(batch_merge_add(&merge, &t.p, 1, NULL), ST_OK); /* pending profiles prevent it */
        ck_assert(!batch_merge_has_pending(&merge));
        ck_assert_int_eq(batch_merge_add(&merge, &t.p, 1, NULL), ST_OK); /* now there are none */
        memory_release(&others);
        test_profile_deinit(&t);
        ck_assert_int_eq(end_merging(0, &samples), 4001);
        ck_assert_uint_eq(service.count, 3);
        batch_service_deinit(&service);
}
END_TEST

/* A sample whose names alone exceed the limit of a batch. */
static void add_large_sample(struct test_profile *t)
{
        enum { FRAMES = LIMIT_HTTP_BODY_BYTES / LIMIT_NAME_BYTES + 16 };
        _cleanup_free_ char *name = malloc(LIMIT_NAME_BYTES);
        uint32_t locations[FRAMES];

        memset(name, 'x', LIMIT_NAME_BYTES);
        for (int i = 0; i < FRAMES; i++) {
                snprintf(name + LIMIT_NAME_BYTES - 20, 20, "%d", i);
                locations[i] = test_named_location(t, false, 0, name, "", 1);
        }
        test_sample(t, 1, 1, locations, FRAMES, NULL);
}

START_TEST(oversized_sample_is_dropped_alone)
{
        for (int last = 0; last < 2; last++) {
                struct test_profile t;
                uint32_t location, samples;

                begin_merging();
                make_profile(&t, 0, 0, "", 0);
                location = test_location(&t, 16);
                if (!last)
                        add_large_sample(&t);
                for (int i = 0; i < 3; i++)
                        test_sample(&t, 1, 1 << i, &location, 1, NULL);
                if (last)
                        add_large_sample(&t);
                ck_assert_int_eq(batch_merge_add(&merge, &t.p, 1, NULL), ST_OK);
                test_profile_deinit(&t);
                ck_assert_int_eq(end_merging(1, &samples), 7);
                batch_service_deinit(&service);
        }
}
END_TEST

START_TEST(nothing_of_a_refused_profile_is_sent)
{
        struct test_profile t;
        uint32_t samples;

        begin_merging();
        make_profile(&t, 0, 0, "", 0);
        add_large_sample(&t);
        add_large_sample(&t);
        ck_assert_int_eq(batch_merge_add(&merge, &t.p, 1, NULL), ST_TOO_BIG);
        test_profile_deinit(&t);
        ck_assert_int_eq(end_merging(0, &samples), 0); /* losses are reported to the caller */
        ck_assert_uint_eq(service.count, 0);
        batch_service_deinit(&service);
}
END_TEST

static void *add_many(void *arg)
{
        (void)arg;
        for (int i = 0; i < 200; i++) {
                add_profile(2, 1, "k", 1);
                if (i % 50 == 0)
                        (void)batch_merge_flush(&merge, 0);
        }
        return NULL;
}

START_TEST(threads_lose_nothing)
{
        pthread_t threads[4];
        uint32_t samples;

        begin_merging();
        for (size_t i = 0; i < 4; i++)
                ck_assert_int_eq(pthread_create(&threads[i], NULL, add_many, NULL), 0);
        for (size_t i = 0; i < 4; i++)
                pthread_join(threads[i], NULL);
        ck_assert_int_eq(end_merging(0, &samples), 4 * 200 * 2);
        batch_service_deinit(&service);
}
END_TEST

/* ---- terms ---- */

static enum status add_to_term(uint64_t term, uint32_t samples, int64_t value)
{
        struct test_profile t;
        enum status st;

        make_profile(&t, samples, 1, "k", value);
        st = batch_merge_add(&merge, &t.p, term, NULL);
        test_profile_deinit(&t);
        return st;
}

START_TEST(held_batches_wait_for_a_confirmation_that_began_after_them)
{
        uint32_t samples;
        int64_t before, between;

        begin_merging_with(true);
        batch_merge_begin_term(&merge, 7);
        ck_assert_int_eq(add_to_term(7, 1, 1), ST_OK);
        before = monotonic_ns();
        (void)batch_merge_flush(&merge, 0);
        batch_merge_confirm(&merge, before);
        ck_assert(batch_merge_has_pending(&merge)); /* it may have been scraped after another one began */
        between = monotonic_ns();
        ck_assert_int_eq(add_to_term(7, 1, 10), ST_OK);
        ck_assert_int_eq(add_to_term(7, 30000, 100), ST_OK); /* too large to be merged: alone in its batch */
        (void)batch_merge_flush(&merge, 0);
        batch_merge_confirm(&merge, between);
        batch_merge_end_term(&merge);
        ck_assert_uint_eq(batch_merge_count_discarded(&merge), 30001);
        ck_assert_int_eq(end_merging(0, &samples), 1);
}
END_TEST

START_TEST(profiles_of_another_term_are_refused)
{
        uint32_t samples;

        begin_merging_with(true);
        ck_assert_int_eq(add_to_term(7, 1, 1), ST_BUSY);
        ck_assert_int_eq(add_to_term(0, 1, 1), ST_BUSY);
        batch_merge_begin_term(&merge, 7);
        batch_merge_end_term(&merge);
        batch_merge_begin_term(&merge, 9);
        ck_assert_int_eq(add_to_term(7, 1, 1), ST_BUSY);
        ck_assert_int_eq(add_to_term(9, 1, 5), ST_OK);
        (void)batch_merge_flush(&merge, 0);
        batch_merge_confirm(&merge, INT64_MAX);
        ck_assert_int_eq(end_merging(0, &samples), 5);
        ck_assert_uint_eq(samples, 1);
}
END_TEST

TEST_SUITE("batch_merge", small_profiles_share_a_batch, labels_of_one_target_do_not_displace_others,
           large_profiles_are_sent_alone_and_recent_ones_wait, types_of_one_target_do_not_displace_others,
           profiles_are_sent_singly_without_memory_to_merge, oversized_sample_is_dropped_alone,
           nothing_of_a_refused_profile_is_sent, threads_lose_nothing,
           held_batches_wait_for_a_confirmation_that_began_after_them, profiles_of_another_term_are_refused)
