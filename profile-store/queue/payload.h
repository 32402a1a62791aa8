/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_QUEUE_PAYLOAD_H
#define CAIRN_PROFILE_STORE_QUEUE_PAYLOAD_H

/**
 * @file
 * The payload of a raw queue record: an OTLP ExportProfilesServiceRequest as one
 * zstd frame that contains its decompressed size.
 *
 * Threads: no shared state.
 */
#include "common/memory/buf.h"
#include "profile-formats/profile.h"

enum status payload_encode(const struct profile *p, struct buf *ret, struct error *err) MUST_CHECK;

/** @param ret initialised here; profile_deinit() it on success only. */
enum status payload_decode(const void *data, size_t n, struct profile *ret, struct error *err) MUST_CHECK;

#endif
