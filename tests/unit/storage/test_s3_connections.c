/* SPDX-License-Identifier: Apache-2.0 */
/* Connections to an object store: after many requests at once, a bounded number stays open. */
#include <arpa/inet.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "storage/s3/s3_client.h"
#include "tests/support/suite.h"

#define AT_ONCE (S3_IDLE_CONNECTIONS_MAX + 8)

static pthread_barrier_t asked; /* by all */
static _Atomic unsigned closed;

/* Answers each request once as many came, which therefore have a connection each. */
static void *serve_connection(void *context)
{
        static const char answer[] = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
        int fd = (int)(intptr_t)context;
        char request[4096];

        while (read(fd, request, sizeof request) > 0) {
                pthread_barrier_wait(&asked);
                ck_assert_int_eq(write(fd, answer, sizeof answer - 1), sizeof answer - 1);
        }
        close(fd);
        closed++;
        return NULL;
}

static void *accept_connections(void *context)
{
        int listening = (int)(intptr_t)context;
        pthread_t threads[AT_ONCE];

        for (size_t i = 0; i < AT_ONCE; i++) {
                int fd = accept(listening, NULL, NULL);

                ck_assert_int_ge(fd, 0);
                ck_assert(pthread_create(&threads[i], NULL, serve_connection, (void *)(intptr_t)fd) == 0);
        }
        for (size_t i = 0; i < AT_ONCE; i++)
                pthread_join(threads[i], NULL);
        return NULL;
}

static void *ask_for_key(void *client)
{
        const struct s3_request request = { .method = "HEAD", .key = "key" };
        struct s3_response response;
        struct error err;

        ck_assert_int_eq(s3_send(client, &request, &response, &err), ST_NOT_FOUND);
        s3_response_deinit(&response);
        return NULL;
}

static int listen_on_loopback(unsigned *port_ret)
{
        struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        socklen_t size = sizeof a;
        int fd = socket(AF_INET, SOCK_STREAM, 0);

        ck_assert_int_eq(bind(fd, (struct sockaddr *)&a, size), 0);
        ck_assert_int_eq(listen(fd, AT_ONCE), 0);
        ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&a, &size), 0);
        *port_ret = ntohs(a.sin_port);
        return fd;
}

START_TEST(connections_beyond_those_kept_are_closed)
{
        pthread_t server, askers[AT_ONCE];
        struct s3_client *client;
        struct error err;
        char url[64];
        unsigned port;
        int listening = listen_on_loopback(&port);

        snprintf(url, sizeof url, "http://127.0.0.1:%u", port);
        setenv("AWS_ENDPOINT_URL_S3", url, 1);
        setenv("AWS_REGION", "region", 1);
        setenv("AWS_ACCESS_KEY_ID", "key", 1);
        setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
        pthread_barrier_init(&asked, NULL, AT_ONCE);
        ck_assert(pthread_create(&server, NULL, accept_connections, (void *)(intptr_t)listening) == 0);
        check_ok(s3_client_create("s3://bucket/prefix", NULL, &client, &err), &err);
        for (size_t i = 0; i < AT_ONCE; i++)
                ck_assert(pthread_create(&askers[i], NULL, ask_for_key, client) == 0);
        for (size_t i = 0; i < AT_ONCE; i++)
                pthread_join(askers[i], NULL);
        while (closed < AT_ONCE - S3_IDLE_CONNECTIONS_MAX)
                sched_yield();
        ck_assert_uint_eq(closed, AT_ONCE - S3_IDLE_CONNECTIONS_MAX);
        s3_client_destroy(client);
        pthread_join(server, NULL);
        ck_assert_uint_eq(closed, AT_ONCE);
        close(listening);
}
END_TEST

TEST_SUITE("connections of S3", connections_beyond_those_kept_are_closed)
