/* SPDX-License-Identifier: Apache-2.0 */
/* Joining scraped profiles to batches, in front of a sender and a service that takes everything. */
#include <pthread.h>
#include <string.h>

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

static void begin_merging(void)
{
        static const struct batch_answer answers[] = { { .code = -1 } }; /* 200 always */
        const struct sender_options o = { .server = service.url };

        batch_service_start(&service, answers);
        ck_assert_int_eq(sender_create(&o, &sender, NULL), ST_OK);
        batch_merge_init(&merge, sender);
}

/* Send what waits, and check each batch as the service would; returns the sum of all values. */
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

/* A profile of samples that each have as many labels of their own as the last one, with names of the prefix. */
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
        ck_assert_int_eq(batch_merge_add(&merge, &t.p, NULL), ST_OK);
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

/* Each has other names of labels: all together more than a service takes in one batch. */
START_TEST(labels_of_one_target_do_not_cost_others_their_batch)
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

START_TEST(large_profiles_go_alone_and_young_ones_wait)
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

/* A profile of samples of 1, each of a type of its own. */
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
        ck_assert_int_eq(batch_merge_add(&merge, &t.p, NULL), ST_OK);
        test_profile_deinit(&t);
}

/* 256 types fit in one batch: those of one target leave none for others when they share one. */
START_TEST(types_of_one_target_leave_room_for_those_of_others)
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

START_TEST(without_memory_to_join_them_profiles_go_one_by_one)
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
        ck_assert_int_eq(batch_merge_add(&merge, &t.p, NULL), ST_OK); /* what waits is in the way */
        ck_assert(!batch_merge_has_pending(&merge));
        ck_assert_int_eq(batch_merge_add(&merge, &t.p, NULL), ST_OK); /* nothing is */
        memory_release(&others);
        test_profile_deinit(&t);
        ck_assert_int_eq(end_merging(0, &samples), 4001);
        ck_assert_uint_eq(service.count, 3);
        batch_service_deinit(&service);
}
END_TEST

/* A sample whose names alone are more than a batch may have. */
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

START_TEST(a_sample_too_large_for_a_batch_is_lost_alone)
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
                ck_assert_int_eq(batch_merge_add(&merge, &t.p, NULL), ST_OK);
                test_profile_deinit(&t);
                ck_assert_int_eq(end_merging(1, &samples), 7);
                batch_service_deinit(&service);
        }
}
END_TEST

START_TEST(nothing_is_sent_of_a_profile_that_is_refused)
{
        struct test_profile t;
        uint32_t samples;

        begin_merging();
        make_profile(&t, 0, 0, "", 0);
        add_large_sample(&t);
        add_large_sample(&t);
        ck_assert_int_eq(batch_merge_add(&merge, &t.p, NULL), ST_TOO_BIG);
        test_profile_deinit(&t);
        ck_assert_int_eq(end_merging(0, &samples), 0); /* the caller knows of what is lost */
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

TEST_SUITE("batch_merge", small_profiles_share_a_batch, labels_of_one_target_do_not_cost_others_their_batch,
           large_profiles_go_alone_and_young_ones_wait, types_of_one_target_leave_room_for_those_of_others,
           without_memory_to_join_them_profiles_go_one_by_one, a_sample_too_large_for_a_batch_is_lost_alone,
           nothing_is_sent_of_a_profile_that_is_refused, threads_lose_nothing)
