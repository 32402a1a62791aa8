/* SPDX-License-Identifier: Apache-2.0 */
/* The sender against a service that answers what it is told to. */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/sender.h"
#include "common/limits.h"
#include "tests/support/suite.h"

#define POSTS_MAX 64

struct service {
        int fd;
        unsigned short port;
        const int *codes; /* one for each post, 0 ends; after them 200 */
        pthread_t thread;
        pthread_mutex_t lock;
        char ids[POSTS_MAX][33];
        int count;
};

/* Read one request of a connection to its end; false when the connection is over. */
static bool read_request(int fd, char id_ret[33])
{
        char head[4096], *at;
        size_t size = 0, body;

        for (;;) {
                ssize_t n = read(fd, head + size, sizeof head - 1 - size);

                if (n <= 0)
                        return false;
                size += (size_t)n;
                head[size] = 0;
                at = strstr(head, "\r\n\r\n");
                if (at)
                        break;
        }
        body = strtoul(strcasestr(head, "Content-Length:") + 15, NULL, 10);
        memcpy(id_ret, strstr(head, "X-Cairn-Batch: ") + 15, 32);
        id_ret[32] = 0;
        for (size_t have = size - (size_t)(at + 4 - head); have < body;) {
                char rest[4096];
                ssize_t n = read(fd, rest, sizeof rest);

                if (n <= 0)
                        return false;
                have += (size_t)n;
        }
        return true;
}

static void *serve(void *arg)
{
        struct service *s = arg;

        for (;;) {
                int fd = accept(s->fd, NULL, NULL);
                char id[33], answer[128];

                if (fd < 0)
                        return NULL;
                while (read_request(fd, id)) {
                        int code = *s->codes ? *s->codes++ : 200, n;

                        pthread_mutex_lock(&s->lock);
                        if (s->count < POSTS_MAX)
                                memcpy(s->ids[s->count++], id, sizeof id);
                        pthread_mutex_unlock(&s->lock);
                        n = snprintf(answer, sizeof answer, "HTTP/1.1 %d x\r\nContent-Length: 0\r\n\r\n", code);
                        if (write(fd, answer, (size_t)n) != n)
                                break;
                }
                close(fd);
        }
}

static void service_start(struct service *s, const int *codes)
{
        struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        socklen_t n = sizeof a;

        *s = (struct service){ .codes = codes, .fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) };
        pthread_mutex_init(&s->lock, NULL);
        ck_assert_int_eq(bind(s->fd, (struct sockaddr *)&a, sizeof a), 0);
        ck_assert_int_eq(listen(s->fd, 8), 0);
        ck_assert_int_eq(getsockname(s->fd, (struct sockaddr *)&a, &n), 0);
        s->port = ntohs(a.sin_port);
        ck_assert_int_eq(pthread_create(&s->thread, NULL, serve, s), 0);
}

static void service_stop(struct service *s)
{
        shutdown(s->fd, SHUT_RDWR);
        pthread_join(s->thread, NULL);
        close(s->fd);
        pthread_mutex_destroy(&s->lock);
}

static struct sender *sender_to(unsigned short port)
{
        char url[64];
        const struct sender_options o = { .server = url };
        struct sender *s = NULL;
        struct error err;

        snprintf(url, sizeof url, "http://127.0.0.1:%u", port);
        ck_assert_msg(sender_create(&o, &s, &err) == ST_OK, "%s", err.text);
        return s;
}

static void put(struct sender *s, const char *text)
{
        struct error err;

        ck_assert_msg(sender_put(s, text, strlen(text), &err) == ST_OK, "%s", err.text);
}

START_TEST(a_batch_is_sent_with_one_id_until_it_is_taken)
{
        static const int codes[] = { 503, 429, 200, 0 };
        struct sender_stats stats;
        struct service service;
        struct sender *s;
        struct error err;

        service_start(&service, codes);
        s = sender_to(service.port);
        put(s, "first");
        put(s, "second");
        ck_assert_msg(sender_flush(s, 30000, &err) == ST_OK, "%s", err.text);
        sender_stats(s, &stats);
        ck_assert_uint_eq(stats.sent, 2);
        ck_assert_uint_eq(stats.retried, 2);
        ck_assert_uint_eq(stats.queued, 0);
        ck_assert_uint_eq(stats.queued_bytes, 0);
        sender_destroy(s);
        service_stop(&service);
        ck_assert_int_eq(service.count, 4);
        ck_assert_str_eq(service.ids[0], service.ids[1]);
        ck_assert_str_eq(service.ids[0], service.ids[2]);
        ck_assert_str_ne(service.ids[0], service.ids[3]);
}
END_TEST

START_TEST(a_refused_batch_does_not_hold_up_the_next)
{
        static const int codes[] = { 400, 0 };
        struct sender_stats stats;
        struct service service;
        struct sender *s;
        struct error err;

        service_start(&service, codes);
        s = sender_to(service.port);
        put(s, "broken");
        put(s, "fine");
        ck_assert_int_eq(sender_flush(s, 30000, &err), ST_OK);
        sender_stats(s, &stats);
        ck_assert_uint_eq(stats.sent, 1);
        ck_assert_uint_eq(stats.refused, 1);
        sender_destroy(s);
        service_stop(&service);
        ck_assert_int_eq(service.count, 2);
}
END_TEST

START_TEST(a_flush_ends_the_pause_of_a_sender_that_waits)
{
        static const int codes[] = { 503, 503, 503, 503, 200, 0 };
        struct service service;
        struct sender_stats stats;
        struct sender *s;
        struct error err;

        service_start(&service, codes);
        s = sender_to(service.port);
        put(s, "late");
        (void)!sender_flush(s, 1, &err);
        /* Pauses doubled without end would take 0.5 + 1 + 2 + 4 seconds. */
        ck_assert_msg(sender_flush(s, 6000, &err) == ST_OK, "%s", err.text);
        sender_stats(s, &stats);
        ck_assert_uint_eq(stats.retried, 4);
        sender_destroy(s);
        service_stop(&service);
}
END_TEST

/* A port that nobody listens on. */
static unsigned short closed_port(void)
{
        static const int codes[] = { 0 };
        struct service service;

        service_start(&service, codes);
        service_stop(&service);
        return service.port;
}

START_TEST(without_a_service_batches_wait_and_flush_says_so)
{
        struct sender *s = sender_to(closed_port());
        struct sender_stats stats;
        struct error err = { 0 };

        put(s, "one");
        put(s, "two");
        ck_assert_int_eq(sender_flush(s, 300, &err), ST_BUSY);
        ck_assert_msg(strncmp(err.text, "2 batches could not be sent", 27) == 0, "%s", err.text);
        sender_stats(s, &stats);
        ck_assert_uint_eq(stats.queued, 2);
        ck_assert_uint_eq(stats.sent, 0);
        sender_destroy(s); /* at once, although it waits to send again */
}
END_TEST

START_TEST(a_full_queue_drops_the_oldest_and_counts_them)
{
        struct sender *s = sender_to(closed_port());
        size_t size = LIMIT_AGENT_QUEUE_BYTES / 3;
        uint8_t *noise = malloc(size);
        struct sender_stats stats;
        struct error err;

        srand(3);
        for (size_t i = 0; i < size; i++)
                noise[i] = (uint8_t)(rand() >> 7);
        for (int i = 0; i < 5; i++)
                ck_assert_msg(sender_put(s, noise, size, &err) == ST_OK, "%s", err.text);
        sender_stats(s, &stats);
        ck_assert_uint_le(stats.queued_bytes, LIMIT_AGENT_QUEUE_BYTES);
        ck_assert_uint_eq(stats.queued + stats.dropped, 5);
        ck_assert_uint_ge(stats.dropped, 2);
        free(noise);
        sender_destroy(s);
}
END_TEST

TEST_SUITE("threads_agent_sender", a_batch_is_sent_with_one_id_until_it_is_taken,
           a_refused_batch_does_not_hold_up_the_next, a_flush_ends_the_pause_of_a_sender_that_waits,
           without_a_service_batches_wait_and_flush_says_so,
           a_full_queue_drops_the_oldest_and_counts_them)
