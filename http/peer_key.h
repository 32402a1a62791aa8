/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_HTTP_PEER_KEY_H
#define CAIRN_HTTP_PEER_KEY_H

/*
 * Identity of a network client for limits: its IPv4 address, or the first 64 bits of its IPv6 address, the smallest
 * network a host is usually given.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

struct peer_key {
        uint64_t high, low;
};

struct peer_key peer_key_from_address(const struct sockaddr *address);
static inline bool peer_key_equal(const struct peer_key *a, const struct peer_key *b)
{
        return a->high == b->high && a->low == b->low;
}
/** Keyed hash, so that colliding addresses cannot be chosen by outsiders. */
uint64_t peer_key_hash(const struct peer_key *key);

#endif
