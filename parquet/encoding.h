/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PARQUET_ENCODING_H
#define CAIRN_PARQUET_ENCODING_H

/**
 * @file
 * The integer encodings of data pages, writing side. Failures stay in the buf.
 * Source: parquet-format Encodings.md.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/reader.h"

/** Bits that hold the values [0, max]. */
unsigned bits_for_max(uint64_t max);

/** RLE/bit-packed hybrid of count values that all fit in width (0 to 32) bits. */
void encode_hybrid(struct buf *out, const uint32_t *values, size_t count, unsigned width);

/** The bytes encode_hybrid() makes, without making them. */
size_t encode_hybrid_size(const uint32_t *values, size_t count, unsigned width);

/** DELTA_BINARY_PACKED with blocks of 128 in 4 miniblocks. */
void encode_delta(struct buf *out, const int64_t *values, size_t count);

/** PLAIN booleans: one bit each, lowest bit first. */
void encode_bools(struct buf *out, const int64_t *values, size_t count);

/** count values of an RLE/bit-packed hybrid of width 0 to 32 bits; the cursor ends behind the last run used. */
bool decode_hybrid(struct reader *r, unsigned width, uint32_t *ret, size_t count) MUST_CHECK;

/** The same for levels, which fit a byte; a level over max is false. */
bool decode_levels(struct reader *r, uint8_t max, uint8_t *ret, size_t count) MUST_CHECK;

/** count values of DELTA_BINARY_PACKED; a header with another count is false. Additions wrap around. */
bool decode_delta(struct reader *r, int64_t *ret, size_t count) MUST_CHECK;

#endif
