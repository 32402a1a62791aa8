/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_PROTOCOL_CONNECT_CALL_H
#define CAIRN_SERVER_PROTOCOL_CONNECT_CALL_H

/**
 * @file
 * Unary calls of the Connect protocol: the codec of a request and its answer, and errors.
 *
 * Threads: no shared state.
 * Source: connectrpc.com/docs/protocol, "Unary-Request", "Error Codes".
 */
#include "http/http_server.h"

/** Encoding of a call's messages. */
enum connect_codec { CONNECT_PROTO, CONNECT_JSON };

/**
 * Read the request's codec from its Content-Type; application/x-protobuf counts as application/proto.
 * @return false when the request was answered with 415.
 */
bool connect_read_codec(struct http_request *req, enum connect_codec *ret) MUST_CHECK;

/** The Content-Type of an answer. Generated clients require it, even for an empty answer. */
const char *connect_media_type(enum connect_codec codec);

/** Answer 200 with an empty message: no bytes in protobuf, {} in JSON. */
void connect_respond_empty(struct http_request *req, enum connect_codec codec);

/**
 * put_error of a route: {"code": "...", "message": "..."}, in JSON with either codec. Clients decide by the code
 * whether to retry: unavailable is retried; invalid_argument, for permanent failures, is not.
 */
const char *connect_put_error(struct buf *to, const char *type, unsigned code, const char *text);
/** The same for calls that read: a request over a limit gets resource_exhausted. */
const char *connect_put_query_error(struct buf *to, const char *type, unsigned code, const char *text);

#endif
