/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_INGEST_H
#define CAIRN_SERVER_INGEST_H

/**
 * @file
 * What the ingest routes share: the identity of a batch, the append, the
 * counting of both outcomes.
 */
#include "http/server.h"
#include "server/server_internal.h"

/**
 * Identity of the request's batch: the header X-Cairn-Batch (32 hexadecimal
 * digits), else a hash of the unpacked body, the path with its query, and the
 * token. ST_USAGE for a malformed header.
 */
enum status ingest_batch_id(const struct http_request *req, struct hash128 *ret, struct error *err) MUST_CHECK;

/**
 * Reject samples that may not be stored (profile_reject_unacceptable()), append the others and count both. When it
 * returns ST_OK these are durable.
 */
enum status ingest_append(struct server *s, struct profile *profile, struct hash128 batch_id, struct error *err) MUST_CHECK;

/** Count a refused request by its reason. */
void ingest_count_failure(enum status st);

/**
 * Count, and answer. A full disk or memory is 503 with Retry-After: the batch is
 * good, and OTLP clients send it again after 429, 502, 503 and 504 only.
 */
void ingest_fail(struct http_request *req, enum status st, const struct error *err);

#endif
