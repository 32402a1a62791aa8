/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "common/cleanup.h"
#include "common/limits.h"
#include "http/http_server.h"
#include "tests/support/http_raw.h"
#include "tests/support/suite.h"

#define CLIENTS 8
#define REQUESTS 25

#define TURNS 40

static atomic_int served, waiting, turns;
static atomic_bool go_on;

static void echo(struct http_request *req)
{
        size_t n;
        const uint8_t *body = http_body(req, &n);

        atomic_fetch_add(&served, 1);
        http_respond(req, 200, "text/plain", body, n);
}

/* Waits for the end of the server, like a request to an upstream. */
static void wait_for_end(struct http_request *req)
{
        atomic_fetch_add(&waiting, 1);
        while (!atomic_load(http_server_stopping(req)))
                usleep(1000);
        http_reset_connection(req);
}

/* Waits for the next number in the query, like a service that forwards a request to another which forwards it back. */
static void wait_for_turn(struct http_request *req)
{
        int turn = (int)strtol(http_query(req, "turn"), NULL, 10);
        struct error err;

        atomic_fetch_add(&waiting, 1);
        ck_assert_int_eq(http_begin_wait(&err), ST_OK);
        while (atomic_load(&turns) > turn)
                usleep(1000);
        http_end_wait();
        atomic_store(&turns, turn - 1);
        http_respond(req, 200, "text/plain", "done", 4);
}

/* The maximum number of waiting requests; the next one is refused. */
static void wait_with_many(struct http_request *req)
{
        struct error err;

        if (http_begin_wait(&err)) {
                http_fail(req, ST_BUSY, &err);
                return;
        }
        atomic_fetch_add(&waiting, 1);
        while (!atomic_load(&go_on))
                usleep(1000);
        http_end_wait();
        http_respond(req, 200, "text/plain", "done", 4);
}

static const struct http_route routes[] = {
        { .method = "POST", .path = "/echo", .max_body = 1000, .handle = echo },
        { .method = "GET", .path = "/wait", .pool = 1, .handle = wait_for_end },
        { .method = "GET", .path = "/turn", .pool = 1, .handle = wait_for_turn },
        { .method = "GET", .path = "/many", .pool = 1, .handle = wait_with_many },
};

static struct http_server *start(void)
{
        static const struct http_pool_options pools[] = { { .name = "http" }, { .name = "slow", .threads = 4 } };
        struct http_options o = { .size = sizeof o,
                                  .host = "127.0.0.1",
                                  .pools = pools,
                                  .pool_count = 2,
                                  .max_per_address = 2 * LIMIT_HTTP_WAITING }; /* all clients have the same address */
        struct http_server *s = NULL;
        struct error err = { 0 };

        signal(SIGPIPE, SIG_IGN);
        ck_assert_msg(http_server_start(&o, routes, sizeof routes / sizeof *routes, NULL, &s, &err) == ST_OK, "%s",
                      err.text);
        return s;
}

static void *client(void *arg)
{
        uint16_t port = *(const uint16_t *)arg;

        for (int i = 0; i < REQUESTS; i++) {
                char request[200], want[32];
                _cleanup_free_ char *answer = NULL;

                snprintf(want, sizeof want, "body %06d", i);
                snprintf(request, sizeof request,
                         "POST /echo HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 11\r\n\r\n%s", want);
                answer = raw_request(port, request);
                if (strcmp(raw_body(answer), want) != 0)
                        return answer;
        }
        return NULL;
}

START_TEST(many_clients_get_their_own_responses)
{
        struct http_server *s = start();
        uint16_t port = http_server_port(s);
        pthread_t threads[CLIENTS];

        for (int i = 0; i < CLIENTS; i++)
                ck_assert_int_eq(pthread_create(&threads[i], NULL, client, &port), 0);
        for (int i = 0; i < CLIENTS; i++) {
                void *wrong;

                pthread_join(threads[i], &wrong);
                ck_assert_ptr_null(wrong);
        }
        http_server_stop(s);
        ck_assert_int_eq(atomic_load(&served), CLIENTS * REQUESTS);
}
END_TEST

static void *waiter(void *arg)
{
        free(raw_request(*(const uint16_t *)arg, "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n"));
        return NULL;
}

START_TEST(slow_requests_do_not_block_others_and_end_with_server)
{
        struct http_server *s = start();
        uint16_t port = http_server_port(s);
        pthread_t threads[4];

        for (int i = 0; i < 4; i++)
                ck_assert_int_eq(pthread_create(&threads[i], NULL, waiter, &port), 0);
        while (atomic_load(&waiting) < 4)
                usleep(1000);
        ck_assert_ptr_null(client(&port));
        http_server_stop(s);
        for (int i = 0; i < 4; i++)
                pthread_join(threads[i], NULL);
}
END_TEST

static char *send_request(uint16_t port, const char *path)
{
        char request[100];

        snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", path);
        return raw_request(port, request);
}

struct asker {
        pthread_t thread;
        uint16_t port;
        char path[32];
        int code;
};

static void *run_asker(void *arg)
{
        struct asker *a = arg;
        _cleanup_free_ char *answer = send_request(a->port, a->path);

        a->code = raw_status(answer);
        return NULL;
}

static void start_asker(struct asker *a, uint16_t port, const char *path)
{
        a->port = port;
        snprintf(a->path, sizeof a->path, "%s", path);
        ck_assert_int_eq(pthread_create(&a->thread, NULL, run_asker, a), 0);
}

/* Four threads run concurrently. The request for which all others wait arrives last. */
START_TEST(waiting_requests_do_not_use_up_threads)
{
        struct http_server *s = start();
        struct asker askers[TURNS];

        atomic_store(&turns, TURNS - 1);
        atomic_store(&waiting, 0);
        for (int i = 0; i < TURNS; i++) {
                char path[32];

                snprintf(path, sizeof path, "/turn?turn=%d", i);
                start_asker(&askers[i], http_server_port(s), path);
                while (atomic_load(&waiting) == i)
                        usleep(1000);
        }
        for (int i = 0; i < TURNS; i++) {
                pthread_join(askers[i].thread, NULL);
                ck_assert_int_eq(askers[i].code, 200);
        }
        http_server_stop(s);
}
END_TEST

START_TEST(number_of_waiting_requests_is_limited)
{
        static struct asker askers[LIMIT_HTTP_WAITING];
        struct http_server *s = start();
        _cleanup_free_ char *refused = NULL, *after = NULL;

        atomic_store(&waiting, 0);
        for (int i = 0; i < LIMIT_HTTP_WAITING; i++)
                start_asker(&askers[i], http_server_port(s), "/many");
        while (atomic_load(&waiting) < LIMIT_HTTP_WAITING)
                usleep(1000);
        refused = send_request(http_server_port(s), "/many");
        ck_assert_int_eq(raw_status(refused), 503);
        atomic_store(&go_on, true);
        for (int i = 0; i < LIMIT_HTTP_WAITING; i++) {
                pthread_join(askers[i].thread, NULL);
                ck_assert_int_eq(askers[i].code, 200);
        }
        after = send_request(http_server_port(s), "/many");
        ck_assert_int_eq(raw_status(after), 200);
        http_server_stop(s);
}
END_TEST

TEST_SUITE("threads_http", waiting_requests_do_not_use_up_threads, number_of_waiting_requests_is_limited,
           many_clients_get_their_own_responses, slow_requests_do_not_block_others_and_end_with_server)
