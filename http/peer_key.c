/* SPDX-License-Identifier: Apache-2.0 */
#include "http/peer_key.h"

#include <netinet/in.h>
#include <pthread.h>
#include <string.h>
#include <sys/random.h>
#include <xxhash.h>

#define MAPPED_IPV4 0xffff00000000u /* ::ffff:0:0/96, RFC 4291, 2.5.5.2 */

static uint64_t seed;
static pthread_once_t seeded = PTHREAD_ONCE_INIT;

static void make_seed(void)
{
        (void)!getrandom(&seed, sizeof seed, GRND_NONBLOCK);
}

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
        pthread_once(&seeded, make_seed);
        return XXH3_64bits_withSeed(key, sizeof *key, seed);
}
