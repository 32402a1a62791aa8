/* SPDX-License-Identifier: Apache-2.0 */
/* Clients that are slow, idle or too many, and their effect on others. */
#include <arpa/inet.h>
#include <check.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/limits.h"
#include "common/metrics.h"
#include "common/program/metrics_write.h"
#include "http/http_server.h"
#include "tests/support/http_raw.h"
#include "tests/support/suite.h"

#define BEAT_MS 50
#define PATIENCE_BEATS 1200
#define REQUEST "GET /short HTTP/1.1\r\nHost: x\r\n\r\n"
#define LAST_REQUEST "GET /short HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"

static atomic_bool let_go, stopped_for_client, was_cancelled;
static atomic_uint arrived, finished;

static void give_short(struct http_request *req)
{
        http_respond(req, 200, "text/plain", "short", 5);
}

static ssize_t read_zeros(void *state, void *to, size_t n, uint64_t offset)
{
        (void)state;
        (void)offset;
        memset(to, 0, n);
        return (ssize_t)n;
}

static void give_long(struct http_request *req)
{
        http_respond_stream(req, "application/octet-stream", GiB(1), NULL, read_zeros, NULL, NULL);
}

static void wait_long(struct http_request *req)
{
        const struct timespec beat = { .tv_nsec = 10000000 };

        atomic_fetch_add(&arrived, 1);
        while (!atomic_load(&let_go))
                nanosleep(&beat, NULL);
        give_short(req);
}

/* Works until its deadline asks it to stop. */
static void work_until_stopped(struct http_request *req)
{
        const struct timespec beat = { .tv_nsec = 10000000 };
        struct error err = { 0 };

        atomic_fetch_add(&arrived, 1);
        while (!deadline_expired(http_request_deadline(req)))
                nanosleep(&beat, NULL);
        http_fail(req, deadline_check(http_request_deadline(req), &err), &err);
        if (strstr(err.text, "the client closed its connection"))
                atomic_store(&stopped_for_client, true);
}

/* Stopped by a flag that it polls, like a worker. */
static void poll_until_cancelled(struct http_request *req)
{
        const struct timespec beat = { .tv_nsec = 10000000 };
        struct error err;

        atomic_fetch_add(&arrived, 1);
        while (!atomic_load(http_request_cancelled(req)))
                nanosleep(&beat, NULL);
        atomic_store(&was_cancelled, true);
        http_fail(req, error_set(&err, ST_BUSY, "the worker was stopped"), &err);
}

/* The second chunk is only sent after the request is cancelled. */
static enum status make_until_cancelled(void *state, struct buf *to, bool *end, struct error *err)
{
        static atomic_uint pieces;
        const struct timespec beat = { .tv_nsec = 10000000 };

        *end = false;
        if (atomic_fetch_add(&pieces, 1) == 0) {
                buf_append_str(to, "one");
                return ST_OK;
        }
        atomic_fetch_add(&arrived, 1);
        while (!atomic_load((const atomic_bool *)state))
                nanosleep(&beat, NULL);
        atomic_store(&was_cancelled, true);
        return error_set(err, ST_BUSY, "cancelled");
}

static void answer_in_pieces(struct http_request *req)
{
        http_respond_pieces(req, "text/plain", KiB(64), make_until_cancelled, NULL,
                            (void *)(uintptr_t)http_request_cancelled(req));
}

static void count_finished(void *context, const struct http_request *req)
{
        (void)context;
        (void)req;
        atomic_fetch_add(&finished, 1);
}

static const struct http_route routes[] = {
        { .method = "GET", .path = "/short", .handle = give_short },
        { .method = "GET", .path = "/long", .handle = give_long },
        { .method = "GET", .path = "/wait", .handle = wait_long },
        { .method = "GET", .path = "/work", .handle = work_until_stopped },
        { .method = "GET", .path = "/poll", .handle = poll_until_cancelled },
        { .method = "GET", .path = "/pieces", .handle = answer_in_pieces },
        { .method = "POST", .path = "/body", .max_body = MiB(1), .handle = give_short },
};

static struct http_server *start(unsigned all, unsigned per_address)
{
        const struct http_options o = { .size = sizeof o,
                                        .host = "127.0.0.1",
                                        .max_connections = all,
                                        .max_per_address = per_address,
                                        .headers_s = 1,
                                        .slow_s = 1,
                                        .finished = count_finished };
        struct http_server *s;

        signal(SIGPIPE, SIG_IGN);
        ck_assert_int_eq(http_server_start(&o, routes, sizeof routes / sizeof *routes, NULL, &s, NULL), ST_OK);
        return s;
}

/* The value of a counter in the server's metrics, 0 before its first event. */
static uint64_t read_counter(const char *name)
{
        _cleanup_buf_ struct buf text;
        const char *at;

        buf_init(&text, MiB(1));
        metrics_write(&text);
        at = strstr(buf_cstr(&text), name);
        return at ? strtoull(at + strlen(name), NULL, 10) : 0;
}
#define ENDED(reason) read_counter("\ncairn_http_connections_ended_total{reason=\"" reason "\"} ")
#define REFUSED(reason) read_counter("\ncairn_http_connections_refused_total{reason=\"" reason "\"} ")
#define OPEN_NOW read_counter("\ncairn_http_connections ")

static int connect_from_address(const char *address, uint16_t port)
{
        struct sockaddr_in from = { .sin_family = AF_INET }, to = { .sin_family = AF_INET, .sin_port = htons(port) };
        const struct timeval patience = { .tv_sec = 20 };
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        ck_assert_int_ge(fd, 0);
        from.sin_addr.s_addr = inet_addr(address);
        to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        ck_assert_int_eq(bind(fd, (const struct sockaddr *)&from, sizeof from), 0);
        ck_assert_int_eq(connect(fd, (const struct sockaddr *)&to, sizeof to), 0);
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        return fd;
}

/*
 * Send a request and keep the connection open. The server finishes a request after the client, and then the connection
 * is idle.
 */
static void send_request(int fd)
{
        unsigned before = atomic_load(&finished);
        char answer[1024];
        ssize_t n;

        raw_send(fd, REQUEST, strlen(REQUEST));
        n = recv(fd, answer, sizeof answer - 1, 0);
        ck_assert_int_gt(n, 12);
        ck_assert_int_eq(memcmp(answer, "HTTP/1.1 200", 12), 0);
        while (atomic_load(&finished) == before)
                poll(NULL, 0, 1);
}

static bool is_closed(int fd, int wait_ms)
{
        struct pollfd p = { .fd = fd, .events = POLLIN };
        char byte;

        return poll(&p, 1, wait_ms) > 0 && recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) <= 0;
}

/* Send text repeatedly, one byte per interval, until the server closes the connection. */
static void send_slowly_until_closed(int fd, const char *text)
{
        for (unsigned beat = 0; beat < PATIENCE_BEATS; beat++) {
                (void)!send(fd, text + beat % strlen(text), 1, MSG_NOSIGNAL);
                if (is_closed(fd, BEAT_MS))
                        return;
        }
        ck_abort_msg("the connection was not ended");
}

static void expect_answer(struct http_server *s)
{
        _cleanup_free_ char *answer = raw_request(http_server_port(s), LAST_REQUEST);

        ck_assert_int_eq(raw_status(answer), 200);
}

START_TEST(slow_headers_are_timed_out)
{
        struct http_server *s = start(8, 8);
        _cleanup_close_ int fd = raw_connect(http_server_port(s));

        raw_send(fd, "GET /short HTTP/1.1\r\n", 21);
        send_slowly_until_closed(fd, "X: y\r\n");
        ck_assert_uint_eq(ENDED("slow_headers"), 1);
        expect_answer(s);
        http_server_stop(s);
}
END_TEST

START_TEST(idle_connection_has_longer_timeout)
{
        struct http_server *s = start(8, 8);
        _cleanup_close_ int slow = raw_connect(http_server_port(s)), idle = raw_connect(http_server_port(s));

        send_request(idle);
        send_slowly_until_closed(slow, "X");
        send_request(idle);
        ck_assert_uint_eq(ENDED("slow_headers"), 1);
        http_server_stop(s);
}
END_TEST

START_TEST(slow_body_is_timed_out)
{
        static const char head[] = "POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n";
        struct http_server *s = start(8, 8);
        _cleanup_close_ int fd = raw_connect(http_server_port(s));

        raw_send(fd, head, strlen(head));
        send_slowly_until_closed(fd, "x");
        ck_assert_uint_eq(ENDED("slow_body"), 1);
        http_server_stop(s);
}
END_TEST

START_TEST(unread_response_is_timed_out)
{
        static const char request[] = "GET /long HTTP/1.1\r\nHost: x\r\n\r\n";
        struct http_server *s = start(8, 8);
        _cleanup_close_ int fd = raw_connect(http_server_port(s));
        unsigned beat;

        raw_send(fd, request, strlen(request));
        for (beat = 0; beat < PATIENCE_BEATS && !ENDED("slow_reader"); beat++)
                poll(NULL, 0, BEAT_MS);
        ck_assert_uint_eq(ENDED("slow_reader"), 1);
        http_server_stop(s);
}
END_TEST

START_TEST(slow_handler_is_not_timed_out)
{
        static const char request[] = "GET /wait HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        struct http_server *s = start(8, 8);
        _cleanup_close_ int waiting = raw_connect(http_server_port(s)), slow = raw_connect(http_server_port(s));
        _cleanup_free_ char *answer = NULL;

        atomic_store(&let_go, false);
        raw_send(waiting, request, strlen(request));
        send_slowly_until_closed(slow, "X");
        ck_assert(!is_closed(waiting, 2 * 1000));
        atomic_store(&let_go, true);
        answer = raw_read_all(waiting, NULL, NULL);
        ck_assert_int_eq(raw_status(answer), 200);
        http_server_stop(s);
}
END_TEST

START_TEST(handler_is_cancelled_when_client_disconnects)
{
        static const char request[] = "GET /work HTTP/1.1\r\nHost: x\r\n\r\n";
        struct http_server *s = start(8, 8);
        int fd = raw_connect(http_server_port(s));

        raw_send(fd, request, strlen(request));
        for (unsigned beat = 0; beat < PATIENCE_BEATS && !atomic_load(&arrived); beat++)
                poll(NULL, 0, BEAT_MS);
        ck_assert(!atomic_load(&stopped_for_client));
        close(fd);
        for (unsigned beat = 0; beat < PATIENCE_BEATS && !atomic_load(&stopped_for_client); beat++)
                poll(NULL, 0, BEAT_MS);
        ck_assert(atomic_load(&stopped_for_client));
        http_server_stop(s);
}
END_TEST

static void check_cancelled_when_client_leaves(const char *request)
{
        struct http_server *s = start(8, 8);
        int fd = raw_connect(http_server_port(s));

        raw_send(fd, request, strlen(request));
        for (unsigned beat = 0; beat < PATIENCE_BEATS && !atomic_load(&arrived); beat++)
                poll(NULL, 0, BEAT_MS);
        ck_assert(atomic_load(&arrived));
        ck_assert(!atomic_load(&was_cancelled));
        close(fd);
        for (unsigned beat = 0; beat < PATIENCE_BEATS && !atomic_load(&was_cancelled); beat++)
                poll(NULL, 0, BEAT_MS);
        ck_assert(atomic_load(&was_cancelled));
        http_server_stop(s);
}

START_TEST(cancel_flag_is_set_when_client_disconnects)
{
        check_cancelled_when_client_leaves("GET /poll HTTP/1.1\r\nHost: x\r\n\r\n");
}
END_TEST

START_TEST(cancel_flag_is_set_when_client_disconnects_between_chunks)
{
        check_cancelled_when_client_leaves("GET /pieces HTTP/1.1\r\nHost: x\r\n\r\n");
}
END_TEST

START_TEST(cancel_flag_is_set_when_server_stops)
{
        static const char request[] = "GET /poll HTTP/1.1\r\nHost: x\r\n\r\n";
        struct http_server *s = start(8, 8);
        int fd = raw_connect(http_server_port(s));

        raw_send(fd, request, strlen(request));
        for (unsigned beat = 0; beat < PATIENCE_BEATS && !atomic_load(&arrived); beat++)
                poll(NULL, 0, BEAT_MS);
        http_server_stop(s); /* waits for the handler */
        ck_assert(atomic_load(&was_cancelled));
        close(fd);
}
END_TEST

START_TEST(cancel_flag_is_set_at_time_limit_with_status_504)
{
        static const struct http_pool_options pool = { .name = "short", .threads = 1, .timeout_s = 1 };
        const struct http_options o = { .size = sizeof o, .host = "127.0.0.1", .pools = &pool, .pool_count = 1 };
        static const char request[] = "GET /poll HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        _cleanup_free_ char *answer = NULL;
        struct http_server *s;

        signal(SIGPIPE, SIG_IGN);
        ck_assert_int_eq(http_server_start(&o, routes, sizeof routes / sizeof *routes, NULL, &s, NULL), ST_OK);
        answer = raw_request(http_server_port(s), request);
        ck_assert_int_eq(raw_status(answer), 504);
        ck_assert_ptr_nonnull(strstr(answer, "time limit of 1 s"));
        http_server_stop(s);
}
END_TEST

#define BUSY(pool) "\ncairn_http_pool_busy{pool=\"" pool "\"} "
#define QUEUED(pool) "\ncairn_http_pool_queue{pool=\"" pool "\"} "
#define REJECTED(pool) read_counter("\ncairn_http_pool_rejected_total{pool=\"" pool "\"} ")

/* A thread takes a request from the queue after it was counted there, and is free after the client has its response. */
static void wait_for_gauge(const char *name, uint64_t value)
{
        for (unsigned beat = 0; beat < PATIENCE_BEATS && read_counter(name) != value; beat++)
                poll(NULL, 0, BEAT_MS);
        ck_assert_uint_eq(read_counter(name), value);
}

START_TEST(full_pool_refuses_requests_and_expires_queued_ones)
{
        static const char request[] = "GET /wait HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        static const struct http_pool_options pools[] = {
                { .name = "others" }, { .name = "narrow", .threads = 1, .queue_max = 2, .timeout_s = 1 }
        };
        static const struct http_route pooled[] = {
                { .method = "GET", .path = "/short", .handle = give_short },
                { .method = "GET", .path = "/wait", .handle = wait_long, .pool = 1 },
        };
        const struct http_options o = { .size = sizeof o, .host = "127.0.0.1", .pools = pools, .pool_count = 2 };
        _cleanup_free_ char *refused = NULL, *other = NULL;
        struct http_server *s;
        int64_t queued_at;
        int fds[3];

        signal(SIGPIPE, SIG_IGN);
        ck_assert_int_eq(http_server_start(&o, pooled, 2, NULL, &s, NULL), ST_OK);
        for (size_t i = 0; i < 3; i++) {
                fds[i] = raw_connect(http_server_port(s));
                raw_send(fds[i], request, strlen(request));
                wait_for_gauge(BUSY("narrow"), 1);
                wait_for_gauge(QUEUED("narrow"), i);
        }
        queued_at = monotonic_ns();
        refused = raw_request(http_server_port(s), request);
        ck_assert_int_eq(raw_status(refused), 503);
        ck_assert_ptr_nonnull(strstr(refused, "Retry-After: "));
        ck_assert_uint_eq(REJECTED("narrow"), 1);
        other = raw_request(http_server_port(s), LAST_REQUEST);
        ck_assert_int_eq(raw_status(other), 200);
        while (monotonic_ns() < queued_at + 1100000000ll) /* the deadlines of queued requests */
                poll(NULL, 0, BEAT_MS);
        atomic_store(&let_go, true);
        for (size_t i = 0; i < 3; i++) {
                _cleanup_free_ char *answer = raw_read_all(fds[i], NULL, NULL);

                ck_assert_int_eq(raw_status(answer), i ? 503 : 200);
                close(fds[i]);
        }
        ck_assert_uint_eq(atomic_load(&arrived), 1);
        http_server_stop(s);
}
END_TEST

/* The lane is that of the tenant named by the request. */
static void choose_lane(void *context, struct http_request *req)
{
        const char *tenant = http_header(req, "Tenant");

        (void)context;
        http_set_tenant(req, req, tenant && *tenant == 'b');
}

START_TEST(tenants_have_fair_shares_of_threads_and_queue)
{
        static const char wait[] = "GET /wait HTTP/1.1\r\nHost: x\r\nTenant: a\r\nConnection: close\r\n\r\n";
        static const char quick[] = "GET /short HTTP/1.1\r\nHost: x\r\nTenant: b\r\nConnection: close\r\n\r\n";
        static const struct http_pool_options pools[] = { { .name = "shared", .threads = 2, .queue_max = 2 } };
        static const struct http_route pooled[] = {
                { .method = "GET", .path = "/short", .scope = SCOPE_READ, .handle = give_short },
                { .method = "GET", .path = "/wait", .scope = SCOPE_READ, .handle = wait_long },
        };
        const struct http_options o = { .size = sizeof o,
                                        .host = "127.0.0.1",
                                        .pools = pools,
                                        .pool_count = 1,
                                        .lanes = 2,
                                        .choose_tenant = choose_lane };
        _cleanup_free_ char *refused = NULL, *other = NULL;
        struct http_server *s;
        int fds[3];

        signal(SIGPIPE, SIG_IGN);
        ck_assert_int_eq(http_server_start(&o, pooled, 2, NULL, &s, NULL), ST_OK);
        for (size_t i = 0; i < 3; i++) {
                fds[i] = raw_connect(http_server_port(s));
                raw_send(fds[i], wait, strlen(wait));
                wait_for_gauge(BUSY("shared"), 1);
                wait_for_gauge(QUEUED("shared"), i);
        }
        refused = raw_request(http_server_port(s), wait);
        ck_assert_int_eq(raw_status(refused), 503);
        other = raw_request(http_server_port(s), quick);
        ck_assert_int_eq(raw_status(other), 200);
        atomic_store(&let_go, true);
        for (size_t i = 0; i < 3; i++) {
                _cleanup_free_ char *answer = raw_read_all(fds[i], NULL, NULL);

                ck_assert_int_eq(raw_status(answer), 200);
                close(fds[i]);
        }
        http_server_stop(s);
}
END_TEST

/* One sender holds all its requests; the request of another, in the same lane, is answered meanwhile. */
START_TEST(senders_have_fair_shares_of_threads_and_queue)
{
        static const char wait[] = "GET /wait HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer one\r\n"
                                   "Connection: close\r\n\r\n";
        static const char quick[] = "GET /short HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer two\r\n"
                                    "Connection: close\r\n\r\n";
        static const struct http_pool_options pools[] = {
                { .name = "fair", .threads = 2, .queue_max = 4, .spare = 1 }
        };
        static const struct http_route pooled[] = {
                { .method = "GET", .path = "/short", .handle = give_short },
                { .method = "GET", .path = "/wait", .handle = wait_long },
        };
        const struct http_options o = { .size = sizeof o, .host = "127.0.0.1", .pools = pools, .pool_count = 1 };
        _cleanup_free_ char *refused = NULL, *other = NULL;
        struct http_server *s;
        int fds[5];

        signal(SIGPIPE, SIG_IGN);
        ck_assert_int_eq(http_server_start(&o, pooled, 2, NULL, &s, NULL), ST_OK);
        for (size_t i = 0; i < 5; i++) {
                fds[i] = raw_connect(http_server_port(s));
                raw_send(fds[i], wait, strlen(wait));
                wait_for_gauge(BUSY("fair"), i < 2 ? i + 1 : 2);
                wait_for_gauge(QUEUED("fair"), i < 2 ? 0 : i - 1);
        }
        refused = raw_request(http_server_port(s), wait);
        ck_assert_int_eq(raw_status(refused), 503);
        other = raw_request(http_server_port(s), quick);
        ck_assert_int_eq(raw_status(other), 200);
        wait_for_gauge(BUSY("fair"), 2);
        atomic_store(&let_go, true);
        for (size_t i = 0; i < 5; i++) {
                _cleanup_free_ char *answer = raw_read_all(fds[i], NULL, NULL);

                ck_assert_int_eq(raw_status(answer), 200);
                close(fds[i]);
        }
        http_server_stop(s);
}
END_TEST

START_TEST(new_connection_over_address_limit_replaces_longest_idle)
{
        struct http_server *s = start(64, 4);
        int fds[5];

        for (size_t i = 0; i < 4; i++)
                send_request(fds[i] = raw_connect(http_server_port(s)));
        send_request(fds[0]); /* so that the second one has been idle longest */
        send_request(fds[4] = raw_connect(http_server_port(s)));
        ck_assert(is_closed(fds[1], 20 * 1000));
        ck_assert_uint_eq(ENDED("room"), 1);
        send_request(fds[0]);
        send_request(fds[2]);
        for (size_t i = 0; i < 5; i++)
                close(fds[i]);
        http_server_stop(s);
}
END_TEST

START_TEST(active_requests_are_not_replaced)
{
        static const char request[] = "GET /wait HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        struct http_server *s = start(64, 2);
        _cleanup_close_ int newcomer = -1;
        int fds[2];

        for (size_t i = 0; i < 2; i++) {
                fds[i] = raw_connect(http_server_port(s));
                raw_send(fds[i], request, strlen(request));
        }
        for (unsigned beat = 0; beat < PATIENCE_BEATS && atomic_load(&arrived) < 2; beat++)
                poll(NULL, 0, BEAT_MS);
        newcomer = raw_connect(http_server_port(s));
        ck_assert(is_closed(newcomer, 20 * 1000));
        ck_assert_uint_eq(REFUSED("address"), 1);
        atomic_store(&let_go, true);
        for (size_t i = 0; i < 2; i++) {
                _cleanup_free_ char *answer = raw_read_all(fds[i], NULL, NULL);

                ck_assert_int_eq(raw_status(answer), 200);
                close(fds[i]);
        }
        http_server_stop(s);
}
END_TEST

START_TEST(new_connection_replaces_slow_one_if_none_is_idle)
{
        static const char head[] = "POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n";
        const struct http_options o = {
                .size = sizeof o, .host = "127.0.0.1", .max_connections = 64, .max_per_address = 1, .slow_s = 600
        };
        struct http_server *s;
        _cleanup_close_ int fd = -1;
        int status = 0;

        signal(SIGPIPE, SIG_IGN);
        ck_assert_int_eq(http_server_start(&o, routes, sizeof routes / sizeof *routes, NULL, &s, NULL), ST_OK);
        fd = raw_connect(http_server_port(s));
        raw_send(fd, head, strlen(head));
        for (unsigned beat = 0; beat < PATIENCE_BEATS && status != 200; beat++) {
                _cleanup_free_ char *answer = NULL;

                poll(NULL, 0, BEAT_MS);
                if (is_closed(fd, 0)) { /* it was considered idle */
                        close(fd);
                        fd = raw_connect(http_server_port(s));
                        raw_send(fd, head, strlen(head));
                        continue;
                }
                answer = raw_request(http_server_port(s), LAST_REQUEST);
                status = raw_status(answer);
        }
        ck_assert_int_eq(status, 200);
        ck_assert_uint_ge(REFUSED("address"), 1);
        ck_assert(is_closed(fd, 20 * 1000));
        http_server_stop(s);
}
END_TEST

START_TEST(address_that_uses_all_connections_yields_to_another)
{
        struct http_server *s = start(8, 8);
        unsigned ended = 0;
        int fds[8];

        for (size_t i = 0; i < 8; i++)
                send_request(fds[i] = raw_connect(http_server_port(s)));
        _cleanup_close_ int other = connect_from_address("127.0.0.2", http_server_port(s));
        send_request(other);
        send_request(other);
        ck_assert_uint_eq(ENDED("room"), 1);
        for (size_t i = 0; i < 8; i++) {
                ended += is_closed(fds[i], 0);
                close(fds[i]);
        }
        ck_assert_uint_eq(ended, 1);
        http_server_stop(s);
}
END_TEST

START_TEST(closed_connections_are_removed)
{
        struct http_server *s = start(512, 512);
        unsigned beat;

        for (size_t i = 0; i < 400; i++) {
                int fd = raw_connect(http_server_port(s));

                raw_send(fd, "GET /short HTTP/1.1\r\n", 21);
                close(fd);
        }
        expect_answer(s);
        for (beat = 0; beat < PATIENCE_BEATS && OPEN_NOW; beat++)
                poll(NULL, 0, BEAT_MS);
        ck_assert_uint_eq(OPEN_NOW, 0);
        http_server_stop(s);
}
END_TEST

START_TEST(thousand_idle_connections_are_limited_and_block_no_others)
{
        enum { MANY = 1000, MOST = 100, SERVED = MOST + MOST / 8 + 64, OTHERS = 60 };
        struct http_server *s = start(MOST, MOST);
        size_t many = MANY;
        struct rlimit l;
        int fds[MANY];

        /* This process is also the server. */
        ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &l), 0);
        if (l.rlim_cur < MANY + SERVED + OTHERS)
                many = l.rlim_cur - SERVED - OTHERS;
        ck_assert_uint_gt(many, SERVED + 511);
        for (size_t i = 0; i < many; i++)
                fds[i] = raw_connect(http_server_port(s));
        expect_answer(s);
        ck_assert_uint_le(OPEN_NOW, SERVED);
        ck_assert_uint_ge(ENDED("room"), many - SERVED - 511); /* the last ones may not be accepted yet */
        for (size_t i = 0; i < many; i++)
                close(fds[i]);
        http_server_stop(s);
}
END_TEST

TEST_SUITE("http_connections", slow_headers_are_timed_out, idle_connection_has_longer_timeout, slow_body_is_timed_out,
           unread_response_is_timed_out, slow_handler_is_not_timed_out, handler_is_cancelled_when_client_disconnects,
           cancel_flag_is_set_when_client_disconnects, cancel_flag_is_set_when_client_disconnects_between_chunks,
           cancel_flag_is_set_when_server_stops, cancel_flag_is_set_at_time_limit_with_status_504,
           full_pool_refuses_requests_and_expires_queued_ones, tenants_have_fair_shares_of_threads_and_queue,
           senders_have_fair_shares_of_threads_and_queue, new_connection_over_address_limit_replaces_longest_idle,
           active_requests_are_not_replaced, new_connection_replaces_slow_one_if_none_is_idle,
           address_that_uses_all_connections_yields_to_another, closed_connections_are_removed,
           thousand_idle_connections_are_limited_and_block_no_others)
