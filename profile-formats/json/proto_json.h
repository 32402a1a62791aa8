/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_FORMATS_JSON_PROTO_JSON_H
#define CAIRN_PROFILE_FORMATS_JSON_PROTO_JSON_H

/**
 * @file
 * ProtoJSON of any message with code that protoc-gen-c generates, driven by its descriptor.
 *
 * Reading transcodes the text to the binary form in one pass and decodes that (proto_message.h), so both forms of a
 * message pass the same checks. Names of members may be in lowerCamelCase or as in the .proto file; unknown members are
 * skipped, as are members that are null. Integers may be quoted; enums are names or numbers; bytes are base64 or
 * base64url, with or without padding. A repeated scalar is transcoded unpacked, which decoders accept.
 *
 * Writing leaves out fields with their default value, quotes 64-bit integers, and writes enums by name (an unknown
 * number as a number), NaN and infinities as strings. Text that is not UTF-8 becomes U+FFFD.
 *
 * Not supported, as no message here has them: maps, groups, the well-known types with a form of their own.
 *
 * Source: Protocol Buffers, "ProtoJSON Format".
 */
#include "profile-formats/proto_message.h"

/**
 * Decode one JSON object.
 *
 * @param type    descriptor of the message, `x__y__descriptor`.
 * @param memory  holds the message; its maximum is the limit, of the binary form too, and its budget is charged.
 * @param what    names the input in errors.
 * @param ret     the generated struct, valid until arena_deinit(memory). Untouched on failure.
 * @return ST_OK; ST_BAD_DATA with the byte; ST_TOO_BIG past the maximum of `memory`; ST_BUSY from the budget;
 *         ST_NO_MEMORY.
 */
enum status proto_json_decode(const ProtobufCMessageDescriptor *type, const void *data, size_t n, struct arena *memory,
                              const char *what, const void **ret, struct error *err) MUST_CHECK;

/** Append a message as one JSON object. Failures stay in the buf (buf_status()). Messages nest as deep as their type.
 */
void proto_json_append(struct buf *b, const ProtobufCMessage *message);

#endif
