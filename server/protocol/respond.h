/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_PROTOCOL_RESPOND_H
#define CAIRN_SERVER_PROTOCOL_RESPOND_H

/**
 * @file
 * What handlers of many routes have in common: the build-id of a path, and responses in JSON.
 */
#include "common/build_id.h"
#include "http/http_server.h"

/** The {id} of the path as a build-id; responds with 400 and returns false when it is malformed. */
bool get_route_build_id(struct http_request *req, struct build_id *ret);

/** Respond with JSON. @param body  bytes taken */
void respond_json(struct http_request *req, struct buf *body);
/** respond_json() if st is ST_OK, else http_fail(). @param body  bytes taken in both cases */
void respond_result(struct http_request *req, enum status st, struct buf *body, const struct error *err);

#endif
