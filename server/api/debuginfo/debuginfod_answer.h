/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_API_DEBUGINFO_DEBUGINFOD_ANSWER_H
#define CAIRN_SERVER_API_DEBUGINFO_DEBUGINFOD_ANSWER_H

/**
 * @file
 * Headers and bookkeeping of responses to debuginfod clients.
 */
#include "server/core/server_internal.h"

/** Record that a client fetched this object. A failure is logged only. */
void record_object_use(struct debuginfo_space *s, const struct build_id *id, enum object_kind kind);

/**
 * Set X-DEBUGINFOD-SIZE and compare with the request's X-DEBUGINFOD-MAXSIZE. Source: elfutils, debuginfod(8).
 * @param size  of the response body; 0: not yet known.
 * @return false when the body is too large: the request was answered with 406.
 */
bool check_max_size(struct http_request *req, uint64_t size) MUST_CHECK;

#endif
