/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_PROTOCOL_GRPC_QUERY_H
#define CAIRN_SERVER_PROTOCOL_GRPC_QUERY_H

/**
 * @file
 * Query services of other products (querier.v1, parca.query.v1alpha1) over gRPC, and over gRPC-Web: gRPC frames in the
 * body of an HTTP/1.1 message, whose last frame has the trailers. The methods are those of query/querier/querier.h.
 *
 * Threads: a call belongs to the thread that handles it.
 * Source: gRPC over HTTP/2; PROTOCOL-WEB.md of grpc/grpc.
 */
#include "common/metrics.h"
#include "grpc/grpc_server.h"
#include "http/http_server.h"
#include "query/querier/querier.h"

struct server;

#define GRPC_QUERY_BYTES KiB(256) /* of a request: a selector has at most 8 KiB, a call site 512 names */
#define GRPC_WEB_TYPE "application/grpc-web+proto"

struct grpc_query_service {
        const char *name; /* "parca.query.v1alpha1.QueryService" */
        const char *kind; /* of its queries in metrics and in the log */
        const struct querier_method *(*find_method)(const char *name);
        struct metric *calls; /* answered */
};

/** Answer a call of a method in the table of the listener, which names only methods of the service. */
void grpc_query_answer(const struct grpc_query_service *service, struct grpc_call *call, struct server *s);

/** Whether the content type of a request is gRPC-Web with protobuf. */
bool grpc_query_is_web(const struct http_request *req);

/** Answer a gRPC-Web request with a failure, in its trailers. */
void grpc_query_fail_web(struct http_request *req, enum grpc_code code, const char *text);

/** Answer a gRPC-Web request of the route "/SERVICE/{method}". */
void grpc_query_answer_web(const struct grpc_query_service *service, struct http_request *req);

#endif
