/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_HASH_H
#define CAIRN_COMMON_HASH_H

/**
 * @file
 * The two hashes of the project: XXH3 with 64 and 128 bits (identities and
 * checksums of our own files; not against an attacker) and SHA-256 lives where
 * content of others is verified.
 * Source: xxHash specification, XXH3.
 */
#include <stddef.h>
#include <stdint.h>

struct hash128 {
        uint8_t bytes[16]; /* canonical (big-endian) form */
};

uint64_t hash64(const void *data, size_t n);
struct hash128 hash128(const void *data, size_t n);

#endif
