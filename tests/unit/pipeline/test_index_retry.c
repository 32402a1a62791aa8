/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <string.h>

#include "pipeline/index_retry.h"
#include "tests/support/suite.h"

#define SECOND INT64_C(1000000000)

static const struct error full = { .code = ST_OS, .text = "the disk is full" };

static struct build_id id_of(uint8_t n)
{
        struct build_id id = { .size = 20 };

        id.bytes[19] = n;
        return id;
}

/* Returns whether a pause starts. */
static bool add(struct index_retry *r, uint8_t n, int64_t now_ns)
{
        struct build_id id = id_of(n);
        bool starts = false;

        ck_assert_int_eq(index_retry_add(r, &id, &full, now_ns, &starts), ST_OK);
        return starts;
}

START_TEST(object_is_retried_after_its_pause)
{
        struct index_retry r = { 0 };
        struct build_id id;

        ck_assert(add(&r, 1, SECOND));
        ck_assert(!add(&r, 2, 2 * SECOND)); /* the same pause */
        ck_assert(!index_retry_take(&r, (INDEX_RETRY_PAUSE_S + 1) * SECOND - 1, &id));
        ck_assert(index_retry_take(&r, (INDEX_RETRY_PAUSE_S + 1) * SECOND, &id));
        ck_assert_uint_eq(id.bytes[19], 1);
        ck_assert(!index_retry_take(&r, 1000000 * SECOND, &id)); /* its result is pending */
        index_retry_deinit(&r);
}
END_TEST

START_TEST(pauses_double_up_to_a_limit_and_objects_take_turns)
{
        struct index_retry r = { 0 };
        int64_t now_ns = 0;
        struct build_id id;

        add(&r, 1, now_ns);
        add(&r, 2, now_ns);
        for (unsigned tries = 0, pause_s = INDEX_RETRY_PAUSE_S; tries < 20; tries++) {
                ck_assert_uint_eq(r.pause_s, pause_s);
                now_ns = r.due_ns;
                ck_assert(index_retry_take(&r, now_ns, &id));
                ck_assert_uint_eq(id.bytes[19], 1 + tries % 2);
                ck_assert(add(&r, id.bytes[19], now_ns));
                pause_s = 2 * pause_s < INDEX_RETRY_PAUSE_MAX_S ? 2 * pause_s : INDEX_RETRY_PAUSE_MAX_S;
        }
        index_retry_deinit(&r);
}
END_TEST

START_TEST(each_success_permits_two_more)
{
        struct build_id next[INDEX_RETRY_RELEASED], id;
        struct index_retry r = { 0 };

        for (uint8_t n = 1; n <= 4; n++)
                add(&r, n, 0);
        ck_assert(index_retry_take(&r, r.due_ns, &id));
        ck_assert_uint_eq(index_retry_release(&r, next), 2);
        ck_assert_uint_eq(next[0].bytes[19], 2);
        ck_assert_uint_eq(next[1].bytes[19], 3);
        ck_assert_str_ne(r.why.text, "");
        ck_assert_uint_eq(index_retry_release(&r, next), 1);
        ck_assert_uint_eq(index_retry_release(&r, next), 0);
        ck_assert_str_eq(r.why.text, "");
        ck_assert(add(&r, 5, 0));
        ck_assert_uint_eq(r.pause_s, INDEX_RETRY_PAUSE_S); /* starts again */
        index_retry_deinit(&r);
}
END_TEST

START_TEST(inconclusive_result_ends_wait)
{
        struct index_retry r = { 0 };
        struct build_id id;

        index_retry_continue(&r, 0);
        ck_assert_int_eq(r.due_ns, 0);
        add(&r, 1, 0);
        add(&r, 2, 0);
        ck_assert(index_retry_take(&r, r.due_ns, &id));
        index_retry_continue(&r, 100 * SECOND); /* the retried object itself is damaged */
        ck_assert(index_retry_take(&r, r.due_ns, &id));
        ck_assert_uint_eq(id.bytes[19], 2);
        index_retry_deinit(&r);
}
END_TEST

TEST_SUITE("index_retry", object_is_retried_after_its_pause, pauses_double_up_to_a_limit_and_objects_take_turns,
           each_success_permits_two_more, inconclusive_result_ends_wait)
