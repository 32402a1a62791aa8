/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_FORMATS_PROTO_MESSAGE_H
#define CAIRN_PROFILE_FORMATS_PROTO_MESSAGE_H

/**
 * @file
 * Protocol Buffers with the code that protoc-gen-c generates from profile-formats/proto/: decoding with limits on
 * memory and depth, encoding into a struct buf.
 *
 * protobuf-c bounds neither. Memory: the allocator is an arena, which counts against its maximum and, when it has one,
 * the memory budget. An arena does not reuse what is freed, so it also bounds the work of merging a message field that
 * a sender repeats. Depth: a pass over the nested messages precedes decoding; it also finds the offset of an error,
 * which protobuf-c does not report.
 *
 * Stricter than other decoders of proto3: a known field with a wrong wire type is an error, as in protobuf-c, and so is
 * NUL in a `string` (protobuf-c ends a text there). Invalid UTF-8 in a `string` is an error in all of them.
 *
 * Headers of the generated code are included as "profile-formats/proto/NAME.pb-c.h".
 * Source: Protocol Buffers, "Encoding"; protobuf-c 1.4.1.
 */
#include <protobuf-c/protobuf-c.h>

#include "common/memory/arena.h"
#include "common/memory/buf.h"

/** Messages inside one another, the outermost included. */
#define PROTO_DEPTH_MAX 32

/**
 * Decode a message.
 *
 * @param type    descriptor of the message, `x__y__descriptor`.
 * @param memory  holds the message; its maximum is the limit.
 * @param what    names the input in errors.
 * @param ret     the generated struct, valid until arena_deinit(memory); do not free it. Untouched on failure.
 * @return ST_OK; ST_BAD_DATA with the offset; ST_TOO_BIG past the maximum of `memory`; ST_BUSY from the budget;
 *         ST_NO_MEMORY.
 */
enum status proto_message_decode(const ProtobufCMessageDescriptor *type, const void *data, size_t n,
                                 struct arena *memory, const char *what, const void **ret,
                                 struct error *err) MUST_CHECK;

/** Append an encoded message. Failures stay in the buf (buf_status()). */
void proto_message_append(struct buf *b, const ProtobufCMessage *message);

/** Borrow a text as a bytes field. */
static inline ProtobufCBinaryData proto_bytes(const void *data, size_t n)
{
        return (ProtobufCBinaryData){ .len = n, .data = (uint8_t *)data };
}

#endif
