/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>

#include "common/cleanup.h"
#include "common/file.h"
#include "server/listen.h"
#include "server/tokens.h"
#include "tests/support/suite.h"

static enum status load(const char *text, struct tokens **ret, struct error *err)
{
        char path[] = "/tmp/cairn-tokens-XXXXXX";
        _cleanup_close_ int fd = mkstemp(path);
        enum status st = file_write_all(fd, text, strlen(text), path, err);

        if (!st)
                st = tokens_load(path, ret, err);
        unlink(path);
        return st;
}

START_TEST(tokens_carry_the_scopes_of_their_line)
{
        struct tokens *t = NULL;
        struct error err;

        ck_assert_int_eq(load("# who may\n\nagent-token-1 ingest,upload  # hosts\r\nreader-token read\nroot-token admin",
                              &t, &err), ST_OK);
        ck_assert_int_eq(tokens_check(t, "agent-token-1", SCOPE_INGEST), ACCESS_GRANTED);
        ck_assert_int_eq(tokens_check(t, "agent-token-1", SCOPE_UPLOAD), ACCESS_GRANTED);
        ck_assert_int_eq(tokens_check(t, "agent-token-1", SCOPE_READ), ACCESS_DENIED);
        ck_assert_int_eq(tokens_check(t, "reader-token", SCOPE_READ), ACCESS_GRANTED);
        ck_assert_int_eq(tokens_check(t, "reader-token", SCOPE_ADMIN), ACCESS_DENIED);
        ck_assert_int_eq(tokens_check(t, "root-token", SCOPE_UPLOAD), ACCESS_GRANTED);
        ck_assert_int_eq(tokens_check(t, "root-toke", SCOPE_READ), ACCESS_UNKNOWN);
        ck_assert_int_eq(tokens_check(t, "root-tokenx", SCOPE_READ), ACCESS_UNKNOWN);
        ck_assert_int_eq(tokens_check(t, "", SCOPE_READ), ACCESS_UNKNOWN);
        ck_assert_int_eq(tokens_check(t, NULL, SCOPE_READ), ACCESS_UNKNOWN);
        tokens_destroy(t);
}
END_TEST

START_TEST(a_wrong_token_file_names_its_line)
{
        static const char *const bad[] = { "good-token read\nshort read", "good-token read\nother-token",
                                           "good-token read\nother-token write", "good-token read\nother-token read upload" };
        struct tokens *t = NULL;
        struct error err;

        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
                ck_assert_int_eq(load(bad[i], &t, &err), ST_BAD_DATA);
                ck_assert_ptr_nonnull(strstr(err.text, "line 2"));
                ck_assert_ptr_null(strstr(err.text, "other-token")); /* a secret stays out of messages */
        }
        ck_assert_int_eq(load("# nobody\n", &t, &err), ST_BAD_DATA);
        ck_assert_ptr_null(t);
}
END_TEST

START_TEST(addresses_are_parsed_and_loopback_is_known)
{
        struct listen_address l;
        struct error err;

        ck_assert_int_eq(listen_parse("127.0.0.1:8080", &l, &err), ST_OK);
        ck_assert_str_eq(l.host, "127.0.0.1");
        ck_assert_uint_eq(l.port, 8080);
        ck_assert(l.is_loopback);
        ck_assert_int_eq(listen_parse("127.9.9.9", &l, &err), ST_OK);
        ck_assert_uint_eq(l.port, 7700);
        ck_assert(l.is_loopback);
        ck_assert_int_eq(listen_parse("[::1]:0", &l, &err), ST_OK);
        ck_assert_str_eq(l.host, "::1");
        ck_assert(l.is_loopback);
        ck_assert_int_eq(listen_parse("0.0.0.0:1", &l, &err), ST_OK);
        ck_assert(!l.is_loopback);
        ck_assert_int_eq(listen_parse(":7000", &l, &err), ST_OK);
        ck_assert(!l.is_loopback);
        ck_assert_int_eq(listen_parse("[::]:1", &l, &err), ST_OK);
        ck_assert(!l.is_loopback);
        ck_assert_int_eq(listen_parse("::1:80", &l, &err), ST_USAGE);
        ck_assert_int_eq(listen_parse("127.0.0.1:65536", &l, &err), ST_USAGE);
        ck_assert_int_eq(listen_parse("127.0.0.1:", &l, &err), ST_USAGE);
        ck_assert_int_eq(listen_parse("[::1", &l, &err), ST_USAGE);
}
END_TEST

TEST_SUITE("server_access", tokens_carry_the_scopes_of_their_line, a_wrong_token_file_names_its_line,
           addresses_are_parsed_and_loopback_is_known)
