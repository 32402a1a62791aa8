/* SPDX-License-Identifier: Apache-2.0 */
/* The sender, with a service that sends scripted responses. */
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/compress/compress.h"
#include "common/limits.h"
#include "profile-formats/otlp/otlp.h"
#include "sending/batch_split.h"
#include "sending/sender.h"
#include "tests/support/sender_batch.h"
#include "tests/support/batch_service.h"
#include "tests/support/profiles.h"
#include "tests/support/suite.h"

static struct batch_service service; /* large */

#define ANSWER(c)                                                                                                      \
        {                                                                                                              \
                .code = (c)                                                                                            \
        }
#define END ANSWER(-1)

static struct sender *sender_to(unsigned short port)
{
        char url[64];
        const struct sender_options o = { .server = url };
        struct sender *s = NULL;
        struct error err;

        snprintf(url, sizeof url, "http://127.0.0.1:%u", port);
        ck_assert_msg(sender_create(&o, &s, &err) == ST_OK, "%s", err.text);
        return s;
}

static void put(struct sender *s, const char *text)
{
        struct error err;

        struct buf packed;

        buf_init(&packed, KiB(1));
        ck_assert_int_eq(gzip_compress(text, strlen(text), 1, &packed, NULL), ST_OK);
        ck_assert_msg(put_sender_batch(s, &packed, &err) == ST_OK, "%s", err.text);
}

START_TEST(batch_keeps_its_id_until_accepted)
{
        static const struct batch_answer answers[] = { ANSWER(503), ANSWER(429), ANSWER(200), END };
        struct sender_stats stats;
        struct sender *s;
        struct error err;

        batch_service_start(&service, answers);
        s = sender_to(service.port);
        put(s, "first");
        put(s, "second");
        ck_assert_msg(sender_flush(s, 30000, &err) == ST_OK, "%s", err.text);
        sender_get_stats(s, &stats);
        ck_assert_uint_eq(stats.sent, 2);
        ck_assert_uint_eq(stats.retried, 2);
        ck_assert_uint_eq(stats.outbox.queued, 0);
        ck_assert_uint_eq(stats.outbox.queued_bytes, 0);
        sender_destroy(s);
        batch_service_stop(&service);
        ck_assert_uint_eq(service.count, 4);
        ck_assert_str_eq(service.posts[0].id, service.posts[1].id);
        ck_assert_str_eq(service.posts[0].id, service.posts[2].id);
        ck_assert_str_ne(service.posts[0].id, service.posts[3].id);
        batch_service_deinit(&service);
}
END_TEST

/* Send one batch, or two, to a service with these responses; returns the statistics. */
static struct sender_stats send_to(const struct batch_answer *answers, int batches)
{
        struct sender_stats stats;
        struct sender *s;
        struct error err;

        batch_service_start(&service, answers);
        s = sender_to(service.port);
        ck_assert_int_eq(sender_flush(s, 0, &err), ST_OK); /* an empty batch: sending one ends a pause */
        put(s, "one");
        if (batches > 1)
                put(s, "two");
        ck_assert_msg(sender_flush(s, 30000, &err) == ST_OK, "%s", err.text);
        sender_get_stats(s, &stats);
        sender_destroy(s);
        batch_service_stop(&service);
        batch_service_deinit(&service);
        return stats;
}

START_TEST(refused_batch_does_not_block_the_next)
{
        static const struct batch_answer answers[] = { ANSWER(400), END };
        struct sender_stats stats = send_to(answers, 2);

        ck_assert_uint_eq(stats.sent, 1);
        ck_assert_uint_eq(stats.outbox.dropped[DROP_REFUSED], 1);
        ck_assert_uint_eq(service.count, 2);
}
END_TEST

START_TEST(wrong_token_or_address_loses_no_batch)
{
        static const struct batch_answer answers[] = { ANSWER(401), ANSWER(403), ANSWER(404), ANSWER(302), END };
        struct sender_stats stats = send_to(answers, 1);

        ck_assert_uint_eq(stats.sent, 1);
        ck_assert_uint_eq(stats.retried, 4);
}
END_TEST

START_TEST(response_of_another_service_is_not_an_acknowledgement)
{
        static const struct batch_answer answers[] = { { 200, "Content-Type: text/html\r\n",
                                                         "<html>please log in</html>" },
                                                       { 200, "Content-Type: application/x-protobuf\r\n", "garbage" },
                                                       ANSWER(0), /* the connection breaks */
                                                       { 200, "Content-Type: application/x-protobuf\r\n", "" },
                                                       END };
        struct sender_stats stats = send_to(answers, 1);

        ck_assert_uint_eq(stats.sent, 1);
        ck_assert_uint_eq(stats.retried, 2); /* and once by libcurl, which had reused the broken connection */
        ck_assert_uint_eq(service.count, 4);
}
END_TEST

START_TEST(samples_that_a_service_rejects_are_counted)
{
        /* partial_success { rejected_profiles: 3, error_message: "no" } */
        static const struct batch_answer answers[] = {
                { 200, "Content-Type: application/x-protobuf\r\n", "\x0a\x06\x08\x03\x12\x02no" }, END
        };
        struct sender_stats stats = send_to(answers, 1);

        ck_assert_uint_eq(stats.sent, 1);
        ck_assert_uint_eq(stats.rejected_samples, 3);
}
END_TEST

START_TEST(retry_after_is_respected)
{
        static const struct batch_answer answers[] = { { 429, "Retry-After: 2\r\n", NULL }, END };
        int64_t from = monotonic_ns();
        struct sender_stats stats = send_to(answers, 1);

        ck_assert_uint_eq(stats.sent, 1);
        ck_assert_int_ge(monotonic_ns() - from, INT64_C(2000000000));
}
END_TEST

START_TEST(flush_ends_retry_pause)
{
        static const struct batch_answer answers[] = { ANSWER(503), ANSWER(503), ANSWER(503),
                                                       ANSWER(503), ANSWER(200), END };
        struct sender_stats stats;
        struct sender *s;
        struct error err;

        batch_service_start(&service, answers);
        s = sender_to(service.port);
        put(s, "late");
        (void)!sender_flush(s, 1, &err);
        /* With unlimited doubling pauses would take 0.5 + 1 + 2 + 4 seconds. */
        ck_assert_msg(sender_flush(s, 6000, &err) == ST_OK, "%s", err.text);
        sender_get_stats(s, &stats);
        ck_assert_uint_eq(stats.retried, 4);
        sender_destroy(s);
        batch_service_stop(&service);
        batch_service_deinit(&service);
}
END_TEST

START_TEST(batches_wait_without_a_service_and_flush_fails)
{
        struct sender *s = sender_to(batch_service_closed_port());
        struct sender_stats stats;
        struct error err = ANSWER(0);

        put(s, "one");
        put(s, "two");
        ck_assert_int_eq(sender_flush(s, 300, &err), ST_BUSY);
        ck_assert_msg(strncmp(err.text, "2 batches could not be sent", 27) == 0, "%s", err.text);
        sender_get_stats(s, &stats);
        ck_assert_uint_eq(stats.outbox.queued, 2);
        ck_assert_uint_eq(stats.sent, 0);
        sender_destroy(s); /* immediately, although it is waiting to retry */
}
END_TEST

START_TEST(full_queue_drops_and_counts_oldest)
{
        struct sender *s = sender_to(batch_service_closed_port());
        size_t size = LIMIT_AGENT_QUEUE_BYTES / 3;
        struct sender_stats stats;
        struct error err;

        for (int i = 0; i < 5; i++) {
                struct buf noise;

                buf_init(&noise, size);
                memset(buf_reserve(&noise, size), 7, size);
                buf_commit(&noise, size);
                ck_assert_msg(put_sender_batch(s, &noise, &err) == ST_OK, "%s", err.text);
        }
        sender_get_stats(s, &stats);
        ck_assert_uint_le(stats.outbox.queued_bytes, LIMIT_AGENT_QUEUE_BYTES);
        ck_assert_uint_eq(stats.outbox.queued + stats.outbox.dropped[DROP_MEMORY_FULL], 5);
        ck_assert_uint_ge(stats.outbox.dropped[DROP_MEMORY_FULL], 2);
        sender_destroy(s);
}
END_TEST

static int64_t sum_of_values(const struct batch_post *post)
{
        _cleanup_buf_ struct buf body;
        struct profile p;
        int64_t sum = 0;

        buf_init(&body, MiB(1));
        ck_assert_int_eq(gzip_decompress(post->body, post->size, &body, NULL), ST_OK);
        ck_assert_int_eq(otlp_decode(body.data, body.size, &p, NULL), ST_OK);
        for (uint32_t i = 0; i < p.samples.count; i++)
                sum += p.samples.items[i].value;
        profile_deinit(&p);
        return sum;
}

START_TEST(oversized_batch_is_split_until_it_fits)
{
        static const struct batch_answer answers[] = { ANSWER(413), ANSWER(413), ANSWER(413), END };
        static const char *const labels[] = { "k=v", NULL };
        struct sender_stats stats;
        struct test_profile t;
        int64_t sum = 0;
        struct sender *s;
        struct error err;

        test_profile_init(&t, "00112233445566778899aabbccddeeff00112233", "program");
        for (int i = 0; i < 7; i++) {
                uint32_t location = test_location(&t, 0x1000 + (uint64_t)i);

                test_sample(&t, 1, 1 << i, &location, 1, labels);
        }
        batch_service_start(&service, answers);
        s = sender_to(service.port);
        ck_assert_int_eq(sender_put_profile(s, &t.p, &err), ST_OK);
        ck_assert_msg(sender_flush(s, 30000, &err) == ST_OK, "%s", err.text);
        sender_get_stats(s, &stats);
        sender_destroy(s);
        batch_service_stop(&service);
        ck_assert_uint_eq(stats.split, 3);
        ck_assert_uint_eq(stats.sent, 4);
        for (size_t i = 0; i < service.count; i++)
                if (service.posts[i].code == 200)
                        sum += sum_of_values(&service.posts[i]);
        ck_assert_int_eq(sum, 127); /* each sample once */
        batch_service_deinit(&service);
        test_profile_deinit(&t);
}
END_TEST

START_TEST(splitting_a_batch_is_deterministic)
{
        struct batch_part one[2], other[2];
        const struct hash128 id = { { 1, 2, 3 } };
        struct test_profile t;
        struct error err;
        struct buf packed;

        test_profile_init(&t, "00112233445566778899aabbccddeeff00112233", "program");
        for (int i = 0; i < 2; i++) {
                uint32_t location = test_location(&t, 0x1000 + (uint64_t)i);

                test_sample(&t, 1, 1, &location, 1, NULL);
        }
        ck_assert_int_eq(batch_pack(&t.p, &packed, &err), ST_OK);
        ck_assert_msg(batch_split(&id, packed.data, packed.size, one, &err) == ST_OK, "%s", err.text);
        ck_assert_int_eq(batch_split(&id, packed.data, packed.size, other, &err), ST_OK);
        ck_assert_mem_ne(&one[0].id, &one[1].id, sizeof one[0].id);
        for (int i = 0; i < 2; i++) {
                ck_assert_mem_eq(&one[i].id, &other[i].id, sizeof one[i].id);
                ck_assert_uint_eq(one[i].packed.size, other[i].packed.size);
                ck_assert_mem_eq(one[i].packed.data, other[i].packed.data, one[i].packed.size);
        }
        ck_assert_int_eq(batch_split(&id, one[0].packed.data, one[0].packed.size, other, &err), ST_TOO_BIG);
        for (int i = 0; i < 2; i++)
                buf_deinit(&one[i].packed);
        for (int i = 0; i < 2; i++)
                buf_deinit(&other[i].packed);
        buf_deinit(&packed);
        test_profile_deinit(&t);
}
END_TEST

TEST_SUITE("threads_agent_sender", batch_keeps_its_id_until_accepted, refused_batch_does_not_block_the_next,
           wrong_token_or_address_loses_no_batch, response_of_another_service_is_not_an_acknowledgement,
           samples_that_a_service_rejects_are_counted, retry_after_is_respected, flush_ends_retry_pause,
           batches_wait_without_a_service_and_flush_fails, full_queue_drops_and_counts_oldest,
           oversized_batch_is_split_until_it_fits, splitting_a_batch_is_deterministic)
