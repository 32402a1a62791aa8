/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_KEY_MAP_H
#define CAIRN_PROFILE_STORE_KEY_MAP_H

/**
 * @file
 * A hash map from 128-bit keys (stack ids, batch ids, widened location ids)
 * to numbers. A sender can choose content whose ids share bits, so the slot is
 * by keyed_hash(). Not a struct hash_table: keys are in the slots, which takes
 * half the memory where millions of rows are known.
 *
 * Memory: 25 bytes an entry, between half and seven eighths full.
 * Threads: one writer, or any number of readers.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/cleanup.h"
#include "common/error.h"
#include "common/hash.h"

struct key_map_slot {
        struct hash128 key;
        uint64_t value;
};

struct key_map {
        struct key_map_slot *slots;
        uint8_t *used;
        size_t count, capacity; /* capacity is 0 or a power of two */
};

void key_map_deinit(struct key_map *m);
#define _cleanup_key_map_ _cleanup_(key_map_deinit)

/** The value of a key, or NULL. Valid until the next key_map_put(). */
uint64_t *key_map_find(const struct key_map *m, const struct hash128 *key);

/** The key's value if it is there (added_ret false), else a new entry with this value. Value pointer as in find. */
enum status key_map_put(struct key_map *m, const struct hash128 *key, uint64_t value, bool *added_ret,
                        uint64_t **value_ret, struct error *err) MUST_CHECK;

/** Put every key of from that into does not have, with the value 0. */
enum status key_map_merge(struct key_map *into, const struct key_map *from, struct error *err) MUST_CHECK;

/** A 64-bit id as a key. */
struct hash128 key_of_u64(uint64_t id);

static inline bool hash128_equal(const struct hash128 *a, const struct hash128 *b)
{
        return __builtin_memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

#endif
