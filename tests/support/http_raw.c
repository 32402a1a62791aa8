/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/http_raw.h"

#include <arpa/inet.h>
#include <check.h>
#include <sys/socket.h>

#include "common/cleanup.h"

int raw_connect(uint16_t port)
{
        struct sockaddr_in to = { .sin_family = AF_INET,
                                  .sin_port = htons(port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        struct timeval limit = { .tv_sec = 20 };
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        ck_assert_int_ge(fd, 0);
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
        ck_assert_int_eq(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
        return fd;
}

void raw_send(int fd, const void *data, size_t n)
{
        const char *from = data;

        while (n) {
                ssize_t done = send(fd, from, n, MSG_NOSIGNAL);

                if (done <= 0) /* the server may have closed the connection already; its response is read below */
                        return;
                from += done;
                n -= (size_t)done;
        }
}

char *raw_read_all(int fd, size_t *size_ret, int *errno_ret)
{
        size_t size = 0, capacity = 1 << 16;
        char *ret = malloc(capacity + 1);
        ssize_t n;

        ck_assert_ptr_nonnull(ret);
        while ((n = recv(fd, ret + size, capacity - size, 0)) > 0) {
                size += (size_t)n;
                if (size == capacity) {
                        capacity *= 2;
                        ret = realloc(ret, capacity + 1);
                        ck_assert_ptr_nonnull(ret);
                }
        }
        if (errno_ret)
                *errno_ret = n < 0 ? errno : 0;
        ret[size] = 0;
        if (size_ret)
                *size_ret = size;
        return ret;
}

char *raw_request(uint16_t port, const char *text)
{
        _cleanup_close_ int fd = raw_connect(port);

        raw_send(fd, text, strlen(text));
        return raw_read_all(fd, NULL, NULL);
}

int raw_status(const char *answer)
{
        return strncmp(answer, "HTTP/1.1 ", 9) == 0 ? (int)strtol(answer + 9, NULL, 10) : 0;
}

const char *raw_body(const char *answer)
{
        const char *end = strstr(answer, "\r\n\r\n");

        return end ? end + 4 : "";
}
