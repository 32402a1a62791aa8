/* SPDX-License-Identifier: Apache-2.0 */
/* Joining scraped profiles to batches, in front of a sender and a service that takes everything. */
#include <pthread.h>
#include <string.h>

#include "common/compress.h"
#include "common/limits.h"
#include "profile-formats/otlp.h"
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
static int64_t end_merging(uint32_t *samples_ret)
{
        int64_t sum = 0;

        ck_assert_int_eq(batch_merge_flush(&merge, 0), INT64_MAX);
        ck_assert(!batch_merge_has_pending(&merge));
        ck_assert_int_eq(sender_flush(sender, 30000, NULL), ST_OK);
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
static void add_profile(uint32_t samples, unsigned keys, const char *prefix, int64_t value)
{
        struct test_profile t;
        uint32_t location;

        test_profile_init(&t, "00112233445566778899aabbccddeeff00112233", "/bin/shop");
        for (uint32_t i = 0; i < samples; i++) {
                char texts[128][80];
                const char *labels[129] = { NULL };

                for (unsigned k = 0; k < keys; k++) {
                        snprintf(texts[k], sizeof texts[k], "%s%u=v", prefix, k);
                        labels[k] = texts[k];
                }
                location = test_location(&t, 16 * (uint64_t)i);
                test_sample(&t, 1700000000000000000, value, &location, 1, labels);
        }
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
        ck_assert_int_eq(end_merging(&samples), 30 * 3 * 7);
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
        ck_assert_int_eq(end_merging(&samples), 40);
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
        ck_assert_int_eq(end_merging(&samples), 20001);
        ck_assert_uint_eq(service.count, 2);
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
        ck_assert_int_eq(end_merging(&samples), 4 * 200 * 2);
        batch_service_deinit(&service);
}
END_TEST

TEST_SUITE("batch_merge", small_profiles_share_a_batch, labels_of_one_target_do_not_cost_others_their_batch,
           large_profiles_go_alone_and_young_ones_wait, threads_lose_nothing)
