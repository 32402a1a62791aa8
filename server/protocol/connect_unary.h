/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_PROTOCOL_CONNECT_UNARY_H
#define CAIRN_SERVER_PROTOCOL_CONNECT_UNARY_H

/**
 * @file
 * Unary calls of the Connect protocol: one message in, one out, in protobuf or JSON according to the request.
 *
 * Routes of such calls have a put_error of connect_call.h, so that every failure, including those of the HTTP server,
 * is a Connect error.
 *
 * Threads: a call belongs to the thread that handles its request.
 * Source: connectrpc.com/docs/protocol, "Unary-Request".
 */
#include "http/http_server.h"
#include "profile-formats/proto_message.h"
#include "server/protocol/connect_call.h"

struct connect_unary {
        struct http_request *req; /* borrowed */
        enum connect_codec codec; /* of both messages */
        struct arena memory;
        const void *message; /* the generated struct; valid until connect_unary_deinit() */
};

/**
 * Decode the body of the request.
 * @param type  descriptor of the message.
 * @return false when it cannot be read: the request was answered, and ret needs no deinit.
 */
bool connect_unary_begin(struct http_request *req, const ProtobufCMessageDescriptor *type,
                         struct connect_unary *ret) MUST_CHECK;
void connect_unary_deinit(struct connect_unary *c);
#define _cleanup_connect_unary_ _cleanup_(connect_unary_deinit)

/** Write a message in the codec of the request. @param ret  initialized here; owned */
void connect_unary_write(const struct connect_unary *c, const ProtobufCMessage *answer, struct buf *ret);

/** Answer with a written message, compressed as the client accepts. @param body  bytes taken */
void connect_unary_respond_body(const struct connect_unary *c, struct buf *body);

/** Both of these. */
void connect_unary_respond(const struct connect_unary *c, const ProtobufCMessage *answer);

#endif
