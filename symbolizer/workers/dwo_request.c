/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/workers/dwo_request.h"

#include <errno.h>
#include <limits.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "sandbox/fd_pass.h"

#define HEAD_BYTES 13 /* id, attempt, whether it has a directory */
#define PACKET_MAX (HEAD_BYTES + 2 * PATH_MAX)

enum status dwo_request_create_sockets(int *worker_ret, int *parent_ret, struct error *err)
{
        int ends[2];

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
                return error_os(err, errno, "cannot create a socket for a worker");
        *worker_ret = ends[0];
        *parent_ret = ends[1];
        return ST_OK;
}

/* ---- in the parent ---- */

struct dwo_request_packet { /* borrows from its packet */
        uint64_t id;
        uint32_t attempt;
        const char *directory, *name;
};

static bool parse_request(const char *bytes, size_t size, struct dwo_request_packet *q)
{
        const char *end = bytes + size, *directory = bytes + HEAD_BYTES, *nul;

        if (size < HEAD_BYTES)
                return false;
        memcpy(&q->id, bytes, sizeof q->id);
        memcpy(&q->attempt, bytes + 8, sizeof q->attempt);
        nul = memchr(directory, 0, (size_t)(end - directory));
        if (!nul)
                return false;
        q->directory = bytes[12] ? directory : NULL;
        q->name = nul + 1;
        nul = memchr(q->name, 0, (size_t)(end - q->name));
        return nul && nul + 1 == end;
}

void dwo_request_serve(const struct dwarf_dwo_source *from, int socket)
{
        char bytes[PACKET_MAX];
        struct dwo_request_packet q;
        ssize_t size = recv(socket, bytes, sizeof bytes, MSG_DONTWAIT | MSG_TRUNC);
        _cleanup_close_ int fd = -1;

        if (size < 0)
                return;
        if ((size_t)size > sizeof bytes || !parse_request(bytes, (size_t)size, &q) ||
            from->open(from->context, q.id, q.directory, q.name, q.attempt, &fd))
                fd = -1;
        fd_send(socket, fd);
}

/* ---- in the worker ---- */

enum status dwo_request_send(void *context, uint64_t id, const char *directory, const char *name, unsigned attempt,
                             int *fd_ret)
{
        struct dwo_requester *requester = context;
        char packet[PACKET_MAX];
        uint32_t number = attempt;
        size_t directory_size = strlen(directory ? directory : "") + 1, name_size = strlen(name) + 1;
        int fd = -1;

        if (directory_size > PATH_MAX || name_size > PATH_MAX)
                return ST_NOT_FOUND;
        memcpy(packet, &id, sizeof id);
        memcpy(packet + 8, &number, sizeof number);
        packet[12] = directory != NULL;
        memcpy(packet + HEAD_BYTES, directory ? directory : "", directory_size);
        memcpy(packet + HEAD_BYTES + directory_size, name, name_size);
        pthread_mutex_lock(&requester->lock);
        if (write(requester->socket, packet, HEAD_BYTES + directory_size + name_size) <= 0 ||
            fd_receive(requester->socket, &fd, NULL))
                fd = -1;
        pthread_mutex_unlock(&requester->lock);
        if (fd < 0)
                return ST_NOT_FOUND;
        *fd_ret = fd;
        return ST_OK;
}
