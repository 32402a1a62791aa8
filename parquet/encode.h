/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PARQUET_ENCODE_H
#define CAIRN_PARQUET_ENCODE_H

/**
 * @file
 * The integer encodings of data pages, writing side. Failures stay in the buf.
 * Source: parquet-format Encodings.md.
 */
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"

/** Bits that hold the values [0, max]. */
unsigned bits_for(uint64_t max);

/** RLE/bit-packed hybrid of count values that all fit in width (0 to 32) bits. */
void encode_hybrid(struct buf *out, const uint32_t *values, size_t count, unsigned width);

/** The bytes encode_hybrid() makes, without making them. */
size_t encode_hybrid_size(const uint32_t *values, size_t count, unsigned width);

/** DELTA_BINARY_PACKED with blocks of 128 in 4 miniblocks. */
void encode_delta(struct buf *out, const int64_t *values, size_t count);

/** PLAIN booleans: one bit each, lowest bit first. */
void encode_bools(struct buf *out, const int64_t *values, size_t count);

#endif
