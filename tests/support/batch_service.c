/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/batch_service.h"

#include <arpa/inet.h>
#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Reads one request of a connection; false at the end of the connection. */
static bool read_request(int fd, struct batch_post *ret)
{
        char head[4096], *at;
        size_t size = 0, have;

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
        ret->size = strtoul(strcasestr(head, "Content-Length:") + 15, NULL, 10);
        ret->body = malloc(ret->size + 1);
        memcpy(ret->id, strstr(head, "X-Cairn-Batch: ") + 15, 32);
        ret->id[32] = 0;
        at += 4;
        have = size - (size_t)(at - head);
        memcpy(ret->body, at, have);
        while (have < ret->size) {
                ssize_t n = read(fd, ret->body + have, ret->size - have);

                if (n <= 0) {
                        free(ret->body);
                        return false;
                }
                have += (size_t)n;
        }
        return true;
}

static bool send_answer(struct batch_service *s, int fd, struct batch_post *post)
{
        const struct batch_answer *a = s->answers, fine = { .code = 200 };
        const char *body;
        char text[1024];
        int n;

        if (a->code == -1)
                a = &fine;
        else
                s->answers++;
        post->code = a->code;
        pthread_mutex_lock(&s->lock);
        ck_assert_uint_lt(s->count, BATCH_POSTS_MAX);
        s->posts[s->count++] = *post;
        pthread_mutex_unlock(&s->lock);
        if (!a->code)
                return false;
        body = a->body ? a->body : "";
        n = snprintf(text, sizeof text, "HTTP/1.1 %d x\r\n%sContent-Length: %zu\r\n\r\n%s", a->code,
                     a->headers ? a->headers : "", strlen(body), body);
        return write(fd, text, (size_t)n) == n;
}

static void *serve_connections(void *arg)
{
        struct batch_service *s = arg;

        for (;;) {
                int fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC);
                struct batch_post post = { 0 };

                if (fd < 0)
                        return NULL;
                while (read_request(fd, &post) && send_answer(s, fd, &post))
                        post = (struct batch_post){ 0 };
                close(fd);
        }
}

void batch_service_start(struct batch_service *s, const struct batch_answer *answers)
{
        struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        socklen_t n = sizeof a;

        memset(s, 0, sizeof *s);
        s->answers = answers;
        s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        pthread_mutex_init(&s->lock, NULL);
        ck_assert_int_eq(bind(s->fd, (struct sockaddr *)&a, sizeof a), 0);
        ck_assert_int_eq(listen(s->fd, 8), 0);
        ck_assert_int_eq(getsockname(s->fd, (struct sockaddr *)&a, &n), 0);
        s->port = ntohs(a.sin_port);
        snprintf(s->url, sizeof s->url, "http://127.0.0.1:%u", s->port);
        ck_assert_int_eq(pthread_create(&s->thread, NULL, serve_connections, s), 0);
}

void batch_service_stop(struct batch_service *s)
{
        shutdown(s->fd, SHUT_RDWR);
        pthread_join(s->thread, NULL);
        close(s->fd);
}

void batch_service_deinit(struct batch_service *s)
{
        for (size_t i = 0; i < s->count; i++)
                free(s->posts[i].body);
        pthread_mutex_destroy(&s->lock);
}

size_t batch_service_count(struct batch_service *s)
{
        size_t n;

        pthread_mutex_lock(&s->lock);
        n = s->count;
        pthread_mutex_unlock(&s->lock);
        return n;
}

size_t batch_service_taken(struct batch_service *s)
{
        size_t n = 0;

        pthread_mutex_lock(&s->lock);
        for (size_t i = 0; i < s->count; i++) {
                bool fresh = s->posts[i].code == 200 || s->posts[i].code == 0;

                for (size_t k = 0; k < i && fresh; k++)
                        fresh = strcmp(s->posts[k].id, s->posts[i].id) != 0 ||
                                (s->posts[k].code != 200 && s->posts[k].code != 0);
                n += fresh;
        }
        pthread_mutex_unlock(&s->lock);
        return n;
}

unsigned short batch_service_closed_port(void)
{
        struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        socklen_t n = sizeof a;
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0); /* kept, so that no other process gets the port */

        ck_assert_int_eq(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
        ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&a, &n), 0);
        return ntohs(a.sin_port);
}
