/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PARQUET_DECODE_H
#define CAIRN_PARQUET_DECODE_H

/**
 * @file
 * The integer encodings of data pages, reading side. All return false on
 * bytes that break the encoding or end too early.
 * Source: parquet-format Encodings.md.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/reader.h"

/** count values of an RLE/bit-packed hybrid of width 0 to 32 bits; the cursor ends behind the last run used. */
bool decode_hybrid(struct reader *r, unsigned width, uint32_t *ret, size_t count) MUST_CHECK;

/** The same for levels, which fit a byte; a level over max is false. */
bool decode_levels(struct reader *r, uint8_t max, uint8_t *ret, size_t count) MUST_CHECK;

/** count values of DELTA_BINARY_PACKED; a header with another count is false. Additions wrap around. */
bool decode_delta(struct reader *r, int64_t *ret, size_t count) MUST_CHECK;

#endif
