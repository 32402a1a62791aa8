/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_PAYLOAD_H
#define CAIRN_PROFILE_STORE_PAYLOAD_H

/**
 * @file
 * A profile as the raw queue keeps it: one zstd frame, with its unpacked size,
 * of an OTLP ExportProfilesServiceRequest.
 *
 * Threads: no shared state.
 */
#include "common/buf.h"
#include "profile-formats/profile.h"

enum status payload_encode(const struct profile *p, struct buf *ret, struct error *err) MUST_CHECK;

/** @param ret initialised here; profile_deinit() it on success only. */
enum status payload_decode(const void *data, size_t n, struct profile *ret, struct error *err) MUST_CHECK;

#endif
