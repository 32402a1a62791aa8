/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_HASH_ID_TABLE_H
#define CAIRN_COMMON_HASH_ID_TABLE_H

/**
 * @file
 * Map from byte strings to 32-bit ids.
 *
 * Keys are not stored: a key is identified by its 128-bit hash (common/hash.h),
 * so a lookup needs no key comparison and the caller need not keep the key. The
 * slots are a common/hash_table over a keyed hash of that digest.
 *
 * Threads: one writer, or any number of readers.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/cleanup.h"
#include "common/hash/hash_table.h"
#include "common/hash.h"

struct id_table_entry {
        struct hash128 digest;
        uint32_t id;
};

/** Zeroed: empty. */
struct id_table {
        struct hash_table by_digest;
        struct id_table_entry *entries; /* owned */
        size_t count, capacity;
};

/** Memory of one entry, slots included, for owners that account for it. */
#define ID_TABLE_ENTRY_BYTES (sizeof(struct id_table_entry) + 2 * sizeof(struct hash_slot))

void id_table_deinit(struct id_table *t);

/** False when the key has no id; ret untouched. */
bool id_table_find(const struct id_table *t, const void *key, size_t n, uint32_t *ret) MUST_CHECK;

/** Set the id of a key, replacing an earlier one. False without memory. */
bool id_table_put(struct id_table *t, const void *key, size_t n, uint32_t id);

#endif
