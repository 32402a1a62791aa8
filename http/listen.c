/* SPDX-License-Identifier: Apache-2.0 */
#include "http/listen.h"

#include <netdb.h>
#include <netinet/in.h>
#include <string.h>

#include "common/options.h"

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
