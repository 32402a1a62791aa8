/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_FORMATS_OTLP_OTLP_JSON_H
#define CAIRN_PROFILE_FORMATS_OTLP_OTLP_JSON_H

/**
 * @file
 * OTLP profiles in JSON: requests are transcoded to protobuf for otlp_decode(), responses are written directly.
 *
 * Field names are in lowerCamelCase only; numbers of 64 bits may be quoted; trace and span ids are hexadecimal; unknown
 * members are skipped.
 * Source: OTLP specification 1.11.0, "JSON Protobuf Encoding".
 */
#include "profile-formats/otlp/otlp.h"

/** As otlp_decode(), for a request in JSON; ST_TOO_BIG also past LIMIT_HTTP_BODY_BYTES of protobuf. */
enum status otlp_json_decode(const void *data, size_t n, struct profile *ret, struct error *err) MUST_CHECK;

/** As otlp_put_response() and otlp_put_status(). */
void otlp_json_put_response(struct buf *ret, uint64_t rejected, const char *message);
void otlp_json_put_status(struct buf *ret, uint32_t code, const char *message);

#endif
