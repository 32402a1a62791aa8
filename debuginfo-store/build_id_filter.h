/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DEBUGINFO_STORE_BUILD_ID_FILTER_H
#define CAIRN_DEBUGINFO_STORE_BUILD_ID_FILTER_H

/**
 * @file
 * A published filter of build-ids: a set in about 9 bits for each, which contains all of them and one of 256 others.
 * With it a service does not ask an upstream for what that does not have. Format: docs/formats/build-id-filter.md
 *
 * Threads: any; a filter is immutable.
 * Source: Graf and Lemire, Binary Fuse Filters: Fast and Smaller Than Xor Filters, 2022 (3-wise, 8 bits).
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/build_id.h"
#include "common/error.h"
#include "common/memory/buf.h"

#define BUILD_ID_FILTER_HEADER_BYTES 48

struct build_id_filter {
        uint64_t seed;
        uint64_t count;          /* build-ids in it */
        uint32_t segment_length; /* fingerprints, a power of two */
        uint32_t segment_count;  /* positions at which the first fingerprint of a build-id may be; two more follow */
        const uint8_t *fingerprints;
};

/** What the filter stores of a build-id. */
uint64_t build_id_filter_key(const struct build_id *id);

/**
 * Append the file of a filter.
 * @param keys  of build_id_filter_key(), in any order; changed.
 * @param count at most LIMIT_FILTER_IDS.
 */
enum status build_id_filter_write(uint64_t *keys, size_t count, struct buf *to, struct error *err) MUST_CHECK;

/** Check a file and find its parts. @param bytes borrowed by ret. @return ST_BAD_DATA, ST_UNSUPPORTED (its version). */
enum status build_id_filter_open(const void *bytes, size_t n, struct build_id_filter *ret,
                                 struct error *err) MUST_CHECK;

/** False: the build-id is not in the set. */
bool build_id_filter_may_contain(const struct build_id_filter *f, const struct build_id *id);

#endif
