/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>

#include "common/cleanup.h"
#include "common/files/file.h"
#include "common/limits.h"
#include "http/listen.h"
#include "server/access/tokens.h"
#include "server/core/route_tables.h"
#include "server/core/server_internal.h"
#include "tests/support/http_raw.h"
#include "tests/support/suite.h"

static enum status load(const char *text, struct tokens **ret, struct error *err)
{
        char path[] = "/tmp/cairn-tokens-XXXXXX";
        _cleanup_close_ int fd = mkstemp(path);
        enum status st = file_write_all(fd, text, strlen(text), path, err);

        if (!st)
                st = tokens_load(path, NULL, ret, err);
        unlink(path);
        return st;
}

static enum http_access check_token(struct tokens *t, const char *token, enum http_scope scope,
                                    char name_ret[static HTTP_TOKEN_NAME_SIZE])
{
        struct token_id id;

        return tokens_check(t, token_identify(token, &id) ? &id : NULL, scope, name_ret);
}

static bool get_limits(struct tokens *t, const char *token, struct token_limits *ret)
{
        struct token_id id;

        return tokens_get_limits(t, token_identify(token, &id) ? &id : NULL, ret);
}

START_TEST(file_that_is_cut_off_is_refused)
{
        static const char text[] = "first-token read,ingest rate=100\n";
        struct tokens *t;
        struct error err;

        ck_assert_int_eq(load(text, &t, &err), ST_OK);
        tokens_destroy(t);
        for (size_t n = 1; n < sizeof text - 1; n++) {
                char part[sizeof text];

                memcpy(part, text, n);
                part[n] = 0;
                ck_assert_int_eq(load(part, &t, &err), ST_BAD_DATA);
                ck_assert_ptr_nonnull(strstr(err.text, "does not end with a line end"));
        }
}
END_TEST

START_TEST(tokens_carry_the_scopes_of_their_line)
{
        char name[HTTP_TOKEN_NAME_SIZE];
        struct tokens *t = NULL;
        struct error err;

        ck_assert_int_eq(
                load("# who may\n\nagent-token-1 ingest,upload  # hosts\r\nreader-token read\nroot-token admin\n", &t,
                     &err),
                ST_OK);
        ck_assert_int_eq(check_token(t, "agent-token-1", SCOPE_INGEST, name), ACCESS_GRANTED);
        ck_assert_int_eq(check_token(t, "agent-token-1", SCOPE_UPLOAD, name), ACCESS_GRANTED);
        ck_assert_int_eq(check_token(t, "agent-token-1", SCOPE_READ, name), ACCESS_DENIED);
        ck_assert_int_eq(check_token(t, "reader-token", SCOPE_READ, name), ACCESS_GRANTED);
        ck_assert_int_eq(check_token(t, "reader-token", SCOPE_ADMIN, name), ACCESS_DENIED);
        ck_assert_int_eq(check_token(t, "root-token", SCOPE_UPLOAD, name), ACCESS_GRANTED);
        ck_assert_int_eq(check_token(t, "root-toke", SCOPE_READ, name), ACCESS_UNKNOWN);
        ck_assert_int_eq(check_token(t, "root-tokenx", SCOPE_READ, name), ACCESS_UNKNOWN);
        ck_assert_int_eq(check_token(t, "", SCOPE_READ, name), ACCESS_UNKNOWN);
        ck_assert_int_eq(check_token(t, NULL, SCOPE_READ, name), ACCESS_UNKNOWN);
        tokens_destroy(t);
}
END_TEST

START_TEST(tenant_is_only_returned_with_scope)
{
        char says[TENANT_NAME_SIZE] = "before";
        struct tokens *t = NULL;
        struct token_id id;

        ck_assert_int_eq(load("reader-token read\n", &t, NULL), ST_OK);
        ck_assert(token_identify("reader-token", &id));
        ck_assert(!tokens_get_tenant(t, &id, SCOPE_INGEST, says));
        ck_assert_str_eq(says, "before");
        ck_assert(tokens_get_tenant(t, &id, SCOPE_READ, says));
        ck_assert_str_eq(says, "");
        ck_assert(!tokens_get_tenant(t, NULL, SCOPE_READ, says));
        tokens_destroy(t);
}
END_TEST

START_TEST(tokens_have_names_and_may_be_written_as_digests)
{
        char name[HTTP_TOKEN_NAME_SIZE];
        struct tokens *t = NULL;
        struct error err;

        /* the digest of "secret-of-ci" */
        ck_assert_int_eq(
                load("sha256:8070ed5cbb72fe832fe5a6afc19a5a810ae1ed0cbf4403892fdb5e35e29ff0c5 upload name=ci/main\n"
                     "plain-token read\n",
                     &t, &err),
                ST_OK);
        ck_assert_int_eq(check_token(t, "secret-of-ci", SCOPE_UPLOAD, name), ACCESS_GRANTED);
        ck_assert_str_eq(name, "ci/main");
        ck_assert_int_eq(check_token(t, "plain-token", SCOPE_READ, name), ACCESS_GRANTED);
        ck_assert_str_eq(name, "");
        ck_assert_int_eq(check_token(t, "sha256:8070ed5cbb72fe832fe5a6afc19a5a810ae1ed0cbf4403892fdb5e35e29ff0c5",
                                     SCOPE_UPLOAD, name),
                         ACCESS_UNKNOWN);
        tokens_destroy(t);
}
END_TEST

START_TEST(tokens_have_limits)
{
        struct token_limits l = { .key = 0 };
        struct tokens *t = NULL;
        struct error err;

        ck_assert_int_eq(load("first-token read bytes=20G rate=50 name=ci\nsecond-token read\n", &t, &err), ST_OK);
        ck_assert(get_limits(t, "first-token", &l));
        ck_assert_uint_eq(l.limits.requests_per_s, 50);
        ck_assert_uint_eq(l.limits.bytes_per_day, GiB(20));
        ck_assert_str_eq(l.name, "ci");
        ck_assert(get_limits(t, "second-token", &l));
        ck_assert_uint_eq(l.limits.requests_per_s, 0);
        ck_assert_uint_eq(l.limits.bytes_per_day, 0);
        ck_assert(!get_limits(t, "third-token", &l));
        ck_assert(!get_limits(t, NULL, &l));
        tokens_destroy(t);
}
END_TEST

START_TEST(tokens_are_reloaded_and_kept_if_file_is_invalid)
{
        char path[] = "/tmp/cairn-tokens-XXXXXX", name[HTTP_TOKEN_NAME_SIZE];
        _cleanup_close_ int fd = mkstemp(path);
        struct tokens *t = NULL;
        struct error err;
        size_t count;

        ck_assert_int_ge(fd, 0);
        ck_assert_int_eq(file_write_durable(path, "first-token read\n", 17, &err), ST_OK);
        ck_assert_int_eq(tokens_load(path, NULL, &t, &err), ST_OK);
        ck_assert_int_eq(file_write_durable(path, "other-token read\nshort read\n", 28, &err), ST_OK);
        ck_assert_int_eq(tokens_reload(t, NULL, &count, &err), ST_BAD_DATA);
        ck_assert_int_eq(check_token(t, "first-token", SCOPE_READ, name), ACCESS_GRANTED);
        ck_assert_int_eq(file_write_durable(path, "other-token read\n", 17, &err), ST_OK);
        ck_assert_int_eq(tokens_reload(t, NULL, &count, &err), ST_OK);
        ck_assert_uint_eq(count, 1);
        ck_assert_int_eq(check_token(t, "first-token", SCOPE_READ, name), ACCESS_UNKNOWN);
        ck_assert_int_eq(check_token(t, "other-token", SCOPE_READ, name), ACCESS_GRANTED);
        tokens_destroy(t);
        unlink(path);
}
END_TEST

START_TEST(invalid_token_file_is_reported_with_line)
{
        static const char *const bad[] = { "good-token read\nshort read\n",
                                           "good-token read\nother-token\n",
                                           "good-token read\nother-token write\n",
                                           "good-token read\nother-token read upload\n",
                                           "good-token read\nother-token read name=a b\n",
                                           "good-token read\nother-token read rate=0\n",
                                           "good-token read\nother-token read bytes=9X\n",
                                           "good-token read\nsha256:12 read\n" };
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

/*
 * Ingest of profiles is counted and not logged; the other methods are queries; of Connect's upload the first and last
 * calls are logged.
 */
static bool is_logged_elsewhere(const struct http_route *r)
{
        return r->scope == SCOPE_INGEST || strcmp(r->method, "GET") == 0 ||
               strcmp(r->path, "/api/v1/debuginfo/want") == 0 || strstr(r->path, "ShouldInitiateUpload") ||
               strstr(r->path, "UploadFinished");
}

/* The S3 API is read-only; it rejects writes with S3 errors. */
static bool refuses_every_write(const struct http_route *r)
{
        return strcmp(r->path, "/cairn/{key...}") == 0;
}

/* They change only sessions, and are in the audit log. */
static bool signs_in_or_out(const struct http_route *r)
{
        return strcmp(r->path, "/login") == 0 || strcmp(r->path, "/logout") == 0;
}

START_TEST(every_modifying_route_needs_a_scope_and_is_audited)
{
        struct http_route *routes;
        size_t count;

        ck_assert_int_eq(routes_join(false, ROLE_ALL, &routes, &count, NULL), ST_OK);
        for (size_t i = 0; i < count; i++) {
                const struct http_route *r = &routes[i];
                bool changes = r->scope == SCOPE_INGEST || r->scope == SCOPE_UPLOAD || r->scope == SCOPE_ADMIN;

                ck_assert_msg((r->scope == SCOPE_NONE) == (r->tenancy == TENANCY_UNDECIDED), "%s %s: whose data is it?",
                              r->method, r->path);
                ck_assert_msg(!r->writes || changes || signs_in_or_out(r), "%s %s writes with the scope of a reader",
                              r->method, r->path);
                ck_assert_msg(!changes || r->writes || is_logged_elsewhere(r), "%s %s is not audited", r->method,
                              r->path);
                ck_assert_msg((strcmp(r->method, "PUT") != 0 && strcmp(r->method, "DELETE") != 0) || r->writes ||
                                      refuses_every_write(r),
                              "%s %s changes nothing", r->method, r->path);
        }
        free(routes);
}
END_TEST

static void answer_nothing(struct http_request *req)
{
        http_respond(req, 200, "text/plain", "ok", 2);
}

static enum http_access authorize_one_token(void *context, const struct http_request *req, enum http_scope scope,
                                            char name_ret[static HTTP_TOKEN_NAME_SIZE])
{
        (void)context;
        (void)scope;
        name_ret[0] = 0;
        return http_token(req) ? ACCESS_GRANTED : ACCESS_UNKNOWN;
}

/* A path of the route, with "1" for each parameter. */
static void write_route_path(struct buf *to, const char *path)
{
        for (const char *p = path; *p; p += *p == '{' ? strcspn(p, "}") + 1 : 1)
                buf_append(to, *p == '{' ? "1" : p, 1);
}

static void expect_security_headers(struct http_server *s, const struct http_route *r, int code, bool is_cacheable,
                                    const char *more)
{
        static const char *const lines[] = {
                "\r\nX-Content-Type-Options: nosniff\r\n",
                "\r\nReferrer-Policy: no-referrer\r\n",
                "\r\nCross-Origin-Opener-Policy: same-origin\r\n",
                "\r\nCross-Origin-Resource-Policy: same-origin\r\n",
                "\r\nContent-Security-Policy: default-src 'none'; frame-ancestors 'none'\r\n",
        };
        _cleanup_buf_ struct buf request;
        _cleanup_free_ char *answer = NULL;

        buf_init(&request, KiB(16));
        buf_printf(&request, "%s ", r->method);
        write_route_path(&request, r->path);
        buf_printf(&request, " HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n%s\r\n", more);
        answer = raw_request(http_server_port(s), buf_cstr(&request));
        ck_assert_msg(raw_status(answer) == code, "want %d for:\n%s\ngot:\n%s", code, buf_cstr(&request), answer);
        for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
                ck_assert_msg(strstr(answer, lines[i]) != NULL, "%s %s answers %d without%s", r->method, r->path, code,
                              lines[i]);
        ck_assert_msg(!strstr(answer, "\r\nCache-Control: no-store\r\n") == is_cacheable,
                      "%s %s: %d may%s be kept by caches", r->method, r->path, code, is_cacheable ? "" : " not");
}

/*
 * Files by build-id or of the tables: large, and readable with the token. Assets contain only what the package
 * contains.
 */
static bool serves_files(const struct http_route *r)
{
        return strcmp(r->method, "GET") == 0 &&
               (strncmp(r->path, "/buildid/", 9) == 0 || strncmp(r->path, "/store/", 7) == 0 ||
                strncmp(r->path, "/cairn", 6) == 0 || strncmp(r->path, "/assets/", 8) == 0);
}

START_TEST(every_route_answers_with_security_headers)
{
        static const struct http_route unknown = { .method = "GET", .path = "/nowhere" };
        struct http_options o = { .size = sizeof o, .host = "127.0.0.1", .authorize = authorize_one_token };
        struct http_pool_options pools[POOL_COUNT];
        struct http_server *s = NULL;
        struct http_route *routes;
        struct error err = { 0 };
        size_t count;

        for (size_t i = 0; i < POOL_COUNT; i++)
                pools[i] = (struct http_pool_options){ .name = "test", .threads = 1 };
        o.pools = pools;
        o.pool_count = POOL_COUNT;
        ck_assert_int_eq(routes_join(false, ROLE_ALL, &routes, &count, NULL), ST_OK);
        for (size_t i = 0; i < count; i++) {
                routes[i].at_once = routes[i].begin = routes[i].abandon = NULL;
                routes[i].chunk = NULL;
                routes[i].handle = answer_nothing;
        }
        ck_assert_msg(http_server_start(&o, routes, count, NULL, &s, &err) == ST_OK, "%s", err.text);
        for (size_t i = 0; i < count; i++) {
                const struct http_route *r = &routes[i];
                bool is_cacheable = serves_files(r);

                expect_security_headers(s, r, 200, is_cacheable, "Authorization: Bearer x\r\n");
                if (r->scope != SCOPE_NONE)
                        expect_security_headers(s, r, 401, is_cacheable, "");
                if (strcmp(r->method, "GET") == 0)
                        expect_security_headers(s, r, 413, is_cacheable,
                                                "Authorization: Bearer x\r\nContent-Length: 1000000\r\n"
                                                "Expect: 100-continue\r\n");
        }
        expect_security_headers(s, &unknown, 404, false, "");
        http_server_stop(s);
        free(routes);
}
END_TEST

START_TEST(addresses_are_parsed_and_loopback_is_detected)
{
        struct listen_address l;
        struct error err;

        ck_assert_int_eq(parse_listen_address("127.0.0.1:8080", 7700, &l, &err), ST_OK);
        ck_assert_str_eq(l.host, "127.0.0.1");
        ck_assert_uint_eq(l.port, 8080);
        ck_assert(l.is_loopback);
        ck_assert_int_eq(parse_listen_address("127.9.9.9", 7700, &l, &err), ST_OK);
        ck_assert_uint_eq(l.port, 7700);
        ck_assert(l.is_loopback);
        ck_assert_int_eq(parse_listen_address("[::1]:0", 7700, &l, &err), ST_OK);
        ck_assert_str_eq(l.host, "::1");
        ck_assert(l.is_loopback);
        ck_assert_int_eq(parse_listen_address("0.0.0.0:1", 7700, &l, &err), ST_OK);
        ck_assert(!l.is_loopback);
        ck_assert_int_eq(parse_listen_address(":7000", 7700, &l, &err), ST_OK);
        ck_assert(!l.is_loopback);
        ck_assert_int_eq(parse_listen_address("[::]:1", 7700, &l, &err), ST_OK);
        ck_assert(!l.is_loopback);
        ck_assert_int_eq(parse_listen_address("::1:80", 7700, &l, &err), ST_USAGE);
        ck_assert_int_eq(parse_listen_address("127.0.0.1:65536", 7700, &l, &err), ST_USAGE);
        ck_assert_int_eq(parse_listen_address("127.0.0.1:", 7700, &l, &err), ST_USAGE);
        ck_assert_int_eq(parse_listen_address("[::1", 7700, &l, &err), ST_USAGE);
}
END_TEST

TEST_SUITE("server_access", file_that_is_cut_off_is_refused, tokens_carry_the_scopes_of_their_line,
           tenant_is_only_returned_with_scope, tokens_have_names_and_may_be_written_as_digests, tokens_have_limits,
           tokens_are_reloaded_and_kept_if_file_is_invalid, invalid_token_file_is_reported_with_line,
           every_modifying_route_needs_a_scope_and_is_audited, every_route_answers_with_security_headers,
           addresses_are_parsed_and_loopback_is_detected)
