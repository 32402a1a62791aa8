/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_ROWS_IDENTITY_H
#define CAIRN_PROFILE_STORE_ROWS_IDENTITY_H

/**
 * @file
 * Ids of locations and stacks derived from their content, and the column spelling of label keys. Both are stored in the
 * tables and must not change (docs/formats/tables.md, 3 and 4).
 *
 * Threads: no shared state.
 */
#include "common/hash.h"
#include "common/memory/buf.h"
#include "profile-formats/profile.h"

struct sent_frame { /* a frame resolved by the sender; its names are hashed as sent, and then demangled */
        const char *function, *linkage_name, *file;
        int64_t line;
        int64_t start_line; /* of the function, 0 unknown; not part of the identity */
};

struct location_identity {
        const struct build_id *build_id; /* NULL or size 0: unknown */
        const char *mapping;             /* used only without a build-id */
        enum profile_address_kind kind;
        uint64_t address;
        bool is_kernel;
        const struct sent_frame *frames;
        uint32_t frame_count;
};

/**
 * Normalize a location: frames sent without a build-id are identified by their text alone, since an address of JIT code
 * or an interpreter is valid only in its process.
 */
void location_identity_normalize(struct location_identity *l);

/** Compute the 64-bit id of a normalized location; scratch is overwritten. */
enum status location_identity_hash(const struct location_identity *l, struct buf *scratch, uint64_t *ret,
                                   struct error *err) MUST_CHECK;

/** The 128-bit id of a stack: XXH3 of its location ids, little-endian, leaf first. */
struct hash128 hash_stack_identity(const uint64_t *location_ids, size_t count);

/**
 * Column spelling of a label key: lower case in ASCII; each ASCII character outside [a-z0-9_], and each byte of a
 * control character or of invalid UTF-8, becomes '_'. Other characters stay. out holds strlen(key) + 1 bytes.
 */
void normalize_label_key(const char *key, char *out);

#endif
