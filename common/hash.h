/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_HASH_H
#define CAIRN_COMMON_HASH_H

/**
 * @file
 * XXH3 with 64 and 128 bits, for stored identities and checksums. Unseeded and not cryptographic: collisions can be
 * constructed. Hash tables use keyed_hash() (common/hash/hash_table.h); content is verified with SHA-256.
 * Source: xxHash specification, XXH3.
 */
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

struct hash128 {
        uint8_t bytes[16]; /* canonical (big-endian) form */
};

uint64_t hash_bytes64(const void *data, size_t n);

/** Incremental hash_bytes64(). Ending frees the stream. */
struct hash64_stream {
        void *state; /* owned */
};
enum status hash64_begin(struct hash64_stream *s, struct error *err) MUST_CHECK;
void hash64_update(struct hash64_stream *s, const void *data, size_t n);
uint64_t hash64_end(struct hash64_stream *s);

struct hash128 hash_bytes128(const void *data, size_t n);

#endif
