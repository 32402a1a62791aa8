/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_FORMATS_JSON_WIRE_H
#define CAIRN_PROFILE_FORMATS_JSON_WIRE_H

/**
 * @file
 * From the JSON form of a protobuf message to its bytes, so that one decoder
 * reads both. Nothing is kept of the JSON; members that the description does
 * not name are skipped, whatever is in them.
 *
 * A description is an array of fields that ends with one without a name, and
 * describes a tree: no message is inside of itself, so the recursion is as deep
 * as the description.
 *
 * Source: Protocol Buffers, "ProtoJSON Format".
 */
#include "common/buf.h"
#include "common/json_scan.h"

enum json_wire_kind {
        JSON_WIRE_MESSAGE,
        JSON_WIRE_INTEGER, /* a varint; whole numbers of 64 bits with or without sign, quoted or not */
        JSON_WIRE_FIXED64, /* the same, of 8 bytes */
        JSON_WIRE_DOUBLE,  /* a number, quoted or not, or "NaN", "Infinity", "-Infinity" */
        JSON_WIRE_BOOL,
        JSON_WIRE_TEXT,
        JSON_WIRE_HEX,     /* bytes as hexadecimal digits, which OTLP has for ids in place of base64 */
};

struct json_wire_field {
        const char *name;
        uint32_t number;
        enum json_wire_kind kind;
        bool repeated;
        const struct json_wire_field *fields; /* of a message */
};

/**
 * Append the bytes of the message that comes next; null is an empty one. What
 * is malformed sticks in s (json_scan_end()), want of room in to (buf_status()).
 */
void json_wire_message(struct json_scan *s, const struct json_wire_field *fields, struct buf *to);

#endif
