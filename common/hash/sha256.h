/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_HASH_SHA256_H
#define CAIRN_COMMON_HASH_SHA256_H

/**
 * @file
 * SHA-256 to verify content from outside.
 *
 * Threads: a state belongs to one thread.
 * Source: FIPS 180-4, through libcrypto.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/cleanup.h"
#include "common/error.h"

#define SHA256_BYTES 32
#define SHA256_HEX_MAX (2 * SHA256_BYTES + 1)

struct sha256 {
        void *context; /* owned */
};

enum status sha256_init(struct sha256 *s, struct error *err) MUST_CHECK;
void sha256_deinit(struct sha256 *s); /* also valid on a zeroed struct */
#define _cleanup_sha256_ _cleanup_(sha256_deinit)

void sha256_update(struct sha256 *s, const void *data, size_t n);

/** The digest of all updates; no more updates until sha256_init(). */
void sha256_final(struct sha256 *s, uint8_t ret[static SHA256_BYTES]);

/** HMAC-SHA256 of n bytes. Source: RFC 2104. False when out of memory. */
bool hmac_sha256(const void *key, size_t key_size, const void *data, size_t n, uint8_t ret[static SHA256_BYTES]);

/** Whether two digests are equal; compares in constant time. */
bool sha256_equal(const uint8_t a[static SHA256_BYTES], const uint8_t b[static SHA256_BYTES]);

/** Lower-case hex; returns out. */
const char *sha256_hex(const uint8_t digest[static SHA256_BYTES], char out[static SHA256_HEX_MAX]);

/** 64 hex digits of either case. */
bool sha256_parse(const char *hex, uint8_t ret[static SHA256_BYTES]);

#endif
