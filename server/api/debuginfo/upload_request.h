/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_API_DEBUGINFO_UPLOAD_REQUEST_H
#define CAIRN_SERVER_API_DEBUGINFO_UPLOAD_REQUEST_H

/**
 * @file
 * Upload of one object as a request body, for any protocol: from the claim to the indexer. The upload is stored as the
 * request's state.
 *
 * Threads: those of the request.
 */
#include "server/core/server_internal.h"

/** Begin an upload, or respond with an error. */
void upload_begin(struct http_request *req, const struct object_claim *claim);

/** Callbacks `chunk` and `abandon` of the route. */
enum status upload_chunk(struct http_request *req, const void *data, size_t *n);
void upload_abandon(struct http_request *req);

enum upload_outcome {
        UPLOAD_ANSWERED, /* failed, and the request was answered */
        UPLOAD_STORED,
        UPLOAD_SAME,       /* the object was already stored */
        UPLOAD_INCOMPLETE, /* the rest of a resumable upload is missing */
};

/**
 * Verify, store and index the object.
 * @param content_with_better an equal or better stored object is UPLOAD_SAME, otherwise refused.
 * @param size_ret  received bytes, decompressed.
 */
enum upload_outcome upload_end(struct http_request *req, bool content_with_better, uint64_t *size_ret);

#endif
