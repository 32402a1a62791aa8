/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_FORMATS_OTLP_OTLP_H
#define CAIRN_PROFILE_FORMATS_OTLP_OTLP_H

/**
 * @file
 * OTLP profiles (opentelemetry.proto.profiles.v1development, 1.8.0 and later; otlp_layout.h): requests to and
 * from struct profile, and response bodies.
 *
 * Conversion of a request:
 * - Attributes of resource, scope, profile and sample are merged into labels under their names
 *   (`service.name`); the inner one has precedence. Strings, booleans and numbers become text; arrays, maps and bytes
 * are left out.
 * - A mapping's identity is the first it has of process.executable.build_id.gnu, .go, .htlhash (or .profiling).
 * - Index 0 of every table means "not set"; a table with content in entry 0 is an error.
 * - A sample with timestamps becomes one sample per timestamp with its value, or 1; without them its values are
 *   summed at the profile's time. A sample with neither, or with unequal counts, is rejected; the others are kept.
 * - The type's id is the attribute `cairn.profile.type` of the profile, else derived from its sample and period types.
 * - Location.address is an object address, with return addresses already adjusted to the call
 *   (profile-formats/return_address.h), unless the location attribute `cairn.address.kind` is "file_offset" or "none".
 *   `profile.frame.type` is the kind of code; kernel frames are those with "kernel".
 *
 * Threads: no shared state.
 * Source: opentelemetry-proto 1.11.0; semantic conventions 1.44.0.
 */
#include "common/memory/buf.h"
#include "profile-formats/profile.h"

/**
 * Decode an ExportProfilesServiceRequest. An empty one is a profile without samples.
 * @param ret initialised here; profile_deinit() it on success only.
 * @return ST_BAD_DATA: malformed, an index outside its table, or a sender older than 1.8.0, or one whose version is in
 *         doubt (otlp_layout.h; the text says which); ST_TOO_BIG: a limit of common/limits.h.
 */
enum status otlp_decode(const void *data, size_t n, struct profile *ret, struct error *err) MUST_CHECK;

/**
 * As otlp_decode(), for a request that Cairn has encoded, which is known to have the field numbers of 1.10.0.
 * @param input_bytes  for profile_limit_work(): those of the request in another encoding, or 0 without a limit, for
 *                     batches that Cairn has acknowledged.
 */
enum status otlp_decode_within(const void *data, size_t n, uint64_t input_bytes, struct profile *ret,
                               struct error *err) MUST_CHECK;

/**
 * Append an ExportProfilesServiceRequest that any OTLP receiver accepts. otlp_decode() returns the same profile
 * apart from the order and numbering of its entries. Labels that all samples share become resource attributes.
 */
enum status otlp_encode(const struct profile *p, struct buf *ret, struct error *err) MUST_CHECK;

/** Append an ExportProfilesServiceResponse; with rejected 0 and message NULL the empty body of full success.
 */
void otlp_put_response(struct buf *ret, uint64_t rejected, const char *message);

/**
 * How many samples the receiver rejected, and its text: why, or a warning when it rejected none; "" for none. It may
 * hold control characters.
 */
struct otlp_response {
        uint64_t rejected;
        char message[640];
};

/**
 * Decode an ExportProfilesServiceResponse.
 * @return ST_BAD_DATA: not an ExportProfilesServiceResponse.
 */
enum status otlp_read_response(const void *data, size_t n, struct otlp_response *ret, struct error *err) MUST_CHECK;

/** Append a google.rpc.Status, the body of every error. code is a gRPC code: 3 invalid argument, 8 exhausted, ...
 */
void otlp_put_status(struct buf *ret, uint32_t code, const char *message);

#endif
