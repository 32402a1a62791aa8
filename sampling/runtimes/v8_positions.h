/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_RUNTIMES_V8_POSITIONS_H
#define CAIRN_SAMPLING_RUNTIMES_V8_POSITIONS_H

/**
 * @file
 * V8's source position tables: from an offset in bytecode or machine code to a position in the source.
 *
 * A table is a sequence of entries, each two numbers of variable length: the difference of the offset with one or two
 * marks in its lowest bits, and the difference of the position, which is signed. An entry holds up to the next one.
 *
 * Source: V8 src/codegen/source-position-table.cc, source-position.h.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct v8_position {
        int32_t offset;   /* of a character in the script; -1: unknown */
        int32_t inlining; /* number of the inlined call that this is part of; -1: none */
};

#define V8_POSITION_UNKNOWN ((struct v8_position){ -1, -1 })

/** A position as a word of V8. */
struct v8_position v8_position_decode(uint64_t word);

/** How a version writes tables. */
struct v8_position_format {
        uint8_t mark_bits;
        int8_t start; /* offset before the first entry */
};

/** The position at an offset of code; V8_POSITION_UNKNOWN before the first entry, or if the table is malformed. */
struct v8_position v8_positions_find(const struct v8_position_format *f, const uint8_t *table, size_t size,
                                     int64_t offset);

#endif
