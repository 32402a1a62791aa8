/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DEBUGINFO_STORE_OBJECT_RECORD_H
#define CAIRN_DEBUGINFO_STORE_OBJECT_RECORD_H

/**
 * @file
 * Encoding of a stored object's key and record
 * (docs/formats/debuginfo-store.md).
 *
 * Threads: any.
 */
#include "common/memory/buf.h"
#include "debuginfo-store/debuginfo_store.h"

#define RECORD_KEY_MAX (1 + BUILD_ID_MAX + 1)

/** Returns the key's size. */
size_t record_make_key(uint8_t out[static RECORD_KEY_MAX], const struct build_id *id, enum object_kind kind);

void record_encode(struct buf *to, const struct stored_object *o);

/** Decode untrusted bytes. @return ST_BAD_DATA: damaged; ST_UNSUPPORTED: a newer version. */
enum status record_decode(const void *key, size_t key_size, const void *value, size_t value_size,
                          struct stored_object *ret, struct error *err) MUST_CHECK;

#endif
