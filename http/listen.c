/* SPDX-License-Identifier: Apache-2.0 */
#include "http/listen.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/text/number_text.h"

static bool address_is_loopback(const struct sockaddr *a)
{
        if (a->sa_family == AF_INET)
                return ntohl(((const struct sockaddr_in *)a)->sin_addr.s_addr) >> 24 == 127;
        return a->sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)a)->sin6_addr);
}

static enum status resolve_listen_address(struct listen_address *l, struct error *err)
{
        struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
        struct addrinfo *info;
        int failed = getaddrinfo(l->host, NULL, &hints, &info);

        if (failed)
                return error_set(err, ST_USAGE, "cannot listen on '%s': %s", l->host, gai_strerror(failed));
        l->is_loopback = true;
        for (struct addrinfo *i = info; i; i = i->ai_next)
                l->is_loopback &= address_is_loopback(i->ai_addr);
        freeaddrinfo(info);
        return ST_OK;
}

enum status parse_listen_address(const char *text, uint16_t default_port, struct listen_address *ret, struct error *err)
{
        struct listen_address l = { .port = default_port };
        const char *host = text, *colon = strrchr(text, ':');
        size_t n = colon ? (size_t)(colon - text) : strlen(text);
        uint64_t port = default_port;
        enum status st;

        if (text[0] == '[') {
                const char *close = strchr(text, ']');

                if (!close || (close[1] && close[1] != ':'))
                        return error_set(err, ST_USAGE, "'%s' is not an address; write [ADDRESS]:PORT", text);
                host = text + 1;
                n = (size_t)(close - host);
                colon = close[1] ? close + 1 : NULL;
        } else if (colon && memchr(text, ':', n)) {
                return error_set(err, ST_USAGE, "'%s' is not an address; write an IPv6 address as [ADDRESS]:PORT",
                                 text);
        }
        if (colon && (!parse_uint(colon + 1, &port) || port > UINT16_MAX))
                return error_set(err, ST_USAGE, "'%s' has no valid port", text);
        if (n >= sizeof l.host)
                return error_set(err, ST_USAGE, "'%.40s...' is too long for a host", text);
        l.port = (uint16_t)port;
        memcpy(l.host, n ? host : "0.0.0.0", n ? n : sizeof "0.0.0.0");
        st = resolve_listen_address(&l, err);
        if (st)
                return st;
        *ret = l;
        return ST_OK;
}

enum status open_listen_socket(const char *host, uint16_t number, int *fd_ret, uint16_t *port_ret, struct error *err)
{
        struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV };
        struct addrinfo *info;
        struct sockaddr_storage bound = { 0 };
        socklen_t n = sizeof bound;
        _cleanup_close_ int fd = -1;
        char port[8];
        int failed, on = 1;

        snprintf(port, sizeof port, "%u", (unsigned)number);
        failed = getaddrinfo(host, port, &hints, &info);
        if (failed)
                return error_set(err, ST_USAGE, "cannot listen on '%s': %s", host, gai_strerror(failed));
        fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd >= 0)
                setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        if (fd < 0 || bind(fd, info->ai_addr, info->ai_addrlen) < 0 || listen(fd, 511) < 0 ||
            getsockname(fd, (struct sockaddr *)&bound, &n) < 0)
                failed = errno;
        freeaddrinfo(info);
        if (failed)
                return error_os(err, failed, "cannot listen on %s:%s", host, port);
        /* NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): errno was set, so bound is */
        *port_ret = ntohs(bound.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&bound)->sin6_port
                                                      : ((struct sockaddr_in *)&bound)->sin_port);
        *fd_ret = steal_fd(&fd);
        return ST_OK;
}
