/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_UPLOAD_STREAM_H
#define CAIRN_SERVER_UPLOAD_STREAM_H

/**
 * @file
 * One object as the body of a request, whatever the protocol: from the claim to
 * the index. The upload is the request's state.
 *
 * Threads: those of the request.
 */
#include "server/server_internal.h"

/** Begin, or answer why not. */
void upload_begin(struct http_request *req, struct server *s, const struct object_claim *claim);

/** chunk and abandon of the route. */
enum status upload_chunk(struct http_request *req, void *context, const void *data, size_t *n);
void upload_abandon(struct http_request *req, void *context);

enum upload_outcome {
        UPLOAD_ANSWERED,   /* it was refused, and the client told */
        UPLOAD_STORED,
        UPLOAD_SAME,       /* it was there */
        UPLOAD_INCOMPLETE, /* the rest of a resumable upload is awaited */
};

/**
 * Verify, store, have it indexed.
 * @param content_with_better as good or better is stored: that is UPLOAD_SAME, and else refused.
 * @param size_ret            unpacked bytes that are here.
 */
enum upload_outcome upload_end(struct http_request *req, struct server *s, bool content_with_better, uint64_t *size_ret);

#endif
