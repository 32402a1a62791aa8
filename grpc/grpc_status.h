/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_GRPC_GRPC_STATUS_H
#define CAIRN_GRPC_GRPC_STATUS_H

/**
 * @file
 * gRPC status codes, and the values of gRPC headers: grpc-timeout, grpc-message, grpc-status-details-bin.
 *
 * Source: gRPC over HTTP/2 (PROTOCOL-HTTP2.md); google/rpc/code.proto, status.proto, error_details.proto; RFC 4648, 4.
 */
#include <stdbool.h>
#include <stdint.h>

#include "common/memory/buf.h"

enum grpc_code {
        GRPC_OK = 0,
        GRPC_CANCELLED = 1,
        GRPC_UNKNOWN = 2,
        GRPC_INVALID_ARGUMENT = 3,
        GRPC_DEADLINE_EXCEEDED = 4,
        GRPC_NOT_FOUND = 5,
        GRPC_ALREADY_EXISTS = 6,
        GRPC_PERMISSION_DENIED = 7,
        GRPC_RESOURCE_EXHAUSTED = 8,
        GRPC_FAILED_PRECONDITION = 9,
        GRPC_ABORTED = 10,
        GRPC_OUT_OF_RANGE = 11,
        GRPC_UNIMPLEMENTED = 12,
        GRPC_INTERNAL = 13,
        GRPC_UNAVAILABLE = 14,
        GRPC_DATA_LOSS = 15,
        GRPC_UNAUTHENTICATED = 16,
};
#define GRPC_CODES 17

/** The code of a failure. ST_BUSY is UNAVAILABLE: retry later. */
enum grpc_code grpc_code_from_status(enum status st);

/** The equivalent HTTP status, as mapped by google/rpc/code.proto. */
unsigned grpc_code_to_http(enum grpc_code code);

/** grpc-timeout: at most 8 digits and a unit (H, M, S, m, u, n). @param ns_ret at most about 11,000 years: clamped. */
bool parse_grpc_timeout(const char *text, int64_t *ns_ret);

/** Append text as a value of grpc-message: percent-encoded outside of printable ASCII. */
void put_grpc_message(struct buf *to, const char *text);

/**
 * Append a google.rpc.Status as base64, a value of grpc-status-details-bin.
 * @param retry_after_s  with a google.rpc.RetryInfo of this delay; 0: without.
 */
void put_grpc_status_details(struct buf *to, enum grpc_code code, const char *text, uint64_t retry_after_s);

#endif
