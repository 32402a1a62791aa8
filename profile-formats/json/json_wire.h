/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_FORMATS_JSON_JSON_WIRE_H
#define CAIRN_PROFILE_FORMATS_JSON_JSON_WIRE_H

/**
 * @file
 * Transcodes the JSON form of a protobuf message to the binary form in one pass, so that one decoder serves both.
 * Members that the schema does not name are skipped.
 *
 * A schema is an array of fields that ends with an entry without a name. Schemas form a tree, so the depth of the
 * recursion is that of the schema.
 *
 * For OTLP and push requests, which proto_json.h cannot serve: their texts are bytes in the .proto files (protobuf-c
 * ends a string at its first NUL, and invalid UTF-8 is replaced rather than refused), which ProtoJSON has in base64;
 * OTLP has ids in hexadecimal and member names in lowerCamelCase only; and otlp_decode() reads the binary form itself.
 *
 * Source: Protocol Buffers, "ProtoJSON Format".
 */
#include "common/json/json_scan.h"
#include "common/memory/buf.h"

enum json_wire_kind {
        JSON_WIRE_MESSAGE,
        JSON_WIRE_INTEGER,  /* varint: signed integer of 64 bits, quoted or not */
        JSON_WIRE_UNSIGNED, /* varint: unsigned integer of 64 bits */
        JSON_WIRE_FIXED64,  /* the same, encoded in 8 bytes */
        JSON_WIRE_DOUBLE,   /* a number, quoted or not, or "NaN", "Infinity", "-Infinity" */
        JSON_WIRE_BOOL,
        JSON_WIRE_TEXT,
        JSON_WIRE_HEX,    /* bytes as hexadecimal digits, as OTLP encodes ids instead of in base64 */
        JSON_WIRE_BASE64, /* bytes as in ProtoJSON */
};

struct json_wire_field {
        const char *name;
        uint32_t number;
        enum json_wire_kind kind;
        bool repeated;
        const struct json_wire_field *fields; /* of a message */
};

/**
 * Append the encoding of the next JSON value, an object or null. Syntax errors stay in s (json_scan_end()), failures to
 * append in to (buf_status()).
 */
void json_wire_append(struct json_scan *s, const struct json_wire_field *fields, struct buf *to);

/* Single values, for proto_json.c too; failures stay in s and to. */

/** Skip the next value if it is null. */
bool json_wire_skip_null(struct json_scan *s);
/** A whole number of 64 bits, quoted or not, also as 5.0 or 5e0; the bits of an int64 when it is negative. */
bool json_wire_scan_integer(struct json_scan *s, uint64_t *ret, bool *is_negative_ret);
/** A number, quoted or not, or "NaN", "Infinity", "-Infinity". */
bool json_wire_scan_double(struct json_scan *s, double *ret);
/** Append a string as a field. */
void json_wire_put_text(struct json_scan *s, uint32_t number, struct buf *to);
/** Append the bytes of a base64 string as a field. */
void json_wire_put_base64(struct json_scan *s, uint32_t number, struct buf *to);

#endif
