/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SENDING_BATCH_SPLIT_H
#define CAIRN_SENDING_BATCH_SPLIT_H

/**
 * @file
 * Splitting OTLP requests that exceed the receiver's size limit.
 *
 * The ids of the halves are derived from the id of the whole, and the split
 * point from its content. Splitting the same batch again, after a crash in
 * between, yields the same halves under the same ids, so they count once.
 *
 * Threads: no shared state.
 */
#include "common/hash.h"
#include "common/memory/buf.h"
#include "profile-formats/profile.h"

struct batch_part {
        struct hash128 id;
        struct buf packed; /* owned */
};

/** Encode a profile as gzip-compressed OTLP into ret, initialized here. ST_TOO_BIG past LIMIT_HTTP_BODY_BYTES. */
enum status batch_pack(const struct profile *p, struct buf *ret, struct error *err) MUST_CHECK;

/** @return ST_TOO_BIG when the batch has a single sample; ret is then untouched. */
enum status batch_split(const struct hash128 *id, const void *packed, size_t n, struct batch_part ret[static 2],
                        struct error *err) MUST_CHECK;

#endif
