/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_CORE_GRPC_LISTENER_H
#define CAIRN_SERVER_CORE_GRPC_LISTENER_H

/**
 * @file
 * The listener of --listen-otlp-grpc. It shares tokens, rate limits, certificate and thread pools with the HTTP
 * listener.
 */
#include "grpc/grpc_server.h"
#include "http/listen.h"
#include "server/core/server_internal.h"

/** Start it as s->grpc. Needs s->http. */
enum status start_grpc_listener(struct server *s, const struct listen_address *listen, struct error *err) MUST_CHECK;

/* api/grpc_methods.c; the context of handlers is struct server */
extern const struct grpc_method grpc_methods[];
extern const size_t grpc_method_count;
/** The roles of which one answers a method. */
unsigned get_grpc_method_roles(const char *path);
/** Whether a method that a node with these roles answers is handled in the pool. */
bool is_grpc_pool(unsigned pool, unsigned roles);

#endif
