/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_HASH_SHA256_SHORT_H
#define CAIRN_COMMON_HASH_SHA256_SHORT_H

/**
 * @file
 * SHA-256 of short texts, without libcrypto: loading that library takes longer than a small program runs. For anything
 * large common/hash/sha256.h is faster by an order of magnitude, since it uses instructions of the processor.
 *
 * Source: FIPS 180-4.
 */
#include <stddef.h>
#include <stdint.h>

#include "common/hash/sha256.h"

/** The digest of n bytes. */
void sha256_compute_short(const void *data, size_t n, uint8_t ret[static SHA256_BYTES]);

#endif
