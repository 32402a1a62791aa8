/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "common/cleanup.h"
#include "http/server.h"
#include "tests/support/http_raw.h"
#include "tests/support/suite.h"

#define CLIENTS 8
#define REQUESTS 25

static atomic_int served, waiting;

static void echo(struct http_request *req, void *context)
{
        size_t n;
        const uint8_t *body = http_body(req, &n);

        (void)context;
        atomic_fetch_add(&served, 1);
        http_respond(req, 200, "text/plain", body, n);
}

/* Waits for the end of the server, as a request to an upstream may. */
static void wait_for_end(struct http_request *req, void *context)
{
        (void)context;
        atomic_fetch_add(&waiting, 1);
        while (!atomic_load(http_server_stopping(req)))
                usleep(1000);
        http_reset(req);
}

static const struct http_route routes[] = {
        { .method = "POST", .path = "/echo", .max_body = 1000, .handle = echo },
        { .method = "GET", .path = "/wait", .slow = true, .handle = wait_for_end },
};

static struct http_server *start(void)
{
        struct http_options o = { .size = sizeof o, .host = "127.0.0.1", .slow_threads = 4 };
        struct http_server *s = NULL;
        struct error err = { 0 };

        signal(SIGPIPE, SIG_IGN);
        ck_assert_msg(http_server_start(&o, routes, 2, NULL, &s, &err) == ST_OK, "%s", err.text);
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

START_TEST(many_clients_get_their_own_answers)
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

START_TEST(slow_requests_do_not_stand_in_the_way_and_end_with_the_server)
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

TEST_SUITE("threads_http", many_clients_get_their_own_answers,
           slow_requests_do_not_stand_in_the_way_and_end_with_the_server)
