/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "common/cleanup.h"
#include "common/limits.h"
#include "http/http_server.h"
#include "tests/support/http_raw.h"
#include "tests/support/suite.h"

/*
 * Counts calls of mmap() by the threads that receive and send. Interposes the C library's function, also for
 * libmicrohttpd.
 */
static atomic_uint byte_thread_mappings;

__attribute__((visibility("default"))) void *mmap(void *address, size_t size, int protection, int flags, int fd,
                                                  off_t offset)
{
        char name[16] = "";

        prctl(PR_GET_NAME, name);
        if (strncmp(name, "MHD-", 4) == 0)
                atomic_fetch_add(&byte_thread_mappings, 1);
        return (void *)syscall(SYS_mmap, address, size, protection, flags, fd, offset);
}

static const char text_body[] = "0123456789abcdefghijklmnopqrstuvwxyz";

static void echo(struct http_request *req)
{
        size_t n;
        const uint8_t *body = http_body(req, &n);

        http_respond(req, 200, "application/octet-stream", body, n);
}

static void show(struct http_request *req)
{
        struct buf b;

        buf_init(&b, 4096);
        buf_printf(&b, "id=%s rest=%s q=%s", http_path_part(req, "id"), http_path_part(req, "rest"),
                   http_query(req, "q") ? http_query(req, "q") : "(none)");
        http_respond_buf(req, 200, "text/plain", &b);
}

static ssize_t read_text(void *state, void *to, size_t n, uint64_t offset)
{
        (void)state;
        memcpy(to, text_body + offset, n < 7 ? n : 7); /* short reads are allowed */
        return n < 7 ? (ssize_t)n : 7;
}

static void ranged(struct http_request *req)
{
        http_respond_stream(req, "text/plain", sizeof text_body - 1, "tag1", read_text, NULL, NULL);
}

static void bytes(struct http_request *req)
{
        http_respond_bytes(req, "text/plain", strdup(text_body), sizeof text_body - 1, "tag3");
}

static void file(struct http_request *req)
{
        char name[] = "/tmp/cairn-http-XXXXXX";
        int fd = mkostemp(name, O_CLOEXEC);

        unlink(name);
        ck_assert_int_eq(write(fd, text_body, sizeof text_body - 1), sizeof text_body - 1);
        http_respond_file(req, "text/plain", fd, "tag2");
}

static ssize_t read_then_fail(void *state, void *to, size_t n, uint64_t offset)
{
        (void)state;
        if (offset)
                return -1;
        memset(to, 'x', n);
        return (ssize_t)n;
}

static void failing(struct http_request *req)
{
        http_respond_stream(req, "text/plain", MiB(4), NULL, read_then_fail, NULL, NULL);
}

/* A body of `count` chunks of 100 KB; chunk `fails` fails. */
struct pieces {
        unsigned made, count, fails;
};
static atomic_uint pieces_made, pieces_open;

static enum status make_piece(void *state, struct buf *to, bool *end, struct error *err)
{
        struct pieces *p = state;

        if (++p->made == p->fails)
                return error_set(err, ST_BUSY, "no more of it");
        memset(buf_reserve(to, 100000), 'a' + (int)(p->made % 26), 100000);
        buf_commit(to, 100000);
        *end = p->made == p->count;
        atomic_fetch_add(&pieces_made, 1);
        return ST_OK;
}

static void pieces_close(void *state)
{
        free(state);
        atomic_fetch_sub(&pieces_open, 1);
}

static void pieces(struct http_request *req)
{
        struct pieces *p = calloc(1, sizeof *p);

        p->count = (unsigned)strtoul(http_query(req, "count"), NULL, 10);
        p->fails = http_query(req, "fails") ? (unsigned)strtoul(http_query(req, "fails"), NULL, 10) : 0;
        atomic_fetch_add(&pieces_open, 1);
        http_respond_pieces(req, "text/plain", MiB(1), make_piece, pieces_close, p);
}

static void reset(struct http_request *req)
{
        http_reset_connection(req);
}

static void busy(struct http_request *req)
{
        struct error err;

        http_fail(req, error_set(&err, ST_BUSY, "the queue is full"), &err);
}

/* A stream that counts bytes; "refuse" in the query responds at its beginning, a '!' in the data in its middle. */
static atomic_int streams_open;

static void stream_begin(struct http_request *req)
{
        if (http_query(req, "refuse")) {
                http_fail_code(req, 409, "not_wanted", "this object is there already");
                return;
        }
        atomic_fetch_add(&streams_open, 1);
        http_set_state(req, calloc(1, sizeof(size_t)));
}

#define STREAM_STEP_BYTES 1000

static enum status stream_chunk(struct http_request *req, const void *data, size_t *n)
{
        bool is_bad = memchr(data, '!', *n);

        if (*n > STREAM_STEP_BYTES) /* the rest is passed again */
                *n = STREAM_STEP_BYTES;
        *(size_t *)http_state(req) += *n;
        if (!is_bad)
                return ST_OK;
        http_fail_code(req, 422, "not_elf", "the body is not ELF");
        return ST_BAD_DATA;
}

static void stream_free(struct http_request *req)
{
        if (http_state(req))
                atomic_fetch_sub(&streams_open, 1);
        free(http_state(req));
}

static void stream_end(struct http_request *req)
{
        char text[32];

        snprintf(text, sizeof text, "%zu", *(size_t *)http_state(req));
        stream_free(req);
        http_respond(req, 200, "text/plain", text, strlen(text));
}

/* Handlers that do not block run on the I/O thread. */
static void if_now(struct http_request *req)
{
        if (strcmp(http_path_part(req, "when"), "now") == 0)
                http_respond(req, 200, "text/plain", "at once", 7);
}

/* With explicit headers in place of the default ones. */
static void page(struct http_request *req)
{
        http_set_header(req, "content-security-policy", "default-src 'self'");
        http_set_header(req, "Cache-Control", "no-cache");
        http_respond_bytes(req, "text/html", strdup(text_body), sizeof text_body - 1, "tag4");
}

static void later(struct http_request *req)
{
        http_respond(req, 200, "text/plain", "handled", 7);
}

static const struct http_route routes[] = {
        { .method = "POST", .path = "/echo", .scope = SCOPE_INGEST, .max_body = 1000, .handle = echo },
        { .method = "POST", .path = "/large", .max_body = MiB(8), .handle = echo },
        { .method = "GET", .path = "/show/{id}/x", .handle = show },
        { .method = "GET", .path = "/tree/{rest...}", .handle = show },
        { .method = "GET", .path = "/ranged", .scope = SCOPE_READ, .handle = ranged },
        { .method = "POST", .path = "/ranged", .handle = echo },
        { .method = "GET", .path = "/bytes", .scope = SCOPE_READ, .handle = bytes },
        { .method = "GET", .path = "/file", .handle = file },
        { .method = "GET", .path = "/failing", .handle = failing },
        { .method = "GET", .path = "/pieces", .handle = pieces },
        { .method = "GET", .path = "/reset", .handle = reset },
        { .method = "GET", .path = "/when/{when}", .handle = later, .at_once = if_now },
        { .method = "POST", .path = "/json", .max_body = 1000, .handle = echo, .body_type = "application/json" },
        { .method = "POST", .path = "/shared", .max_body = 1000, .handle = echo, .cross_origin = true },
        { .method = "GET", .path = "/busy", .handle = busy },
        { .method = "GET", .path = "/page", .cacheable = true, .handle = page },
        { .method = "PUT",
          .path = "/stream",
          .begin = stream_begin,
          .chunk = stream_chunk,
          .handle = stream_end,
          .abandon = stream_free },
};

/* "reader" has the read scope, "all" has all scopes. */
static enum http_access authorize(void *context, const struct http_request *req, enum http_scope scope,
                                  char name_ret[static HTTP_TOKEN_NAME_SIZE])
{
        const char *token = http_token(req);

        name_ret[0] = 0;
        (void)context;
        if (token && strcmp(token, "all") == 0)
                return ACCESS_GRANTED;
        if (token && strcmp(token, "reader") == 0)
                return scope == SCOPE_READ ? ACCESS_GRANTED : ACCESS_DENIED;
        return ACCESS_UNKNOWN;
}

static struct http_server *start(bool with_tokens)
{
        struct http_options o = { .size = sizeof o, .host = "127.0.0.1", .authorize = with_tokens ? authorize : NULL };
        struct http_server *s = NULL;
        struct error err = { 0 };

        signal(SIGPIPE, SIG_IGN);
        ck_assert_msg(http_server_start(&o, routes, sizeof routes / sizeof *routes, NULL, &s, &err) == ST_OK, "%s",
                      err.text);
        return s;
}

/* Sends a request with the given text; checks the status and that the response contains the text. */
static void expect(struct http_server *s, int code, const char *contains, const char *request)
{
        _cleanup_free_ char *answer = raw_request(http_server_port(s), request);

        ck_assert_msg(raw_status(answer) == code, "want %d for:\n%s\ngot:\n%s", code, request, answer);
        ck_assert_msg(strstr(answer, contains) != NULL, "want '%s' for:\n%s\ngot:\n%s", contains, request, answer);
}

#define END " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
#define WITH(headers) " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" headers "\r\n"

START_TEST(paths_are_split_and_decoded)
{
        struct http_server *s = start(false);

        expect(s, 200, "id=a/b rest= q=(none)", "GET /show/a%2Fb/x" END);
        expect(s, 200, "rest=p/q r/s q=1 &2", "GET /tree/p/q%20r/s?x=3&q=1+%262" END);
        expect(s, 404, "\"reason\":\"not_found\"", "GET /show//x" END);
        expect(s, 404, "not_found", "GET /show/a/b/x" END);
        expect(s, 404, "not_found", "GET /tree/" END);
        expect(s, 400, "malformed % escape", "GET /tree/%zz" END);
        expect(s, 400, "malformed % escape", "GET /tree/a%00b" END);
        expect(s, 400, "malformed % escape", "GET /tree/a?q=%1" END);
        http_server_stop(s);
}
END_TEST

START_TEST(another_method_is_405_with_allow)
{
        struct http_server *s = start(false);

        expect(s, 405, "Allow: GET, HEAD, POST\r\n", "DELETE /ranged" END);
        expect(s, 405, "Allow: POST\r\n", "GET /echo" END);
        expect(s, 405, "\"reason\":\"method\"", "OPTIONS /show/1/x" END);
        http_server_stop(s);
}
END_TEST

START_TEST(token_is_required)
{
        struct http_server *s = start(true);

        expect(s, 401, "WWW-Authenticate: Bearer", "GET /ranged" END);
        expect(s, 401, "no_token", "GET /ranged" END);
        expect(s, 401, "bad_token", "GET /ranged" WITH("Authorization: Bearer nobody\r\n"));
        expect(s, 200, text_body, "GET /ranged" WITH("Authorization: bearer  reader\r\n"));
        expect(s, 403, "does not carry the scope 'ingest'",
               "POST /echo" WITH("Authorization: Bearer reader\r\nContent-Length: 2\r\n") "hi");
        expect(s, 200, "hi", "POST /echo" WITH("Authorization: Bearer all\r\nContent-Length: 2\r\n") "hi");
        expect(s, 200, "id=1", "GET /show/1/x" END);
        http_server_stop(s);
}
END_TEST

START_TEST(head_has_the_headers_of_get_and_no_body)
{
        struct http_server *s = start(false);
        _cleanup_free_ char *answer = raw_request(http_server_port(s), "HEAD /ranged" WITH("Range: bytes=0-1\r\n"));

        ck_assert_int_eq(raw_status(answer), 200);
        ck_assert_ptr_nonnull(strstr(answer, "Content-Length: 36\r\n"));
        ck_assert_ptr_nonnull(strstr(answer, "Accept-Ranges: bytes\r\n"));
        ck_assert_ptr_nonnull(strstr(answer, "ETag: \"tag1\"\r\n"));
        ck_assert_str_eq(raw_body(answer), "");
        http_server_stop(s);
}
END_TEST

START_TEST(ranges_are_served)
{
        static const char *const paths[] = { "/ranged", "/file", "/bytes" };
        static const struct {
                const char *range;
                int code;
                const char *header, *body;
        } cases[] = {
                { "bytes=0-3", 206, "Content-Range: bytes 0-3/36\r\n", "0123" },
                { "bytes=30-", 206, "Content-Range: bytes 30-35/36\r\n", "uvwxyz" },
                { "bytes=-2", 206, "Content-Range: bytes 34-35/36\r\n", "yz" },
                { "bytes=-99", 206, "Content-Range: bytes 0-35/36\r\n", text_body },
                { "bytes=33-99999999999999999", 206, "Content-Range: bytes 33-35/36\r\n", "xyz" },
                { "bytes=36-", 416, "Content-Range: bytes */36\r\n", "{" },
                { "bytes=-0", 416, "Content-Range: bytes */36\r\n", "{" },
                { "bytes=0-1,4-5", 200, "Content-Length: 36\r\n", text_body },
                { "bytes=5-2", 200, "Content-Length: 36\r\n", text_body },
                { "bytes=99999999999999999999999-", 200, "Content-Length: 36\r\n", text_body },
                { "lines=1-2", 200, "Content-Length: 36\r\n", text_body },
        };
        struct http_server *s = start(false);

        for (size_t p = 0; p < 3; p++) {
                for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                        char request[256];
                        _cleanup_free_ char *answer = NULL;

                        snprintf(request, sizeof request, "GET %s" WITH("Range: %s\r\n"), paths[p], cases[i].range);
                        answer = raw_request(http_server_port(s), request);
                        ck_assert_msg(raw_status(answer) == cases[i].code, "%s:\n%s", cases[i].range, answer);
                        ck_assert_msg(strstr(answer, cases[i].header) != NULL, "%s:\n%s", cases[i].range, answer);
                        ck_assert_msg(cases[i].code == 416 || strcmp(raw_body(answer), cases[i].body) == 0, "%s:\n%s",
                                      cases[i].range, answer);
                }
        }
        http_server_stop(s);
}
END_TEST

START_TEST(unchanged_content_is_304_and_changed_one_sent_completely)
{
        struct http_server *s = start(false);

        expect(s, 304, "ETag: \"tag1\"", "GET /ranged" WITH("If-None-Match: \"other\", W/\"tag1\"\r\n"));
        expect(s, 304, "ETag: \"tag2\"", "GET /file" WITH("If-None-Match: *\r\n"));
        expect(s, 200, text_body, "GET /ranged" WITH("If-None-Match: \"tag\"\r\n"));
        expect(s, 206, "0-1/36", "GET /ranged" WITH("Range: bytes=0-1\r\nIf-Range: \"tag1\"\r\n"));
        expect(s, 200, text_body, "GET /ranged" WITH("Range: bytes=0-1\r\nIf-Range: \"tag0\"\r\n"));
        http_server_stop(s);
}
END_TEST

START_TEST(responses_have_security_headers)
{
        static const char *const requests[] = {
                "GET /bytes" WITH("If-None-Match: \"tag3\"\r\n"),
                "GET /nowhere" END,
                "GET /show/%zz/x" END,
                "GET /busy" END,
                "PUT /bytes" END,
                "GET /bytes HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
                "HEAD /bytes" END,
                "GET /pieces?count=3" END,
        };
        static const int codes[] = { 304, 404, 400, 503, 405, 400, 200, 200 };
        struct http_server *s = start(false);

        for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
                expect(s, codes[i], "\r\nContent-Security-Policy: default-src 'none'; frame-ancestors 'none'\r\n",
                       requests[i]);
                expect(s, codes[i], "\r\nReferrer-Policy: no-referrer\r\n", requests[i]);
                expect(s, codes[i], "\r\nCache-Control: no-store\r\n", requests[i]);
        }
        http_server_stop(s);
}
END_TEST

START_TEST(a_handler_replaces_default_headers)
{
        static const char *const requests[] = { "GET /page" END, "GET /page" WITH("If-None-Match: \"tag4\"\r\n") };
        static const int codes[] = { 200, 304 };
        struct http_server *s = start(false);

        for (size_t i = 0; i < 2; i++) {
                _cleanup_free_ char *answer = raw_request(http_server_port(s), requests[i]);

                ck_assert_int_eq(raw_status(answer), codes[i]);
                ck_assert_ptr_nonnull(strstr(answer, "\r\ncontent-security-policy: default-src 'self'\r\n"));
                ck_assert_ptr_null(strstr(answer, "Content-Security-Policy"));
                ck_assert_ptr_nonnull(strstr(answer, "\r\nCache-Control: no-cache\r\n"));
                ck_assert_ptr_null(strstr(answer, "no-store"));
        }
        http_server_stop(s);
}
END_TEST

START_TEST(bodies_over_the_limit_are_413)
{
        struct http_server *s = start(false);
        char body[1100];
        char request[1500];

        memset(body, 'a', sizeof body);
        body[sizeof body - 1] = 0;
        snprintf(request, sizeof request, "POST /echo" WITH("Content-Length: 1000\r\n") "%.1000s", body);
        expect(s, 200, "aaaa", request);
        snprintf(request, sizeof request, "POST /echo" WITH("Content-Length: 1001\r\n") "%.1001s", body);
        expect(s, 413, "larger than 1000 bytes", request);
        snprintf(request, sizeof request,
                 "POST /echo" WITH("Transfer-Encoding: chunked\r\n") "3e9\r\n%.1001s\r\n0\r\n\r\n", body);
        expect(s, 413, "too_big", request);
        snprintf(request, sizeof request,
                 "POST /echo" WITH("Transfer-Encoding: chunked\r\n") "3e8\r\n%.1000s\r\n0\r\n\r\n", body);
        expect(s, 200, "aaaa", request);
        /* A client that sends Expect: 100-continue gets its response without sending the body. */
        expect(s, 413, "too_big", "POST /echo" WITH("Content-Length: 99999999999\r\nExpect: 100-continue\r\n"));
        expect(s, 413, "takes no body", "GET /show/1/x" WITH("Content-Length: 1\r\n") "a");
        http_server_stop(s);
}
END_TEST

START_TEST(endless_body_is_answered_and_closed)
{
        static const char request[] = "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
        static char block[KiB(64) + 9];
        struct http_server *s = start(false);
        _cleanup_close_ int fd = raw_connect(http_server_port(s));
        _cleanup_free_ char *answer = NULL;
        uint64_t sent = 0;
        char head[8];

        memset(block, 'a', sizeof block);
        snprintf(head, sizeof head, "10000\r\n");
        memcpy(block, head, 7);
        memcpy(block + sizeof block - 2, "\r\n", 2);
        raw_send(fd, request, strlen(request));
        for (;;) {
                ssize_t n = send(fd, block, sizeof block, MSG_NOSIGNAL);

                if (n < (ssize_t)sizeof block) /* the server has closed the connection */
                        break;
                sent += (uint64_t)n;
                ck_assert_uint_le(sent, (uint64_t)LIMIT_HTTP_DISCARD_BYTES + MiB(64));
        }
        answer = raw_read_all(fd, NULL, NULL);
        ck_assert_int_eq(raw_status(answer), 413);
        ck_assert_ptr_nonnull(strstr(answer, "\r\nContent-Type: application/json\r\n"));
        ck_assert_ptr_nonnull(
                strstr(answer, "\r\nContent-Security-Policy: default-src 'none'; frame-ancestors 'none'\r\n"));
        ck_assert_ptr_nonnull(strstr(answer, "\r\n\r\n{\"error\":"));
        expect(s, 200, "id=1", "GET /show/1/x" END);
        http_server_stop(s);
}
END_TEST

/* POST compressed bytes to /large. */
static char *post_packed(struct http_server *s, const char *encoding, const void *data, size_t n)
{
        _cleanup_close_ int fd = raw_connect(http_server_port(s));
        char head[256];

        snprintf(head, sizeof head, "POST /large" WITH("Content-Encoding: %s\r\nContent-Length: %zu\r\n"), encoding, n);
        raw_send(fd, head, strlen(head));
        raw_send(fd, data, n);
        return raw_read_all(fd, NULL, NULL);
}

static size_t gzip(const void *data, size_t n, void *to, size_t room)
{
        z_stream z = {
                .next_in = (Bytef *)(uintptr_t)data, .avail_in = (uInt)n, .next_out = to, .avail_out = (uInt)room
        };

        ck_assert_int_eq(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
        ck_assert_int_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
        deflateEnd(&z);
        return z.total_out;
}

START_TEST(compressed_bodies_are_limited)
{
        struct http_server *s = start(false);
        size_t plain_size = MiB(16);
        _cleanup_free_ char *plain = calloc(1, plain_size), *packed = malloc(MiB(1));
        size_t n;
        char *answer;

        n = gzip(text_body, sizeof text_body - 1, packed, MiB(1));
        answer = post_packed(s, "gzip", packed, n);
        ck_assert_str_eq(raw_body(answer), text_body);
        free(answer);

        answer = post_packed(s, "gzip", packed, n - 9); /* truncated */
        ck_assert_int_eq(raw_status(answer), 400);
        ck_assert_ptr_nonnull(strstr(answer, "cut off"));
        free(answer);

        packed[12] ^= 0x55;
        answer = post_packed(s, "gzip", packed, n);
        ck_assert_int_eq(raw_status(answer), 400);
        free(answer);

        n = gzip(plain, plain_size, packed, MiB(1)); /* a bomb: 16 MiB of zeros */
        ck_assert_uint_lt(n, KiB(32));
        answer = post_packed(s, "gzip", packed, n);
        ck_assert_int_eq(raw_status(answer), 413);
        ck_assert_ptr_nonnull(strstr(answer, "after unpacking"));
        free(answer);

        n = gzip(plain, MiB(8), packed, MiB(1)); /* exactly at the limit */
        answer = post_packed(s, "gzip", packed, n);
        ck_assert_int_eq(raw_status(answer), 200);
        ck_assert_ptr_nonnull(strstr(answer, "Content-Length: 8388608\r\n"));
        free(answer);

        n = ZSTD_compress(packed, MiB(1), text_body, sizeof text_body - 1, 3);
        answer = post_packed(s, "zstd", packed, n);
        ck_assert_str_eq(raw_body(answer), text_body);
        free(answer);

        answer = post_packed(s, "zstd", packed, n - 1);
        ck_assert_int_eq(raw_status(answer), 400);
        ck_assert_ptr_nonnull(strstr(answer, "cut off"));
        free(answer);

        n = ZSTD_compress(packed, MiB(1), plain, plain_size, 3);
        answer = post_packed(s, "zstd", packed, n);
        ck_assert_int_eq(raw_status(answer), 413);
        free(answer);

        answer = post_packed(s, "br", packed, n);
        ck_assert_int_eq(raw_status(answer), 415);
        ck_assert_ptr_nonnull(strstr(answer, "use gzip, zstd or none"));
        free(answer);
        http_server_stop(s);
}
END_TEST

START_TEST(streams_are_finished_refused_and_abandoned)
{
        static const char cut_off[] = "PUT /stream HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\nhello";
        struct http_server *s = start(false);
        int fd;

        expect(s, 200, "\r\n\r\n5", "PUT /stream" WITH("Content-Length: 5\r\n") "hello");
        expect(s, 200, "\r\n\r\n0", "PUT /stream" WITH("Content-Length: 0\r\n"));
        expect(s, 409, "not_wanted", "PUT /stream?refuse=1" WITH("Content-Length: 5\r\n") "hello");
        expect(s, 409, "not_wanted", "PUT /stream?refuse=1" WITH("Content-Length: 5\r\nExpect: 100-continue\r\n"));
        expect(s, 422, "not ELF", "PUT /stream" WITH("Content-Length: 5\r\n") "hel!o");
        ck_assert_int_eq(atomic_load(&streams_open), 0);
        fd = raw_connect(http_server_port(s));
        raw_send(fd, cut_off, strlen(cut_off));
        while (atomic_load(&streams_open) != 1)
                usleep(1000);
        close(fd); /* a truncated body */
        while (atomic_load(&streams_open) != 0)
                usleep(1000);
        http_server_stop(s);
}
END_TEST

/* RST and FIN differ for a debuginfod client: it caches only the second as "not found". */
START_TEST(transient_failures_reset_the_connection)
{
        static const char *const requests[] = { "GET /reset" END, "GET /failing" END };
        struct http_server *s = start(false);

        for (size_t i = 0; i < 2; i++) {
                _cleanup_close_ int fd = raw_connect(http_server_port(s));
                _cleanup_free_ char *answer = NULL;
                int ended;

                raw_send(fd, requests[i], strlen(requests[i]));
                answer = raw_read_all(fd, NULL, &ended);
                ck_assert_int_eq(ended, ECONNRESET);
        }
        expect(s, 503, "Retry-After: 5\r\n", "GET /busy" END); /* 429 for clients that keep unsent data */
        http_server_stop(s);
}
END_TEST

static unsigned chunked_letters(const char *body, size_t letters[26])
{
        unsigned chunks = 0;

        for (;; chunks++) {
                char *end;
                size_t n = strtoul(body, &end, 16);

                ck_assert_int_eq(strncmp(end, "\r\n", 2), 0);
                if (n == 0)
                        return chunks;
                for (size_t i = 0; i < n; i++)
                        letters[end[2 + i] - 'a']++;
                body = end + 2 + n + 2;
        }
}

static void wait_until_zero(atomic_uint *what)
{
        for (unsigned i = 0; i < 2000 && atomic_load(what); i++)
                usleep(5000);
        ck_assert_uint_eq(atomic_load(what), 0);
}

START_TEST(chunked_response_is_sent_as_produced)
{
        struct http_server *s = start(false);
        _cleanup_free_ char *answer = raw_request(http_server_port(s), "GET /pieces?count=50" END);
        size_t letters[26] = { 0 };

        ck_assert_ptr_nonnull(strstr(answer, "Transfer-Encoding: chunked"));
        chunked_letters(raw_body(answer), letters);
        for (unsigned i = 0; i < 26; i++)
                ck_assert_uint_eq(letters[i], i >= 1 && i <= 24 ? 200000 : 100000);
        expect(s, 200, "Content-Length: 100000\r\n", "GET /pieces?count=1" END);
        wait_until_zero(&pieces_open);
        http_server_stop(s);
}
END_TEST

START_TEST(chunks_are_compressed_if_accepted)
{
        static const struct {
                const char *accept, *sent;
        } cases[] = {
                { "Accept-Encoding: gzip, deflate\r\n", "Content-Encoding: gzip" },
                { "Accept-Encoding: gzip, zstd\r\n", "Content-Encoding: zstd" },
                { "Accept-Encoding: gzip;q=1.0, zstd;q=0.5\r\n", "Content-Encoding: gzip" },
                { "Accept-Encoding: gzip;q=0\r\n", "Content-Length: 100000" },
        };
        struct http_server *s = start(false);

        for (unsigned i = 0; i < 4; i++) {
                char request[200];

                snprintf(request, sizeof request,
                         "GET /pieces?count=1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n%s\r\n", cases[i].accept);
                expect(s, 200, cases[i].sent, request);
                expect(s, 200, "Vary: Accept-Encoding", request);
        }
        http_server_stop(s);
}
END_TEST

/* A failure of the first chunk is an error response; after a later one the response must not look complete. */
START_TEST(failed_chunk_does_not_end_response_normally)
{
        struct http_server *s = start(false);
        int fd = raw_connect(http_server_port(s)), ended_by = 0;
        _cleanup_free_ char *answer = NULL;

        expect(s, 503, "no more of it", "GET /pieces?count=9&fails=1" END);
        raw_send(fd, "GET /pieces?count=9&fails=5" END, strlen("GET /pieces?count=9&fails=5" END));
        answer = raw_read_all(fd, NULL, &ended_by);
        ck_assert_int_eq(ended_by, ECONNRESET);
        wait_until_zero(&pieces_open);
        http_server_stop(s);
}
END_TEST

/*
 * Hundreds of megabytes are pending for a client that does not read: only a few chunks are produced, and other clients
 * are served.
 */
START_TEST(slow_reader_holds_two_chunks_and_no_thread)
{
        struct http_server *s = start(false);
        int fds[16];
        unsigned before = 0;

        atomic_store(&pieces_made, 0);
        for (unsigned i = 0; i < 16; i++) {
                fds[i] = raw_connect(http_server_port(s));
                raw_send(fds[i], "GET /pieces?count=5000" END, strlen("GET /pieces?count=5000" END));
        }
        do { /* until no more data is transferred */
                before = atomic_load(&pieces_made);
                usleep(100000);
        } while (atomic_load(&pieces_made) < 16 || atomic_load(&pieces_made) != before);
        ck_assert_uint_lt(before, 16 * 200); /* two chunks each, and the socket buffers */
        for (unsigned i = 0; i < 8; i++)
                expect(s, 200, "id=1", "GET /show/1/x" END);
        for (unsigned i = 0; i < 16; i++)
                close(fds[i]);
        wait_until_zero(&pieces_open); /* a client that disconnects half-way leaves no resources in use */
        http_server_stop(s);
}
END_TEST

START_TEST(a_connection_serves_many_requests)
{
        struct http_server *s = start(false);
        _cleanup_free_ char *answer =
                raw_request(http_server_port(s), "GET /show/1/x HTTP/1.1\r\nHost: x\r\n\r\n"
                                                 "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"
                                                 "GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n"
                                                 "GET /show/2/x" END);

        ck_assert_ptr_nonnull(strstr(answer, "id=1"));
        ck_assert_ptr_nonnull(strstr(answer, "abcHTTP/1.1 404"));
        ck_assert_ptr_nonnull(strstr(answer, "id=2"));
        http_server_stop(s);
}
END_TEST

START_TEST(blocking_requests_run_on_handler_threads)
{
        struct http_server *s = start(false);
        _cleanup_free_ char *answer = raw_request(http_server_port(s), "GET /when/now HTTP/1.1\r\nHost: x\r\n\r\n"
                                                                       "GET /when/later HTTP/1.1\r\nHost: x\r\n\r\n"
                                                                       "GET /when/now" END);

        ck_assert_ptr_nonnull(strstr(answer, "at onceHTTP/1.1 200"));
        ck_assert_ptr_nonnull(strstr(answer, "handledHTTP/1.1 200"));
        ck_assert_str_eq(answer + strlen(answer) - 7, "at once");
        http_server_stop(s);
}
END_TEST

START_TEST(port_in_use_is_reported)
{
        struct http_server *s = start(false), *second = NULL;
        struct http_options o = { .size = sizeof o, .host = "127.0.0.1", .port = http_server_port(s) };
        struct error err;

        ck_assert_int_eq(http_server_start(&o, routes, 1, NULL, &second, &err), ST_OS);
        ck_assert_ptr_nonnull(strstr(err.text, "cannot listen on 127.0.0.1:"));
        ck_assert_ptr_null(second);
        http_server_stop(s);
}
END_TEST

static const char *const known_hosts[] = { "Cairn.Example" };
static const char *const known_origins[] = { "https://profiler.example" };

static struct http_server *start_that_checks_hosts(void)
{
        const struct http_options o = { .size = sizeof o,
                                        .host = "127.0.0.1",
                                        .check_host = true,
                                        .allowed_hosts = known_hosts,
                                        .allowed_host_count = 1,
                                        .allowed_origins = known_origins,
                                        .allowed_origin_count = 1 };
        struct http_server *s = NULL;

        signal(SIGPIPE, SIG_IGN);
        ck_assert_int_eq(http_server_start(&o, routes, sizeof routes / sizeof *routes, NULL, &s, NULL), ST_OK);
        return s;
}

#define HOST(host) "GET /show/1/x HTTP/1.1\r\nHost: " host "\r\nConnection: close\r\n\r\n"

START_TEST(unknown_host_is_421)
{
        static const char *const known[] = { HOST("127.0.0.1"),   HOST("127.0.0.1:7700"), HOST("[::1]:7700"),
                                             HOST("[::1]"),       HOST("localhost:1"),    HOST("LocalHost."),
                                             HOST("a.localhost"), HOST("cairn.example"),  HOST("CAIRN.example.:80") };
        static const char *const unknown[] = { HOST("evil.example"),
                                               HOST("127.0.0.1.evil.example"),
                                               HOST("notlocalhost"),
                                               HOST("x.cairn.example"),
                                               HOST("localhost.evil.example:7700"),
                                               HOST("127.0.0.1@evil.example"),
                                               HOST("1.2.3") };
        static const char *const malformed[] = { HOST("[::1"), HOST("[::1]x"), HOST(":7700"), HOST(".") };
        struct http_server *s = start_that_checks_hosts();

        for (size_t i = 0; i < sizeof known / sizeof *known; i++)
                expect(s, 200, "id=1", known[i]);
        for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
                expect(s, 421, "start it with --allow-host", unknown[i]);
        for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++)
                expect(s, 400, "malformed", malformed[i]);
        expect(s, 200, "id=1", "GET /show/1/x HTTP/1.0\r\n\r\n");
        http_server_stop(s);
}
END_TEST

#define POST_OF(path, headers)                                                                                         \
        "POST " path " HTTP/1.1\r\nHost: 127.0.0.1:7700\r\nConnection: close\r\nContent-Length: 2\r\n" headers "\r\nh" \
        "i"
#define GET_OF(headers) "GET /show/1/x HTTP/1.1\r\nHost: 127.0.0.1:7700\r\nConnection: close\r\n" headers "\r\n"

START_TEST(cross_origin_requests_are_refused)
{
        static const char *const own[] = {
                POST_OF("/echo", ""),
                POST_OF("/echo", "Origin: http://127.0.0.1:7700\r\n"),
                POST_OF("/echo", "Sec-Fetch-Site: same-origin\r\nOrigin: https://name.of.the.proxy\r\n"),
                POST_OF("/echo", "Sec-Fetch-Site: none\r\n"),
                POST_OF("/shared", "Origin: https://profiler.example\r\n"),
                POST_OF("/shared", "Origin: https://profiler.example\r\nSec-Fetch-Site: cross-site\r\n"),
                GET_OF("Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n"),
        };
        static const char *const foreign[] = {
                POST_OF("/echo", "Origin: http://evil.example\r\n"),
                POST_OF("/echo", "Origin: null\r\n"),
                POST_OF("/echo", "Origin: http://127.0.0.1:7701\r\n"),
                POST_OF("/echo", "Origin: http://127.0.0.1\r\n"),
                POST_OF("/echo", "Origin: http://127.0.0.1:7700.evil.example\r\n"),
                POST_OF("/echo", "Sec-Fetch-Site: cross-site\r\n"),
                POST_OF("/echo", "Sec-Fetch-Site: same-site\r\n"),
                POST_OF("/echo",
                        "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n"),
                POST_OF("/echo", "Origin: https://profiler.example\r\n"),
                POST_OF("/shared", "Origin: https://evil.example\r\n"),
                GET_OF("Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\nSec-Fetch-Dest: image\r\n"),
                GET_OF("Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: iframe\r\n"),
                GET_OF("Origin: http://evil.example\r\n"),
        };
        struct http_server *s = start_that_checks_hosts();

        for (size_t i = 0; i < sizeof own / sizeof *own; i++)
                expect(s, 200, "X-Content-Type-Options: nosniff\r\n", own[i]);
        for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
                expect(s, 403, "\"reason\":\"cross_origin\"", foreign[i]);
                expect(s, 403, "Cross-Origin-Resource-Policy: same-origin\r\n", foreign[i]);
        }
        http_server_stop(s);
        s = start(true); /* a password in the URL does not change this */
        expect(s, 403, "cross_origin",
               POST_OF("/echo", "Authorization: Basic eDphbGw=\r\nOrigin: http://evil.example\r\n"));
        expect(s, 200, "hi", POST_OF("/echo", "Authorization: Basic eDphbGw=\r\n"));
        http_server_stop(s);
}
END_TEST

START_TEST(content_type_must_match_route)
{
        struct http_server *s = start(false);

        expect(s, 200, "hi", POST_OF("/json", "Content-Type: application/json; charset=utf-8\r\n"));
        expect(s, 415, "send application/json", POST_OF("/json", "Content-Type: text/plain\r\n"));
        expect(s, 415, "send application/json",
               POST_OF("/json", "Content-Type: application/x-www-form-urlencoded\r\n"));
        expect(s, 415, "(none)", POST_OF("/json", ""));
        expect(s, 200, "", "POST /json" WITH("Content-Length: 0\r\n"));
        http_server_stop(s);
}
END_TEST

/*
 * Requests that a proxy might interpret differently: the connection is closed, and following data is not parsed as a
 * request.
 */
START_TEST(ambiguous_requests_are_refused)
{
#define SMUGGLE(headers)                                                                                               \
        "POST /large HTTP/1.1\r\nHost: x\r\n" headers "\r\n0\r\n\r\nGET /show/smuggled/x HTTP/1.1\r\nHost: x\r\n\r\n"
        static const char *const requests[] = {
                SMUGGLE("Content-Length: 0\r\nContent-Length: 5\r\n"),
                SMUGGLE("Content-Length: 5\r\nContent-Length: 5\r\n"),
                SMUGGLE("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"),
                SMUGGLE("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"),
                SMUGGLE("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n"),
                SMUGGLE("Transfer-Encoding: identity\r\n"),
                SMUGGLE("Transfer-Encoding: gzip, chunked\r\n"),
                SMUGGLE("Transfer-Encoding: xchunked\r\n"),
                SMUGGLE("Content-Length : 5\r\n"),
                SMUGGLE("Transfer-Encoding : chunked\r\n"),
                SMUGGLE("Content-Length: +5\r\n"),
                SMUGGLE("Content-Length: 5, 5\r\n"),
                SMUGGLE("Content-Length: 0x5\r\n"),
                SMUGGLE("Content-Length: -1\r\n"),
                SMUGGLE("Content-Length:\r\n"),
                SMUGGLE("Host: y\r\n"),
                SMUGGLE("Content Length: 5\r\n"),
                SMUGGLE("X-A: b\x01\r\n"),
                SMUGGLE("Content-Length: 5\r\n 0\r\n"),
                "POST /large HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /show/smuggled/x "
                "HTTP/1.1\r\nHost: x\r\n\r\n",
        };
        struct http_server *s = start(false);

        for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
                _cleanup_free_ char *answer = raw_request(http_server_port(s), requests[i]);

                ck_assert_msg(raw_status(answer) == 400, "want 400 for:\n%s\ngot:\n%s", requests[i], answer);
                ck_assert_msg(!strstr(answer, "smuggled"), "for:\n%s\ngot:\n%s", requests[i], answer);
        }
        expect(s, 200, "",
               "POST /large HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: Chunked\r\n\r\n0\r\n\r\n");
        http_server_stop(s);
}
END_TEST

/* mmap() and munmap() wait while another thread unmaps memory; a health check must not wait. */
START_TEST(connection_does_not_map_memory)
{
        struct http_server *s = start(false);

        for (int i = 0; i < 20; i++) {
                if (i == 4) /* after one request on each thread, which allocates once */
                        atomic_store(&byte_thread_mappings, 0);
                expect(s, 200, "at once", "GET /when/now HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        }
        ck_assert_uint_eq(atomic_load(&byte_thread_mappings), 0);
        http_server_stop(s);
}
END_TEST

START_TEST(path_length_is_limited)
{
        struct http_server *s = start(false);
        static const char format[] = "GET /when/now?q=%0*d HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        char *request;

        ck_assert_int_gt(asprintf(&request, format, (int)LIMIT_HTTP_HEADER_BYTES - 100, 0), 0);
        expect(s, 200, "at once", request);
        free(request);
        ck_assert_int_gt(asprintf(&request, format, (int)LIMIT_HTTP_HEADER_BYTES * 2, 0), 0);
        expect(s, 414, "", request);
        free(request);
        http_server_stop(s);
}
END_TEST

TEST_SUITE("http_server", unknown_host_is_421, cross_origin_requests_are_refused, content_type_must_match_route,
           ambiguous_requests_are_refused, paths_are_split_and_decoded, another_method_is_405_with_allow,
           token_is_required, head_has_the_headers_of_get_and_no_body, ranges_are_served,
           unchanged_content_is_304_and_changed_one_sent_completely, responses_have_security_headers,
           a_handler_replaces_default_headers, bodies_over_the_limit_are_413, endless_body_is_answered_and_closed,
           compressed_bodies_are_limited, streams_are_finished_refused_and_abandoned,
           transient_failures_reset_the_connection, chunked_response_is_sent_as_produced,
           chunks_are_compressed_if_accepted, failed_chunk_does_not_end_response_normally,
           slow_reader_holds_two_chunks_and_no_thread, a_connection_serves_many_requests,
           blocking_requests_run_on_handler_threads, port_in_use_is_reported, connection_does_not_map_memory,
           path_length_is_limited)
