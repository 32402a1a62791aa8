/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_ROUTES_UPLOAD_REQUEST_H
#define CAIRN_SERVER_ROUTES_UPLOAD_REQUEST_H

/**
 * @file
 * Upload of one object as a request body, independent of the protocol: from the claim to the index. The upload is the
 * request's state.
 *
 * Threads: those of the request.
 */
#include "server/server_internal.h"

/** Begin, or answer why not. */
void upload_begin(struct http_request *req, const struct object_claim *claim);

/** chunk and abandon of the route. */
enum status upload_chunk(struct http_request *req, void *context, const void *data, size_t *n);
void upload_abandon(struct http_request *req, void *context);

enum upload_outcome {
        UPLOAD_ANSWERED, /* it was refused, and the client told */
        UPLOAD_STORED,
        UPLOAD_SAME,       /* it was there */
        UPLOAD_INCOMPLETE, /* the rest of a resumable upload is awaited */
};

/**
 * Verify, store and index the object.
 * @param content_with_better an equal or better stored object is UPLOAD_SAME, otherwise refused.
 * @param size_ret stored bytes, decompressed.
 */
enum upload_outcome upload_end(struct http_request *req, bool content_with_better, uint64_t *size_ret);

#endif
