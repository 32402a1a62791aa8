/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_ROWS_KEY_MAP_H
#define CAIRN_PROFILE_STORE_ROWS_KEY_MAP_H

/**
 * @file
 * Hash map from 128-bit keys (stack ids, batch ids, widened location ids) to
 * 64-bit values. Open addressing with linear probing by keyed_hash_id(), since a
 * sender can choose content whose ids share bits. Not a struct hash_table: the
 * keys are in the slots, which halves the memory of a map with millions of keys.
 *
 * Memory: 25 bytes per slot, of which between seven sixteenths and seven eighths
 * are in use; reserved from the budget of `memory.use`, unless that is MEMORY_BASE.
 * Threads: one writer, or any number of readers.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/cleanup.h"
#include "common/error.h"
#include "common/hash.h"
#include "common/memory/memory_budget.h"

struct key_map_slot {
        struct hash128 key;
        uint64_t value;
};

#define KEY_MAP_SLOT_BYTES (sizeof(struct key_map_slot) + 1)

/* A zeroed map is empty and usable; set memory.use before the first key_map_put(). */
struct key_map {
        struct key_map_slot *slots;
        uint8_t *tags;          /* of each slot: 0 free, else bits of its key's hash, to skip most key comparisons */
        size_t count, capacity; /* capacity is 0 or a power of two */
        struct memory_reservation memory;
};

/** Free the slots and empty the map; it stays usable, with the same memory.use. */
void key_map_deinit(struct key_map *m);
#define _cleanup_key_map_ _cleanup_(key_map_deinit)

/** Find the value of a key; NULL if absent. Valid until the next key_map_put(). */
uint64_t *key_map_find(const struct key_map *m, const struct hash128 *key);

/** Maximum number of keys of one batch lookup. */
#define KEY_MAP_BATCH 32
static inline uint32_t key_map_batch_size(size_t left)
{
        return left < KEY_MAP_BATCH ? (uint32_t)left : KEY_MAP_BATCH;
}

/**
 * Look up several keys at once: in a map larger than the CPU caches several times faster than one by one.
 * @param ret  for each key as from key_map_find().
 */
void key_map_find_batch(const struct key_map *m, const struct hash128 *keys, size_t count, uint64_t **ret);
/** The same for 64-bit ids, whose keys are those of make_u64_key(). */
void key_map_find_ids(const struct key_map *m, const uint64_t *ids, size_t count, uint64_t **ret);

/** Make room for count keys in all, so that adding them does not hash them again. Errors as of key_map_put(). */
enum status key_map_reserve(struct key_map *m, size_t count, struct error *err) MUST_CHECK;

/**
 * Find the key's value (added_ret false), or add the key with this value.
 * @param value_ret  pointer as from key_map_find().
 * @return ST_OK; ST_NO_MEMORY, also when the budget refuses memory, except for MEMORY_QUERIES, which returns the status
 *         of memory_reserve(). The map is unchanged on failure.
 */
enum status key_map_put(struct key_map *m, const struct hash128 *key, uint64_t value, bool *added_ret,
                        uint64_t **value_ret, struct error *err) MUST_CHECK;

/** Add each key of `from` that `into` lacks, with the value 0. */
enum status key_map_merge(struct key_map *into, const struct key_map *from, struct error *err) MUST_CHECK;

/** A 64-bit id as a key. */
struct hash128 make_u64_key(uint64_t id);

static inline bool hash128_equal(const struct hash128 *a, const struct hash128 *b)
{
        return __builtin_memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

#endif
