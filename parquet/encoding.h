/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PARQUET_ENCODING_H
#define CAIRN_PARQUET_ENCODING_H

/**
 * @file
 * Integer encodings of data pages. Write failures are kept in the buf.
 * Source: parquet-format Encodings.md.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/memory/buf.h"
#include "common/reader.h"

/** Number of bits that hold any value of [0, max]. */
unsigned bits_for_max(uint64_t max);

/** RLE/bit-packed hybrid of count values that all fit in width (0 to 32) bits. */
void encode_hybrid(struct buf *out, const uint32_t *values, size_t count, unsigned width);

/** Size of what encode_hybrid() would write. */
size_t encode_hybrid_size(const uint32_t *values, size_t count, unsigned width);

/** DELTA_BINARY_PACKED with blocks of 128 in 4 miniblocks. */
void encode_delta(struct buf *out, const int64_t *values, size_t count);

/** PLAIN booleans: one bit each, lowest bit first. */
void encode_bools(struct buf *out, const int64_t *values, size_t count);

/** Reads an RLE/bit-packed hybrid piece by piece. */
struct hybrid_reader {
        struct reader bytes; /* after the current run */
        unsigned width;
        bool packed; /* current run: bit-packed values, or one repeated value */
        uint32_t value;
        const uint8_t *data, *end;
        size_t at;     /* values of the run read so far */
        uint64_t left; /* values of the run left */
};

/** False for a width over 32 bits. bytes is copied; the data stays borrowed. */
bool hybrid_begin(struct hybrid_reader *h, const struct reader *bytes, unsigned width) MUST_CHECK;

/** The number of equal values, h->value, in the run that comes next; 0 before a bit-packed run. False at the end. */
bool hybrid_peek_run(struct hybrid_reader *h, size_t *count_ret) MUST_CHECK;
bool hybrid_read(struct hybrid_reader *h, uint32_t *ret, size_t count) MUST_CHECK;
bool hybrid_skip(struct hybrid_reader *h, size_t count) MUST_CHECK;

/** Decode count values of an RLE/bit-packed hybrid of width 0 to 32 bits; r is left after the last run used. */
bool decode_hybrid(struct reader *r, unsigned width, uint32_t *ret, size_t count) MUST_CHECK;

/** The same for levels, which fit into a byte; a level over max fails. */
bool decode_levels(struct reader *r, uint8_t max, uint8_t *ret, size_t count) MUST_CHECK;

/** Decode count values of DELTA_BINARY_PACKED; a header with another count fails. Additions wrap around. */
bool decode_delta(struct reader *r, int64_t *ret, size_t count) MUST_CHECK;

#endif
