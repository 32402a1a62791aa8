/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_API_PROFILES_QUERIER_METHODS_H
#define CAIRN_SERVER_API_PROFILES_QUERIER_METHODS_H

/** @file gRPC methods of querier.v1.QuerierService, for the table of the listener. docs/formats/querier.md */
#include "grpc/grpc_server.h"

/** All methods; the context is struct server. */
void handle_querier_call(struct grpc_call *call, void *context);

#endif
