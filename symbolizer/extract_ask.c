/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/extract_ask.h"

#include <errno.h>
#include <limits.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cleanup.h"

#define HEAD_BYTES 5
#define PACKET_MAX (HEAD_BYTES + 2 * PATH_MAX)

enum status dwo_ask_sockets(int *worker_ret, int *parent_ret, struct error *err)
{
        int ends[2];

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
                return error_os(err, errno, "cannot make a socket for a worker");
        *worker_ret = ends[0];
        *parent_ret = ends[1];
        return ST_OK;
}

/* ---- in the parent ---- */

struct question { /* borrows from its packet */
        uint32_t attempt;
        const char *directory, *name;
};

static bool parse(const char *bytes, size_t size, struct question *q)
{
        const char *end = bytes + size, *directory = bytes + HEAD_BYTES, *nul;

        if (size < HEAD_BYTES)
                return false;
        memcpy(&q->attempt, bytes, sizeof q->attempt);
        nul = memchr(directory, 0, (size_t)(end - directory));
        if (!nul)
                return false;
        q->directory = bytes[4] ? directory : NULL;
        q->name = nul + 1;
        nul = memchr(q->name, 0, (size_t)(end - q->name));
        return nul && nul + 1 == end;
}

static void send_answer(int socket, int fd)
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
        sendmsg(socket, &m, MSG_NOSIGNAL | MSG_DONTWAIT); /* a worker that reads no answers gets none */
}

void dwo_ask_answer(const struct dwarf_dwo_source *from, int socket)
{
        char bytes[PACKET_MAX];
        struct question q;
        ssize_t size = recv(socket, bytes, sizeof bytes, MSG_DONTWAIT | MSG_TRUNC);
        _cleanup_close_ int fd = -1;

        if (size < 0)
                return;
        if ((size_t)size > sizeof bytes || !parse(bytes, (size_t)size, &q) ||
            from->open(from->context, q.directory, q.name, q.attempt, &fd))
                fd = -1;
        send_answer(socket, fd);
}

/* ---- in the worker ---- */

static int receive(int socket)
{
        union {
                struct cmsghdr align;
                char bytes[CMSG_SPACE(sizeof(int))];
        } control;
        char has = 0;
        struct iovec io = { &has, 1 };
        struct msghdr m = { .msg_iov = &io, .msg_iovlen = 1, .msg_control = control.bytes,
                            .msg_controllen = sizeof control.bytes };
        struct cmsghdr *c;
        ssize_t n;
        int fd;

        do
                n = recvmsg(socket, &m, MSG_CMSG_CLOEXEC);
        while (n < 0 && errno == EINTR);
        c = n == 1 && has ? CMSG_FIRSTHDR(&m) : NULL;
        if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS || c->cmsg_len != CMSG_LEN(sizeof fd))
                return -1;
        memcpy(&fd, CMSG_DATA(c), sizeof fd);
        return fd;
}

enum status dwo_ask(void *context, const char *directory, const char *name, unsigned attempt, int *fd_ret)
{
        struct dwo_asker *asker = context;
        char packet[PACKET_MAX];
        uint32_t number = attempt;
        size_t directory_size = strlen(directory ? directory : "") + 1, name_size = strlen(name) + 1;
        int fd = -1;

        if (directory_size > PATH_MAX || name_size > PATH_MAX)
                return ST_NOT_FOUND;
        memcpy(packet, &number, sizeof number);
        packet[4] = directory != NULL;
        memcpy(packet + HEAD_BYTES, directory ? directory : "", directory_size);
        memcpy(packet + HEAD_BYTES + directory_size, name, name_size);
        pthread_mutex_lock(&asker->lock);
        if (write(asker->socket, packet, HEAD_BYTES + directory_size + name_size) > 0)
                fd = receive(asker->socket);
        pthread_mutex_unlock(&asker->lock);
        if (fd < 0)
                return ST_NOT_FOUND;
        *fd_ret = fd;
        return ST_OK;
}
