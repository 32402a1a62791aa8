/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_PROTOCOL_PARCA_METHODS_H
#define CAIRN_SERVER_PROTOCOL_PARCA_METHODS_H

/**
 * @file
 * gRPC methods of Parca, for the table of the listener; the context is struct server. docs/formats/parca.md
 *
 * Source: parca-dev/parca proto/parca, at 3b5647c.
 */
#include "grpc/grpc_server.h"

/* parca.profilestore.v1alpha1.ProfileStoreService */
void handle_parca_write_raw(struct grpc_call *call, void *context);
void refuse_parca_arrow(struct grpc_call *call, void *context);

/* parca.query.v1alpha1.QueryService: all methods */
void handle_parca_query(struct grpc_call *call, void *context);

/* parca.debuginfo.v1alpha1.DebuginfoService */
void handle_parca_should_upload(struct grpc_call *call, void *context);
void handle_parca_initiate_upload(struct grpc_call *call, void *context);
void receive_parca_upload(struct grpc_call *call, void *context);
void finish_parca_upload(struct grpc_call *call, void *context);
void abandon_parca_upload(struct grpc_call *call, void *context);
void handle_parca_mark_finished(struct grpc_call *call, void *context);

#endif
