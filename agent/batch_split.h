/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_AGENT_BATCH_SPLIT_H
#define CAIRN_AGENT_BATCH_SPLIT_H

/**
 * @file
 * OTLP requests that are larger than a receiver takes, cut in two.
 *
 * The ids of the halves follow from the whole's, and the cut from its content:
 * whoever cuts the same batch again, after a crash in between, sends the same
 * halves under the same ids, and they count once.
 * Threads: no shared state.
 */
#include "common/buf.h"
#include "common/hash.h"
#include "profile-formats/profile.h"

struct batch_part {
        struct hash128 id;
        struct buf packed; /* owned */
};

/** gzip'd OTLP of a profile into ret, initialised here. ST_TOO_BIG: it is over LIMIT_HTTP_BODY_BYTES. */
enum status batch_pack(const struct profile *p, struct buf *ret, struct error *err) MUST_CHECK;

/** @return ST_TOO_BIG when it has one sample only; ret then untouched. */
enum status batch_split(const struct hash128 *id, const void *packed, size_t n, struct batch_part ret[static 2],
                        struct error *err) MUST_CHECK;

#endif
