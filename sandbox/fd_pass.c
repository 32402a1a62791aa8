/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/fd_pass.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

void fd_send(int socket, int fd)
{
        union {
                struct cmsghdr align;
                char bytes[CMSG_SPACE(sizeof fd)];
        } control = { .bytes = { 0 } };
        char has = fd >= 0;
        struct iovec io = { &has, 1 };
        struct msghdr m = { .msg_iov = &io, .msg_iovlen = 1 };

        if (has) {
                struct cmsghdr *c;

                m.msg_control = control.bytes;
                m.msg_controllen = sizeof control.bytes;
                c = CMSG_FIRSTHDR(&m);
                c->cmsg_level = SOL_SOCKET;
                c->cmsg_type = SCM_RIGHTS;
                c->cmsg_len = CMSG_LEN(sizeof fd);
                memcpy(CMSG_DATA(c), &fd, sizeof fd);
        }
        sendmsg(socket, &m, MSG_NOSIGNAL | MSG_DONTWAIT); /* dropped if the receiver does not read */
}

enum status fd_receive(int socket, int *ret, struct error *err)
{
        assert(socket >= 0);
        union {
                struct cmsghdr align;
                char bytes[CMSG_SPACE(sizeof(int))];
        } control;
        char has = 0;
        struct iovec io = { &has, 1 };
        struct msghdr m = {
                .msg_iov = &io, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes
        };
        struct cmsghdr *c;
        ssize_t n;

        do
                n = recvmsg(socket, &m, MSG_CMSG_CLOEXEC);
        while (n < 0 && errno == EINTR);
        if (n < 0)
                return error_os(err, errno, "cannot get a file");
        *ret = -1;
        c = n == 1 && has ? CMSG_FIRSTHDR(&m) : NULL;
        if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof *ret))
                memcpy(ret, CMSG_DATA(c), sizeof *ret);
        return ST_OK;
}
