/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_FORMATS_WIRE_H
#define CAIRN_PROFILE_FORMATS_WIRE_H

/**
 * @file
 * Protocol Buffers on the wire, read in place and written into a buf.
 *
 * Reading allocates nothing and never descends by itself: a nested message is
 * a sub-reader that the caller may look into or leave, so no input can cost
 * memory or stack by its nesting. Groups (wire types 3 and 4) are malformed:
 * proto3 has none.
 *
 * Writing a nested message needs its length before its content; wire_begin()
 * leaves one byte for it and wire_end() moves the content when that is too
 * little. Failures stay in the buf (buf_status()).
 *
 * Source: Protocol Buffers, "Encoding".
 */
#include <stdbool.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/reader.h"

enum wire_type { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

struct wire_field {
        uint32_t number;
        enum wire_type type;
        uint64_t value;      /* WIRE_VARINT, WIRE_FIXED64, WIRE_FIXED32 */
        struct reader bytes; /* WIRE_BYTES; borrows the message's bytes */
        bool taken;          /* wire_next_number() has given the only value */
};

/** The next field of a message. False at its end, and when it is malformed: then r->failed is set. */
bool wire_next(struct reader *r, struct wire_field *ret) MUST_CHECK;

/**
 * The next value of a repeated scalar, packed or not; element says how one value of a packed run is stored
 * (WIRE_VARINT or WIRE_FIXED64). False after the last; when the field is of another type or malformed,
 * f->bytes.failed.
 */
bool wire_next_number(struct wire_field *f, enum wire_type element, uint64_t *ret) MUST_CHECK;

void wire_put_varint(struct buf *b, uint32_t number, uint64_t value);  /* also written when 0 */
void wire_put_uint(struct buf *b, uint32_t number, uint64_t value);    /* left out when 0, as proto3 does */
void wire_put_fixed64(struct buf *b, uint32_t number, uint64_t value); /* left out when 0 */
void wire_put_double(struct buf *b, uint32_t number, double value);    /* also written when 0 */
void wire_put_bytes(struct buf *b, uint32_t number, const void *data, size_t n);
void wire_put_str(struct buf *b, uint32_t number, const char *s); /* left out when empty */

/** Start a nested message (or packed run); pass the result to wire_end(). */
size_t wire_begin(struct buf *b, uint32_t number);
void wire_end(struct buf *b, size_t mark);

#endif
