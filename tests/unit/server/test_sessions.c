/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>

#include "common/cleanup.h"
#include "common/files/file.h"
#include "common/limits.h"
#include "server/access/rate_limit.h"
#include "server/access/sessions.h"
#include "tests/support/suite.h"

#define SECOND INT64_C(1000000000)
#define MAX_AGE_S 60

static struct sessions *make_sessions(void)
{
        struct sessions *s = NULL;

        ck_assert_int_eq(sessions_create(MAX_AGE_S, &s, NULL), ST_OK);
        return s;
}

static struct token_id name_token(const char *text)
{
        struct token_id id;

        ck_assert(token_identify(text, &id));
        return id;
}

static void begin(struct sessions *s, const char *token, int64_t now_ns, char id_ret[static SESSION_ID_SIZE])
{
        struct token_id id = name_token(token);

        ck_assert_int_eq(sessions_begin(s, &id, now_ns, id_ret, NULL), ST_OK);
}

START_TEST(session_keeps_its_token_until_it_ends)
{
        struct token_id token = name_token("reader-token");
        struct sessions *s = make_sessions();
        char id[SESSION_ID_SIZE], other[SESSION_ID_SIZE];
        struct session found;

        begin(s, "reader-token", SECOND, id);
        begin(s, "other-token", SECOND, other);
        ck_assert_uint_eq(strlen(id), 64);
        ck_assert_str_ne(id, other);
        ck_assert(sessions_find(s, id, SECOND, &found));
        ck_assert_mem_eq(&found.token, &token, sizeof token);
        ck_assert_uint_eq(found.left_s, MAX_AGE_S);
        ck_assert(sessions_find(s, id, MAX_AGE_S * SECOND, &found));
        ck_assert_uint_eq(found.left_s, 1);
        ck_assert(!sessions_find(s, id, (MAX_AGE_S + 1) * SECOND, &found)); /* use does not extend it */
        ck_assert(!sessions_find(s, id, SECOND, &found));                   /* and it does not return */
        ck_assert(sessions_end(s, other));
        ck_assert(!sessions_end(s, other));
        ck_assert(!sessions_find(s, other, SECOND, &found));
        sessions_destroy(s);
}
END_TEST

START_TEST(other_ids_are_not_sessions)
{
        struct sessions *s = make_sessions();
        struct session found;
        char id[SESSION_ID_SIZE];

        begin(s, "reader-token", 0, id);
        ck_assert(!sessions_find(s, NULL, 0, &found));
        ck_assert(!sessions_find(s, "", 0, &found));
        ck_assert(!sessions_find(s, "reader-token", 0, &found));
        id[63] = id[63] == '0' ? '1' : '0';
        ck_assert(!sessions_find(s, id, 0, &found));
        id[63] = 0;
        ck_assert(!sessions_find(s, id, 0, &found));
        ck_assert(!sessions_end(s, id));
        sessions_destroy(s);
}
END_TEST

START_TEST(least_recently_used_session_is_evicted)
{
        char ids[LIMIT_SESSIONS_PER_TOKEN + 1][SESSION_ID_SIZE], others[LIMIT_SESSIONS_PER_TOKEN][SESSION_ID_SIZE];
        struct sessions *s = make_sessions();
        struct session found;
        char token[32], id[SESSION_ID_SIZE];

        begin(s, "first-token", 0, id);
        for (size_t i = 0; i < LIMIT_SESSIONS_PER_TOKEN; i++)
                begin(s, "reader-token", 0, ids[i]);
        ck_assert(sessions_find(s, ids[0], 0, &found)); /* now ids[1] is the oldest session of its token */
        begin(s, "reader-token", 0, ids[LIMIT_SESSIONS_PER_TOKEN]);
        ck_assert(sessions_find(s, ids[0], 0, &found));
        ck_assert(!sessions_find(s, ids[1], 0, &found));
        ck_assert(sessions_find(s, ids[LIMIT_SESSIONS_PER_TOKEN], 0, &found));
        for (int i = 0; i < LIMIT_SESSIONS - LIMIT_SESSIONS_PER_TOKEN - 1; i++) {
                snprintf(token, sizeof token, "token-%d", i / LIMIT_SESSIONS_PER_TOKEN);
                begin(s, token, 0, others[i % LIMIT_SESSIONS_PER_TOKEN]);
        }
        ck_assert(sessions_find(s, id, 0, &found)); /* all of them fit; ids[2] is the oldest */
        begin(s, "last-token", 0, others[0]);
        ck_assert(!sessions_find(s, ids[2], 0, &found));
        ck_assert(sessions_find(s, id, 0, &found));
        sessions_destroy(s);
}
END_TEST

START_TEST(expired_sessions_are_evicted_first)
{
        struct sessions *s = make_sessions();
        char old[SESSION_ID_SIZE], id[SESSION_ID_SIZE];
        struct session found;

        begin(s, "reader-token", 0, old);
        begin(s, "reader-token", MAX_AGE_S * SECOND, id);
        ck_assert(!sessions_end(s, old)); /* already gone */
        ck_assert(sessions_find(s, id, MAX_AGE_S * SECOND, &found));
        sessions_destroy(s);
}
END_TEST

START_TEST(removing_a_token_ends_its_sessions)
{
        char path[] = "/tmp/cairn-sessions-XXXXXX", first[SESSION_ID_SIZE], second[SESSION_ID_SIZE];
        _cleanup_close_ int fd = mkstemp(path);
        struct sessions *s = make_sessions();
        struct tokens *t = NULL;
        struct session found;

        ck_assert_int_ge(fd, 0);
        ck_assert_int_eq(file_write_durable(path, "second-token read\n", 18, NULL), ST_OK);
        ck_assert_int_eq(tokens_load(path, NULL, &t, NULL), ST_OK);
        begin(s, "first-token", 0, first);
        begin(s, "second-token", 0, second);
        sessions_end_revoked(s, t);
        ck_assert(!sessions_find(s, first, 0, &found));
        ck_assert(sessions_find(s, second, 0, &found));
        tokens_destroy(t);
        sessions_destroy(s);
        unlink(path);
}
END_TEST

START_TEST(attempts_are_limited_over_a_longer_interval_and_refunded)
{
        const struct rate_limit_config one_in_six = { .requests_per_s = 1, .interval_s = 6 };
        struct rate_limit *r = NULL;
        uint64_t wait_s = 0;

        ck_assert_int_eq(rate_limit_create(&r, NULL), ST_OK);
        for (int i = 0; i < 100; i++) { /* successful attempts are refunded */
                ck_assert_int_eq(rate_limit_take(r, 7, &one_in_six, 0, 0, &wait_s), RATE_FINE);
                rate_limit_refund(r, 7, &one_in_six, 0);
        }
        for (int i = 0; i < RATE_LIMIT_BURST_S; i++)
                ck_assert_int_eq(rate_limit_take(r, 7, &one_in_six, 0, 0, &wait_s), RATE_FINE);
        ck_assert_int_eq(rate_limit_take(r, 7, &one_in_six, 0, 0, &wait_s), RATE_REQUESTS);
        ck_assert_uint_eq(wait_s, 6);
        ck_assert_int_eq(rate_limit_take(r, 7, &one_in_six, 0, 5 * SECOND, &wait_s), RATE_REQUESTS);
        ck_assert_uint_eq(wait_s, 1);
        ck_assert_int_eq(rate_limit_take(r, 7, &one_in_six, 0, 6 * SECOND, &wait_s), RATE_FINE);
        ck_assert_int_eq(rate_limit_take(r, 7, &one_in_six, 0, 6 * SECOND, &wait_s), RATE_REQUESTS);
        ck_assert_int_eq(rate_limit_take(r, 8, &one_in_six, 0, 6 * SECOND, &wait_s), RATE_FINE);
        rate_limit_destroy(r);
}
END_TEST

TEST_SUITE("sessions", session_keeps_its_token_until_it_ends, other_ids_are_not_sessions,
           least_recently_used_session_is_evicted, expired_sessions_are_evicted_first,
           removing_a_token_ends_its_sessions, attempts_are_limited_over_a_longer_interval_and_refunded)
