/* SPDX-License-Identifier: Apache-2.0 */
#include "http/peer_key.h"

#include <netinet/in.h>
#include <string.h>

#include "common/hash/hash_table.h"

#define MAPPED_IPV4 0xffff00000000u /* ::ffff:0:0/96, RFC 4291, 2.5.5.2 */

struct peer_key peer_key_from_address(const struct sockaddr *address)
{
        struct peer_key key = { 0, 0 };

        if (address->sa_family == AF_INET) {
                key.low = MAPPED_IPV4 | ntohl(((const struct sockaddr_in *)address)->sin_addr.s_addr);
        } else if (address->sa_family == AF_INET6) {
                const struct in6_addr *a = &((const struct sockaddr_in6 *)address)->sin6_addr;

                memcpy(&key.high, a->s6_addr, 8);
                if (IN6_IS_ADDR_V4MAPPED(a))
                        key.low = MAPPED_IPV4 | ntohl(a->s6_addr32[3]);
        }
        return key;
}

uint64_t peer_key_hash(const struct peer_key *key)
{
        return keyed_hash(key, sizeof *key);
}
