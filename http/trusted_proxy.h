/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_HTTP_TRUSTED_PROXY_H
#define CAIRN_HTTP_TRUSTED_PROXY_H

/*
 * Reverse proxies whose X-Forwarded-For, X-Forwarded-Proto and user header are trusted, as ranges of addresses.
 *
 * Threads: any.
 */
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"

/** Addresses with a common prefix; IPv4 as ::ffff:0:0/96. */
struct address_range {
        struct in6_addr address;
        unsigned bits;
};

/** "127.0.0.1", "10.0.0.0/8", "::1", "fd00::/8". ST_USAGE, also if bits after the prefix are set. */
enum status address_range_parse(const char *text, struct address_range *ret, struct error *err) MUST_CHECK;

bool is_address_in_ranges(const struct in6_addr *address, const struct address_range *ranges, size_t count);

/** Convert an IPv6 address, or an IPv4 one as IPv4-mapped. False for other families. */
bool address_from_socket(const struct sockaddr *from, struct in6_addr *ret);

/**
 * Find the client behind trusted proxies: the last address of X-Forwarded-For that is not a trusted proxy, because
 * earlier entries are controlled by the client. Stops at an entry that is not an address.
 * @param header  NULL: none.
 * @param client  the address of the connection; changed only if it is a trusted proxy.
 */
void find_forwarded_client(const char *header, const struct address_range *ranges, size_t count,
                           struct in6_addr *client);

#endif
