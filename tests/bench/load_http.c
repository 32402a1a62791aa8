/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An HTTP client that needs less CPU time than the servers under test:
 *
 *      load_http PORT CONNECTIONS REQUESTS < paths
 *
 * requests the paths from 127.0.0.1, one per line, cyclically, over this many concurrent keep-alive connections. Bodies
 * are counted and discarded in the kernel, not copied. Prints wall clock and own CPU seconds, bytes of successful
 * responses, and the numbers of 200 and 404 responses; fails on any other status.
 */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/limits.h"

#define CONNECTIONS_MAX 256
#define PATHS_MAX 65536
#define HEAD_BYTES KiB(4)

struct connection {
        char head[HEAD_BYTES + 1];
        size_t head_size;
        bool in_body, found;
        uint64_t left; /* remaining bytes of the body */
};

static struct connection connections[CONNECTIONS_MAX];
static struct pollfd polled[CONNECTIONS_MAX];
static char *paths[PATHS_MAX];
static size_t path_count, asked, answered, limit, code_200, code_404;
static uint64_t body_bytes;

static void die(const char *what)
{
        fprintf(stderr, "load_http: %s\n", what);
        exit(1);
}

static void read_paths(void)
{
        char line[LIMIT_PATH_BYTES];

        while (path_count < PATHS_MAX && fgets(line, sizeof line, stdin)) {
                line[strcspn(line, "\n")] = 0;
                paths[path_count] = strdup(line);
                if (!paths[path_count++])
                        die("no memory");
        }
        if (path_count == 0)
                die("no paths on standard input");
}

static int connect_to(uint16_t port)
{
        struct sockaddr_in to = { .sin_family = AF_INET,
                                  .sin_port = htons(port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

        if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) < 0)
                die("cannot connect");
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        return fd;
}

static void send_request(size_t i)
{
        char text[LIMIT_PATH_BYTES + 128];
        int n;

        if (asked == limit) {
                polled[i].fd = -1 - polled[i].fd; /* ignored by poll() */
                return;
        }
        n = snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: */*\r\n\r\n",
                     paths[asked++ % path_count]);
        connections[i].head_size = 0;
        connections[i].in_body = false;
        if (send(polled[i].fd, text, (size_t)n, MSG_NOSIGNAL) != n)
                die("cannot send");
}

static void count_body(size_t i, uint64_t n)
{
        struct connection *c = &connections[i];

        if (n > c->left)
                die("an answer is longer than it says");
        body_bytes += c->found ? n : 0;
        c->left -= n;
        if (c->left)
                return;
        answered++;
        send_request(i);
}

static void read_head(size_t i)
{
        struct connection *c = &connections[i];
        ssize_t n = recv(polled[i].fd, c->head + c->head_size, HEAD_BYTES - c->head_size, MSG_DONTWAIT);
        char *end, *length;
        unsigned code;

        if (n <= 0)
                die("a connection ended before its answer");
        c->head_size += (size_t)n;
        c->head[c->head_size] = 0;
        end = strstr(c->head, "\r\n\r\n");
        if (!end)
                return;
        *end = 0;
        length = strcasestr(c->head, "\r\nContent-Length:");
        if (!length || sscanf(c->head, "HTTP/1.1 %u", &code) != 1)
                die("an answer has no length");
        if (code != 200 && code != 404)
                die(c->head);
        c->found = code == 200;
        *(c->found ? &code_200 : &code_404) += 1;
        c->in_body = true;
        c->left = strtoull(strchr(length + 2, ':') + 1, NULL, 10);
        count_body(i, c->head_size - (size_t)(end + 4 - c->head));
}

static void drop_body(size_t i)
{
        ssize_t n = recv(polled[i].fd, NULL, connections[i].left < MiB(8) ? connections[i].left : MiB(8),
                         MSG_TRUNC | MSG_DONTWAIT);

        if (n <= 0)
                die("an answer ends in the middle");
        count_body(i, (uint64_t)n);
}

int main(int argc, char **argv)
{
        size_t count = argc == 4 ? strtoul(argv[2], NULL, 10) : 0;
        struct rusage used;
        int64_t start;

        if (count == 0 || count > CONNECTIONS_MAX || (limit = strtoul(argv[3], NULL, 10)) < count)
                die("usage: load_http PORT CONNECTIONS REQUESTS < paths");
        read_paths();
        for (size_t i = 0; i < count; i++)
                polled[i] = (struct pollfd){ .fd = connect_to((uint16_t)strtoul(argv[1], NULL, 10)), .events = POLLIN };
        start = monotonic_ns();
        for (size_t i = 0; i < count; i++)
                send_request(i);
        while (answered < limit) {
                if (poll(polled, count, 60000) <= 0)
                        die("no answer for a minute");
                for (size_t i = 0; i < count; i++)
                        if (polled[i].fd >= 0 && polled[i].revents)
                                (connections[i].in_body ? drop_body : read_head)(i);
        }
        start = monotonic_ns() - start;
        getrusage(RUSAGE_SELF, &used);
        printf("%.6f %.6f %llu %zu %zu\n", (double)start / 1e9,
               (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                       (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6,
               (unsigned long long)body_bytes, code_200, code_404);
        return 0;
}
