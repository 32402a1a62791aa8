/* SPDX-License-Identifier: Apache-2.0 */
#include <linux/filter.h>
#include <netinet/in.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>

#include "common/clock.h"
#include "common/files/file.h"
#include "common/limits.h"
#include "http/http_client_internal.h"
#include "http/http_server.h"
#include "tests/support/suite.h"

/* State and behavior of the service used by these tests. */
struct service {
        struct http_server *server;
        char url[64];
        atomic_uint requests;
        atomic_uint failures_left; /* number of failure_code responses before a success */
        unsigned failure_code;
        const char *retry_after;
        const char *failure; /* body of these responses */
        char seen[256];
};

static void answer(struct http_request *req)
{
        struct service *s = http_context(req);
        const char *encoding = http_header(req, "Content-Encoding");
        size_t n;
        const uint8_t *body = http_body(req, &n);

        atomic_fetch_add(&s->requests, 1);
        if (atomic_load(&s->failures_left)) {
                atomic_fetch_sub(&s->failures_left, 1);
                if (s->retry_after)
                        http_set_header(req, "Retry-After", s->retry_after);
                if (s->failure_code == 0)
                        http_reset_connection(req);
                else
                        http_fail_code(req, s->failure_code, "test", "%s", s->failure);
                return;
        }
        snprintf(s->seen, sizeof s->seen, "%s %s %s", http_method(req), encoding ? encoding : "-",
                 http_header(req, "Authorization") ? http_header(req, "Authorization") : "-");
        http_respond(req, 200, "text/plain", body, n);
}

static void plain_error(struct http_request *req)
{
        http_respond(req, 413, "text/plain", "too much\nof it", 14);
}

/* A google.rpc.Status: code 3, message, and a detail with a size beyond the end. */
static void protobuf_error(struct http_request *req)
{
        static const char status[] = "\x08\x03\x12\x0ftoo many labels\x1a\x7f";

        http_respond(req, 413, "application/x-protobuf", status, sizeof status - 1);
}

static void redirect(struct http_request *req)
{
        http_set_header(req, "Location", "/echo");
        http_respond(req, 302, "text/plain", "", 0);
}

static const struct http_route routes[] = {
        { .method = "POST", .path = "/echo", .max_body = MiB(8), .handle = answer },
        { .method = "PUT", .path = "/echo", .max_body = MiB(8), .handle = answer },
        { .method = "GET", .path = "/echo", .handle = answer },
        { .method = "GET", .path = "/plain-error", .handle = plain_error },
        { .method = "GET", .path = "/protobuf-error", .handle = protobuf_error },
        { .method = "GET", .path = "/redirect", .handle = redirect },
        { .method = "PUT", .path = "/redirect", .max_body = MiB(1), .handle = redirect },
};

static void start(struct service *s)
{
        const struct http_options o = { .size = sizeof o, .host = "127.0.0.1", .threads = 4 };
        struct error err = { 0 };

        *s = (struct service){ .failure_code = 503, .retry_after = "0", .failure = "the disk is on fire" };
        ck_assert_msg(http_server_start(&o, routes, sizeof routes / sizeof *routes, s, &s->server, &err) == ST_OK, "%s",
                      err.text);
        snprintf(s->url, sizeof s->url, "http://127.0.0.1:%u/", http_server_port(s->server));
}

static struct http_client *patient_client_of(const char *url, uint64_t longest_pause_ms)
{
        const struct http_client_options o = {
                .size = sizeof o, .base_url = url, .first_pause_ms = 1, .longest_pause_ms = longest_pause_ms
        };
        struct http_client *client;

        ck_assert_int_eq(http_client_create(&o, &client, NULL), ST_OK);
        return client;
}

static struct http_client *client_of(const char *url, const atomic_bool *stop)
{
        const struct http_client_options o = { .size = sizeof o,
                                               .base_url = url,
                                               .token = "secret",
                                               .first_pause_ms = 1,
                                               .longest_pause_ms = 20,
                                               .attempts = 4,
                                               .stop = stop };
        struct http_client *client;

        ck_assert_int_eq(http_client_create(&o, &client, NULL), ST_OK);
        return client;
}

static enum status send_simple(struct http_client *c, const char *method, const char *path, const char *body,
                               struct http_client_response *r, struct error *err)
{
        const struct http_client_request q = {
                .method = method, .path = path, .body = body, .body_size = body ? strlen(body) : 0
        };

        return http_client_send(c, &q, r, err);
}

/* A body of letters that can be sent again from its start. */
struct letters {
        size_t sent, size, rewinds;
};

static ssize_t read_letters(void *context, void *to, size_t n)
{
        struct letters *l = context;
        size_t left = l->size - l->sent;

        n = n < left ? n : left;
        memset(to, 'a', n);
        l->sent += n;
        return (ssize_t)n;
}

static bool rewind_letters(void *context)
{
        struct letters *l = context;

        l->sent = 0;
        l->rewinds++;
        return true;
}

START_TEST(body_token_and_response_are_transferred)
{
        struct service s;
        _cleanup_http_client_ struct http_client *c = NULL;
        _cleanup_http_client_response_ struct http_client_response r = { 0 };
        struct error err = { 0 };

        start(&s);
        c = client_of(s.url, NULL);
        ck_assert_msg(send_simple(c, "POST", "/echo", "hello", &r, &err) == ST_OK, "%s", err.text);
        ck_assert_uint_eq(r.code, 200);
        ck_assert_mem_eq(r.body.data, "hello", 5);
        ck_assert_str_eq(r.content_type, "text/plain");
        ck_assert_str_eq(s.seen, "POST - Bearer secret");
        http_server_stop(s.server);
}
END_TEST

START_TEST(busy_service_is_retried_and_stream_restarted)
{
        struct service s;
        struct letters l = { .size = MiB(3) };
        _cleanup_http_client_ struct http_client *c = NULL;
        _cleanup_http_client_response_ struct http_client_response r = { 0 };
        const struct http_client_request q = { .method = "PUT",
                                               .path = "/echo",
                                               .read = read_letters,
                                               .rewind = rewind_letters,
                                               .context = &l,
                                               .max_response = MiB(4) };
        struct error err = { 0 };

        start(&s);
        atomic_store(&s.failures_left, 3);
        c = client_of(s.url, NULL);
        ck_assert_msg(http_client_send(c, &q, &r, &err) == ST_OK, "%s", err.text);
        ck_assert_uint_eq(r.attempts, 4);
        ck_assert_uint_eq(r.body.size, MiB(3));
        ck_assert_uint_eq(atomic_load(&s.requests), 4);
        http_server_stop(s.server);
}
END_TEST

START_TEST(last_failed_attempt_returns_server_message)
{
        struct service s;
        _cleanup_http_client_ struct http_client *c = NULL;
        _cleanup_http_client_response_ struct http_client_response r = { 0 };
        struct error err = { 0 };
        char member[64];

        start(&s);
        atomic_store(&s.failures_left, 100);
        c = client_of(s.url, NULL);
        ck_assert_int_eq(send_simple(c, "GET", "/echo", NULL, &r, &err), ST_BUSY);
        ck_assert_uint_eq(r.attempts, 4);
        ck_assert_ptr_nonnull(strstr(err.text, "the disk is on fire (HTTP 503, GET http://127.0.0.1:"));
        ck_assert_ptr_nonnull(strstr(err.text, "/echo)"));
        ck_assert_str_eq(http_client_get_error_member(&r, "reason", member, sizeof member), "test");
        http_server_stop(s.server);
}
END_TEST

START_TEST(reset_connection_is_retried)
{
        struct service s;
        _cleanup_http_client_ struct http_client *c = NULL;
        _cleanup_http_client_response_ struct http_client_response r = { 0 };
        struct error err = { 0 };

        start(&s);
        s.failure_code = 0;
        atomic_store(&s.failures_left, 2);
        c = client_of(s.url, NULL);
        ck_assert_msg(send_simple(c, "PUT", "/echo", "x", &r, &err) == ST_OK, "%s", err.text);
        ck_assert_uint_ge(r.attempts, 2);
        http_server_stop(s.server);
}
END_TEST

START_TEST(post_is_retried_only_if_allowed)
{
        struct service s;
        struct http_client_request q = { .method = "POST", .path = "/echo", .body = "x", .body_size = 1 };
        _cleanup_http_client_ struct http_client *c = NULL;
        _cleanup_http_client_response_ struct http_client_response r = { 0 };

        start(&s);
        atomic_store(&s.failures_left, 1);
        c = client_of(s.url, NULL);
        ck_assert_int_eq(http_client_send(c, &q, &r, NULL), ST_BUSY);
        ck_assert_uint_eq(atomic_load(&s.requests), 1);
        http_client_response_deinit(&r);
        atomic_store(&s.failures_left, 1);
        q.repeatable = true;
        ck_assert_int_eq(http_client_send(c, &q, &r, NULL), ST_OK);
        ck_assert_uint_eq(atomic_load(&s.requests), 3);
        http_server_stop(s.server);
}
END_TEST

START_TEST(timed_out_request_is_retried_only_if_allowed)
{
        struct service s;
        struct http_client_request q = { .method = "GET", .path = "/echo", .no_timeout_retry = true };
        _cleanup_http_client_ struct http_client *c = NULL;
        _cleanup_http_client_response_ struct http_client_response r = { 0 };

        start(&s);
        s.failure_code = 504;
        atomic_store(&s.failures_left, 1);
        c = client_of(s.url, NULL);
        ck_assert_int_eq(http_client_send(c, &q, &r, NULL), ST_BUSY);
        ck_assert_uint_eq(r.code, 504);
        ck_assert_uint_eq(atomic_load(&s.requests), 1);
        http_client_response_deinit(&r);
        atomic_store(&s.failures_left, 1);
        q.no_timeout_retry = false;
        ck_assert_int_eq(http_client_send(c, &q, &r, NULL), ST_OK);
        ck_assert_uint_eq(atomic_load(&s.requests), 3);
        http_client_response_deinit(&r);
        s.failure_code = 503; /* busy: a retry may succeed */
        atomic_store(&s.failures_left, 1);
        q.no_timeout_retry = true;
        ck_assert_int_eq(http_client_send(c, &q, &r, NULL), ST_OK);
        http_server_stop(s.server);
}
END_TEST

/* A path with many letters, and a query that is longer. */
static void make_long_path(char *ret, size_t size, size_t letters)
{
        size_t n = (size_t)snprintf(ret, size, "/echo?selector=");

        memset(ret + n, 'y', letters);
        ret[n + letters] = 0;
}

START_TEST(server_text_is_complete_and_url_truncated)
{
        struct service s;
        _cleanup_http_client_ struct http_client *c = NULL;
        struct http_client_response r = { 0 };
        char text[301], path[400], end[8];
        struct error err = { 0 };

        start(&s);
        s.failure_code = 400;
        s.failure = text;
        c = client_of(s.url, NULL);
        make_long_path(path, sizeof path, 300);
        for (size_t n = 100; n <= 300; n++) {
                memset(text, 'x', n);
                text[n] = 0;
                memcpy(text + (n < 200 ? n : 200) - 3, "end", 3); /* the end of the text must be complete */
                atomic_store(&s.failures_left, 1);
                ck_assert_int_eq(send_simple(c, "GET", path, NULL, &r, &err), ST_BAD_DATA);
                http_client_response_deinit(&r);
                ck_assert_msg(strncmp(err.text, text, n < 200 ? n : 200) == 0, "%zu: %s", n, err.text);
                ck_assert_ptr_nonnull(strstr(err.text, "(HTTP 400"));
                ck_assert_ptr_null(strstr(err.text, "selector"));
                snprintf(end, sizeof end, "%s", err.text + strlen(err.text) - 1);
                ck_assert_str_eq(end, ")");
        }
        http_server_stop(s.server);
}
END_TEST

START_TEST(refused_requests_are_not_retried_and_have_a_remedy)
{
        struct service s;
        _cleanup_http_client_ struct http_client *c = NULL;
        struct http_client_response r = { 0 };
        struct error err = { 0 };

        start(&s);
        c = client_of(s.url, NULL);
        s.failure_code = 403;
        atomic_store(&s.failures_left, 1);
        ck_assert_int_eq(send_simple(c, "GET", "/echo", NULL, &r, &err), ST_USAGE);
        ck_assert_uint_eq(r.attempts, 1);
        http_client_response_deinit(&r);
        ck_assert_int_eq(send_simple(c, "GET", "/nothing-here", NULL, &r, &err), ST_NOT_FOUND);
        http_client_response_deinit(&r);
        ck_assert_int_eq(send_simple(c, "GET", "/plain-error", NULL, &r, &err), ST_TOO_BIG);
        ck_assert_ptr_nonnull(strstr(err.text, "too much (HTTP 413"));
        ck_assert_ptr_null(strstr(err.text, "of it"));
        http_client_response_deinit(&r);
        ck_assert_int_eq(send_simple(c, "GET", "/protobuf-error", NULL, &r, &err), ST_TOO_BIG);
        ck_assert_ptr_nonnull(strstr(err.text, "too many label"));
        ck_assert_ptr_nonnull(strstr(err.text, "(HTTP 413"));
        http_client_response_deinit(&r);
        http_server_stop(s.server);
}
END_TEST

START_TEST(a_get_follows_redirects_and_a_put_does_not)
{
        struct service s;
        _cleanup_http_client_ struct http_client *c = NULL;
        struct http_client_response r = { 0 };
        struct error err = { 0 };

        start(&s);
        c = client_of(s.url, NULL);
        ck_assert_int_eq(send_simple(c, "GET", "/redirect", NULL, &r, &err), ST_OK);
        http_client_response_deinit(&r);
        ck_assert_int_eq(send_simple(c, "PUT", "/redirect", "x", &r, &err), ST_BAD_DATA);
        ck_assert_ptr_nonnull(strstr(err.text, "HTTP 302; give the address it redirects to"));
        http_client_response_deinit(&r);
        http_server_stop(s.server);
}
END_TEST

START_TEST(body_is_sent_at_given_rate)
{
        struct service s;
        _cleanup_http_client_ struct http_client *c = NULL;
        _cleanup_http_client_response_ struct http_client_response r = { 0 };
        struct letters letters = { .size = KiB(256) };
        struct http_client_options o = { .size = sizeof o, .send_bytes_per_s = KiB(128) };
        const struct http_client_request q = {
                .method = "PUT", .path = "/echo", .read = read_letters, .rewind = rewind_letters, .context = &letters
        };
        struct error err = { 0 };
        int64_t from;

        start(&s);
        o.base_url = s.url;
        ck_assert_int_eq(http_client_create(&o, &c, NULL), ST_OK);
        from = monotonic_ns();
        ck_assert_msg(http_client_send(c, &q, &r, &err) == ST_OK, "%s", err.text);
        ck_assert_int_ge(monotonic_ns() - from, INT64_C(1000000000)); /* two seconds, minus the initial burst */
        ck_assert_uint_eq(r.body.size, KiB(256));
        http_server_stop(s.server);
}
END_TEST

START_TEST(an_answer_past_the_limit_is_refused)
{
        struct service s;
        _cleanup_http_client_ struct http_client *c = NULL;
        _cleanup_http_client_response_ struct http_client_response r = { 0 };
        const struct http_client_request q = {
                .method = "PUT", .path = "/echo", .body = "12345", .body_size = 5, .max_response = 4
        };
        struct error err = { 0 };

        start(&s);
        c = client_of(s.url, NULL);
        ck_assert_int_eq(http_client_send(c, &q, &r, &err), ST_TOO_BIG);
        ck_assert_uint_eq(r.attempts, 1);
        http_server_stop(s.server);
}
END_TEST

/* A socket that accepts connections and never responds. */
static int silent_listener(char url[static 64])
{
        struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        socklen_t n = sizeof at;
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        ck_assert_int_eq(bind(fd, (struct sockaddr *)&at, n), 0);
        ck_assert_int_eq(listen(fd, 16), 0);
        ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&at, &n), 0);
        snprintf(url, 64, "http://127.0.0.1:%u", ntohs(at.sin_port));
        return fd;
}

static void *set_stop_after_connect(void *context)
{
        atomic_bool *stop = ((void **)context)[0];
        int peer = accept(*(int *)((void **)context)[1], NULL, NULL);

        atomic_store(stop, true);
        return (void *)(intptr_t)peer;
}

START_TEST(unresponsive_service_is_abandoned_on_stop)
{
        char url[64];
        _cleanup_close_ int fd = silent_listener(url);
        atomic_bool stop = false;
        _cleanup_http_client_ struct http_client *c = client_of(url, &stop);
        _cleanup_http_client_response_ struct http_client_response r = { 0 };
        struct error err = { 0 };
        pthread_t thread;
        void *both[] = { &stop, &fd }, *peer;

        pthread_create(&thread, NULL, set_stop_after_connect, both);
        ck_assert_int_eq(send_simple(c, "GET", "/x", NULL, &r, &err), ST_BUSY);
        ck_assert_ptr_nonnull(strstr(err.text, "was stopped"));
        pthread_join(thread, &peer);
        close((int)(intptr_t)peer);
}
END_TEST

START_TEST(unresponsive_service_is_abandoned_after_timeout)
{
        char url[64];
        _cleanup_close_ int fd = silent_listener(url);
        const struct http_client_options o = {
                .size = sizeof o, .base_url = url, .request_timeout_ms = 50, .attempts = 2, .first_pause_ms = 1
        };
        _cleanup_http_client_ struct http_client *c = NULL;
        _cleanup_http_client_response_ struct http_client_response r = { 0 };
        struct error err = { 0 };

        ck_assert_int_ge(fd, 0);
        ck_assert_int_eq(http_client_create(&o, &c, NULL), ST_OK);
        ck_assert_int_eq(send_simple(c, "GET", "/x", NULL, &r, &err), ST_BUSY);
        ck_assert_ptr_nonnull(strstr(err.text, "failed after 2 attempts"));
        ck_assert_uint_eq(r.code, 0);
}
END_TEST

/* Its attempts have no limit of their own. */
START_TEST(deadline_of_a_request_is_for_all_its_attempts)
{
        char url[64];
        _cleanup_close_ int fd = silent_listener(url);
        const struct http_client_options o = {
                .size = sizeof o, .base_url = url, .idle_timeout_s = 86400, .attempts = UINT_MAX, .first_pause_ms = 1
        };
        const struct http_client_request q = { .method = "GET", .path = "/x", .deadline_ms = 50 };
        _cleanup_http_client_ struct http_client *c = NULL;
        _cleanup_http_client_response_ struct http_client_response r = { 0 };
        struct error err = { 0 };

        ck_assert_int_ge(fd, 0);
        ck_assert_int_eq(http_client_create(&o, &c, NULL), ST_OK);
        ck_assert_int_eq(http_client_send(c, &q, &r, &err), ST_BUSY);
        ck_assert(r.timed_out);
}
END_TEST

START_TEST(a_pause_beyond_the_deadline_is_not_made)
{
        const struct http_client_options o = { .size = sizeof o,
                                               .base_url = "http://127.0.0.1:1",
                                               .attempts = 2,
                                               .first_pause_ms = 86400000,
                                               .longest_pause_ms = 86400000 };
        const struct http_client_request q = { .method = "GET", .path = "/x", .deadline_ms = 3600000 };
        _cleanup_http_client_ struct http_client *c = NULL;
        _cleanup_http_client_response_ struct http_client_response r = { 0 };

        ck_assert_int_eq(http_client_create(&o, &c, NULL), ST_OK);
        ck_assert_int_eq(http_client_send(c, &q, &r, NULL), ST_BUSY);
        ck_assert_uint_eq(r.attempts, 1);
}
END_TEST

/* A connection that waits to be accepted, after which the kernel answers no further ones. */
static int fill_listener(int listener)
{
        struct sockaddr_in a;
        socklen_t size = sizeof a;
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&a, &size), 0);
        ck_assert_int_eq(listen(listener, 0), 0);
        ck_assert_int_eq(connect(fd, (struct sockaddr *)&a, size), 0);
        return fd;
}

START_TEST(service_without_a_connection_is_abandoned_after_fewer_timeouts)
{
        char url[64];
        _cleanup_close_ int fd = silent_listener(url), waiting = fill_listener(fd);
        const struct http_client_options o = { .size = sizeof o,
                                               .base_url = url,
                                               .connect_timeout_ms = 50,
                                               .connect_timeouts = 2,
                                               .attempts = 4,
                                               .first_pause_ms = 1 };
        _cleanup_http_client_ struct http_client *c = NULL;
        _cleanup_http_client_response_ struct http_client_response r = { 0 };
        struct error err = { 0 };

        ck_assert_int_ge(waiting, 0);
        ck_assert_int_eq(http_client_create(&o, &c, NULL), ST_OK);
        ck_assert_int_eq(send_simple(c, "GET", "/x", NULL, &r, &err), ST_BUSY);
        ck_assert_uint_eq(r.attempts, 2);
        ck_assert(r.timed_out);
}
END_TEST

START_TEST(timeouts_of_a_connection_are_not_those_of_connecting)
{
        char url[64];
        _cleanup_close_ int fd = silent_listener(url);
        const struct http_client_options o = { .size = sizeof o,
                                               .base_url = url,
                                               .request_timeout_ms = 1000,
                                               .connect_timeouts = 1,
                                               .attempts = 2,
                                               .first_pause_ms = 1 };
        _cleanup_http_client_ struct http_client *c = NULL;
        _cleanup_http_client_response_ struct http_client_response r = { 0 };
        struct error err = { 0 };

        ck_assert_int_ge(fd, 0);
        ck_assert_int_eq(http_client_create(&o, &c, NULL), ST_OK);
        ck_assert_int_eq(send_simple(c, "GET", "/x", NULL, &r, &err), ST_BUSY);
        ck_assert_uint_eq(r.attempts, 2);
}
END_TEST

/* Answers a request on each of two connections; the system drops what comes later on the first. */
static void *drop_after_answer(void *listener)
{
        static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
        struct sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
        const struct sock_fprog filter = { 1, &nothing };
        int peers[2];
        char request[1024];

        for (int i = 0; i < 2; i++) {
                peers[i] = accept(*(int *)listener, NULL, NULL);
                ck_assert_int_gt(read(peers[i], request, sizeof request), 0);
                if (i == 0)
                        ck_assert_int_eq(setsockopt(peers[0], SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter), 0);
                ck_assert_int_eq(write(peers[i], answer, sizeof answer - 1), sizeof answer - 1);
        }
        close(peers[0]);
        close(peers[1]);
        return NULL;
}

START_TEST(connection_that_was_kept_and_drops_packets_breaks)
{
        char url[64];
        _cleanup_close_ int fd = silent_listener(url);
        const struct http_client_options o = { .size = sizeof o,
                                               .base_url = url,
                                               .unacked_timeout_ms = 50,
                                               .idle_timeout_s = 86400,
                                               .first_pause_ms = 1 };
        _cleanup_http_client_ struct http_client *c = NULL;
        struct error err = { 0 };
        pthread_t server;

        pthread_create(&server, NULL, drop_after_answer, &fd);
        ck_assert_int_eq(http_client_create(&o, &c, NULL), ST_OK);
        for (int i = 0; i < 2; i++) {
                _cleanup_http_client_response_ struct http_client_response r = { 0 };

                check_ok(send_simple(c, "GET", "/x", NULL, &r, &err), &err);
        }
        pthread_join(server, NULL);
}
END_TEST

/* ---- checked responses ---- */

static unsigned checks, checks_until_accepted;

static enum status take_when_accepted(void *context, const void *data, size_t n)
{
        (void)data;
        *(size_t *)context += n;
        return checks++ < checks_until_accepted ? ST_BUSY : ST_OK;
}

static bool accept_late(void *unused)
{
        (void)unused;
        return checks++ >= checks_until_accepted;
}

START_TEST(response_that_is_not_accepted_is_asked_for_again)
{
        struct service s;
        _cleanup_http_client_ struct http_client *c = NULL;
        _cleanup_http_client_response_ struct http_client_response r = { 0 };
        size_t taken = 0;
        const struct http_client_request checked = { .method = "GET", .path = "/echo", .check = accept_late };
        const struct http_client_request written = { .method = "PUT",
                                                     .path = "/echo",
                                                     .body = "abc",
                                                     .body_size = 3,
                                                     .write = take_when_accepted,
                                                     .write_context = &taken };
        struct error err = { 0 };

        start(&s);
        c = client_of(s.url, NULL);
        checks_until_accepted = 2;
        check_ok(http_client_send(c, &checked, &r, &err), &err);
        ck_assert_uint_eq(r.attempts, 3);
        http_client_response_deinit(&r);
        checks = 0;
        check_ok(http_client_send(c, &written, &r, &err), &err);
        ck_assert_uint_eq(r.attempts, 3);
        ck_assert_uint_eq(taken, 9);
        http_client_response_deinit(&r);
        checks = 0;
        checks_until_accepted = 100;
        ck_assert_int_eq(http_client_send(c, &checked, &r, &err), ST_BUSY);
        ck_assert_uint_eq(r.attempts, 4);
        ck_assert_uint_eq(r.code, 0);
        http_server_stop(s.server);
}
END_TEST

START_TEST(refused_connection_is_reported)
{
        char url[64];
        int fd = silent_listener(url);
        _cleanup_http_client_ struct http_client *c = client_of(url, NULL);
        _cleanup_http_client_response_ struct http_client_response r = { 0 };
        struct http_client_options wrong = { .size = sizeof wrong, .base_url = "ftp://x" };
        struct error err = { 0 };

        close(fd);
        ck_assert_int_eq(send_simple(c, "GET", "/x", NULL, &r, &err), ST_BUSY);
        ck_assert_ptr_nonnull(strstr(err.text, "is the service running there?"));
        ck_assert_int_eq(http_client_create(&wrong, &c, &err), ST_USAGE);
}
END_TEST

START_TEST(long_url_is_truncated_before_remedy)
{
        char url[64], path[400];
        int fd = silent_listener(url);
        _cleanup_http_client_ struct http_client *c = client_of(url, NULL);
        _cleanup_http_client_response_ struct http_client_response r = { 0 };
        struct error err = { 0 };

        close(fd);
        make_long_path(path, sizeof path, 300);
        path[5] = '/'; /* a path of 300 bytes, without a query */
        ck_assert_int_eq(send_simple(c, "GET", path, NULL, &r, &err), ST_BUSY);
        ck_assert_msg(strstr(err.text, "... failed: ") && strstr(err.text, "; is the service running there?"), "%s",
                      err.text);
}
END_TEST

START_TEST(only_loopback_urls_may_carry_a_token_in_clear)
{
        static const char *const safe[] = { "https://example.org",   "http://127.0.0.1:7700", "http://127.9.8.7",
                                            "http://localhost:7700", "http://LOCALHOST/x",    "http://[::1]:7700" };
        static const char *const exposed[] = { "http://127.evil.example",       "http://localhost.evil.example",
                                               "http://localhost@evil.example", "http://localhost:x@evil.example",
                                               "http://127.0.0.1.evil.example", "http://[::2]:7700",
                                               "http://evil.example/127.0.0.1", "http://128.0.0.1" };

        for (size_t i = 0; i < sizeof safe / sizeof *safe; i++)
                ck_assert_msg(!http_client_exposes_token(safe[i]), "%s", safe[i]);
        for (size_t i = 0; i < sizeof exposed / sizeof *exposed; i++)
                ck_assert_msg(http_client_exposes_token(exposed[i]), "%s", exposed[i]);
}
END_TEST

START_TEST(retry_after_is_read_as_seconds_or_as_a_date)
{
        ck_assert_uint_eq(parse_retry_after_ms(" 7\r\n", 4, 0), 7000);
        ck_assert_uint_eq(parse_retry_after_ms("Thu, 01 Jan 1970 00:01:40 GMT", 29, 90), 10000);
        ck_assert_uint_eq(parse_retry_after_ms("Thu, 01 Jan 1970 00:01:40 GMT", 29, 200), 0);
        ck_assert_uint_eq(parse_retry_after_ms("99999999999", 11, 0), 86400000);
        ck_assert_uint_eq(parse_retry_after_ms("soon", 4, 0), 0);
        ck_assert_uint_eq(parse_retry_after_ms("", 0, 0), 0);
}
END_TEST

START_TEST(retry_after_lengthens_the_pause)
{
        struct service s;
        _cleanup_http_client_ struct http_client *c = NULL;
        _cleanup_http_client_response_ struct http_client_response r = { 0 };
        int64_t begun;

        start(&s);
        s.retry_after = "1";
        atomic_store(&s.failures_left, 1);
        c = patient_client_of(s.url, 2000);
        begun = monotonic_ns();
        ck_assert_int_eq(send_simple(c, "GET", "/echo", NULL, &r, NULL), ST_OK);
        ck_assert_int_ge(monotonic_ns() - begun, 1000 * INT64_C(1000000)); /* longer than the first pause of 1 ms */
        http_server_stop(s.server);
}
END_TEST

START_TEST(long_retry_after_prevents_retry)
{
        struct service s;
        _cleanup_http_client_ struct http_client *c = NULL;
        _cleanup_http_client_response_ struct http_client_response r = { 0 };

        start(&s);
        s.retry_after = "3600";
        s.failure_code = 429;
        atomic_store(&s.failures_left, 1);
        c = patient_client_of(s.url, 2000);
        ck_assert_int_eq(send_simple(c, "GET", "/echo", NULL, &r, NULL), ST_BUSY);
        ck_assert_uint_eq(r.attempts, 1);
        ck_assert_uint_eq(r.retry_after_ms, 3600000);
        http_server_stop(s.server);
}
END_TEST

START_TEST(escaping_leaves_only_unreserved_letters)
{
        _cleanup_buf_ struct buf b;

        buf_init(&b, 4096);
        ck_assert_int_eq(http_client_escape(&b, "lib c++.so&\xc3\xa9~"), ST_OK);
        ck_assert_str_eq(buf_cstr(&b), "lib%20c%2B%2B.so%26%C3%A9~");
}
END_TEST

START_TEST(newline_of_token_file_is_removed)
{
        char path[] = "/tmp/cairn-token-XXXXXX";
        int fd = mkstemp(path);
        char *token = NULL;
        struct error err = { 0 };

        ck_assert_int_eq(write(fd, "  abc\r\nsecond\n", 14), 14);
        ck_assert_int_eq(http_client_read_token(path, &token, &err), ST_OK);
        ck_assert_str_eq(token, "abc");
        free(token);
        ck_assert_int_eq(ftruncate(fd, 0), 0);
        ck_assert_int_eq(http_client_read_token(path, &token, &err), ST_USAGE);
        close(fd);
        unlink(path);
}
END_TEST

TEST_SUITE("http-client", body_token_and_response_are_transferred, busy_service_is_retried_and_stream_restarted,
           last_failed_attempt_returns_server_message, reset_connection_is_retried, post_is_retried_only_if_allowed,
           timed_out_request_is_retried_only_if_allowed, server_text_is_complete_and_url_truncated,
           long_url_is_truncated_before_remedy, refused_requests_are_not_retried_and_have_a_remedy,
           body_is_sent_at_given_rate, a_get_follows_redirects_and_a_put_does_not, an_answer_past_the_limit_is_refused,
           unresponsive_service_is_abandoned_on_stop, unresponsive_service_is_abandoned_after_timeout,
           deadline_of_a_request_is_for_all_its_attempts, a_pause_beyond_the_deadline_is_not_made,
           service_without_a_connection_is_abandoned_after_fewer_timeouts,
           timeouts_of_a_connection_are_not_those_of_connecting, connection_that_was_kept_and_drops_packets_breaks,
           response_that_is_not_accepted_is_asked_for_again, refused_connection_is_reported,
           only_loopback_urls_may_carry_a_token_in_clear, retry_after_is_read_as_seconds_or_as_a_date,
           retry_after_lengthens_the_pause, long_retry_after_prevents_retry, escaping_leaves_only_unreserved_letters,
           newline_of_token_file_is_removed)
