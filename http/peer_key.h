/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_HTTP_PEER_KEY_H
#define CAIRN_HTTP_PEER_KEY_H

/*
 * Who somebody on the network is, as far as limits go: an IPv4 address, or the
 * first 64 bits of an IPv6 one, which is the least that a host gets.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

struct peer_key {
        uint64_t high, low;
};

struct peer_key peer_key_of(const struct sockaddr *address);
static inline bool peer_key_equal(const struct peer_key *a, const struct peer_key *b)
{
        return a->high == b->high && a->low == b->low;
}
/** Nobody outside can choose addresses that fall together. */
uint64_t peer_key_hash(const struct peer_key *key);

#endif
