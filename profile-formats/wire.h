/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_FORMATS_WIRE_H
#define CAIRN_PROFILE_FORMATS_WIRE_H

/**
 * @file
 * Protocol Buffers wire format, read in place and written into a buf. For the ingest path and for copying unknown
 * fields; other messages use generated code (proto_message.h).
 *
 * Reading allocates nothing. A nested message is a sub-reader that the caller may enter or skip, so the nesting of an
 * input costs neither memory nor stack. Groups (wire types 3 and 4), which proto3 does not have, are malformed.
 *
 * The length of a nested message precedes its content: wire_begin() reserves one byte for it, and wire_end() moves the
 * content when the length needs more. Failures stay in the buf (buf_status()).
 *
 * Source: Protocol Buffers, "Encoding".
 */
#include <stdbool.h>
#include <stdint.h>

#include "common/memory/buf.h"
#include "common/reader.h"

enum wire_type { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

struct wire_field {
        uint32_t number;
        enum wire_type type;
        uint64_t value;      /* WIRE_VARINT, WIRE_FIXED64, WIRE_FIXED32 */
        struct reader bytes; /* WIRE_BYTES; borrows the message's bytes */
        bool consumed;       /* wire_next_number() has returned the only value */
};

/** Read the next field of a message. False at the end, and with r->failed set when the message is malformed. */
bool wire_next(struct reader *r, struct wire_field *ret) MUST_CHECK;

/**
 * Read the next value of a repeated scalar, packed or not. False after the last, and with f->bytes.failed set when the
 * field has another type or is malformed.
 * @param element  type of one value: WIRE_VARINT or WIRE_FIXED64.
 */
bool wire_next_number(struct wire_field *f, enum wire_type element, uint64_t *ret) MUST_CHECK;

void wire_put_varint(struct buf *b, uint32_t number, uint64_t value);  /* also written when 0 */
void wire_put_uint(struct buf *b, uint32_t number, uint64_t value);    /* omitted when 0, as in proto3 */
void wire_put_fixed64(struct buf *b, uint32_t number, uint64_t value); /* omitted when 0 */
void wire_put_double(struct buf *b, uint32_t number, double value);    /* also written when 0 */
void wire_put_bytes(struct buf *b, uint32_t number, const void *data, size_t n);
void wire_put_str(struct buf *b, uint32_t number, const char *s); /* omitted when empty */

/** Start a nested message (or packed run); pass the result to wire_end(). */
size_t wire_begin(struct buf *b, uint32_t number);
void wire_end(struct buf *b, size_t mark);

#endif
