/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_PROTOCOL_GRPC_UNARY_H
#define CAIRN_SERVER_PROTOCOL_GRPC_UNARY_H

/**
 * @file
 * Decode and encode the messages of gRPC calls with code that protoc-gen-c generates.
 *
 * Threads: a call belongs to the thread that handles it.
 */
#include "grpc/grpc_server.h"
#include "profile-formats/proto_message.h"

/**
 * Decode the call's message.
 * @param memory  holds it.
 * @return the generated struct, valid until arena_deinit(memory); NULL on failure, which the call then has.
 */
const void *grpc_call_decode(struct grpc_call *call, const ProtobufCMessageDescriptor *type, struct arena *memory);

/** Answer with a message. */
void grpc_call_reply_message(struct grpc_call *call, const ProtobufCMessage *answer);

#endif
