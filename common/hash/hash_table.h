/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_HASH_HASH_TABLE_H
#define CAIRN_COMMON_HASH_HASH_TABLE_H

/**
 * @file
 * Hash table for untrusted keys: open addressing with linear probing over a keyed hash, so that a sender cannot choose
 * keys that collide.
 *
 * The table maps keys to entry numbers; entries and keys are in an array of the caller. A slot keeps 32 bits of its
 * key's hash: growing and removing never read a key, and a lookup compares about one key.
 *
 *     uint32_t hash = hash_table_hash(text, size), i;
 *
 *     if (hash_table_find(&t, hash, equal_text, items, text, size, &i))
 *             return i;
 *     st = hash_table_reserve(&t, err);      (nothing has changed when it fails)
 *     ... append the item as number i ...
 *     hash_table_insert(&t, hash, i);
 *
 * The hash is SipHash-1-3 with a 128-bit key drawn once per process. XXH3 was rejected, with a seed and with a random
 * secret alike: for keys of 4 to 8 bytes both are a public function of "key XOR one unknown word", so differences in
 * keys carry over to differences in hashes whatever the secret is, and nothing is guaranteed for longer keys either.
 * SipHash is a pseudorandom function designed for this use. Measured (tests/bench/run hash_table): 8.5, 12 and 35 ns
 * for 8, 24 and 120 bytes against 4.9, 5.2 and 9.0 ns of XXH3 with a secret; interning a string in a profile takes
 * about 280 ns either way.
 *
 * With `arena` set, slots are allocated there.
 *
 * A zeroed table is empty and usable. At most half of the slots are in use, and there are at most HASH_TABLE_MAX
 * entries; callers bound them further for their kind of entry (common/limits.h).
 *
 * Threads: one writer, or any number of readers.
 * Source: Aumasson, Bernstein: SipHash: a fast short-input PRF, 2012.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "common/memory/arena.h"
#include "common/cleanup.h"
#include "common/error.h"

#define HASH_TABLE_MAX (1u << 30)

struct hash_slot {
        uint32_t hash;
        uint32_t entry; /* number + 1; 0: free */
};

struct hash_table {
        struct hash_slot *slots; /* owned, or in the arena */
        uint32_t slot_count;     /* 0 or a power of two */
        uint32_t count;
        struct arena *arena; /* borrowed; NULL: the slots are allocated with malloc */
};

/** Whether entry has this key. @param context from the caller of hash_table_find(). */
typedef bool hash_table_equal(const void *context, uint32_t entry, const void *key, size_t size);

/** Keyed hash of n bytes. It differs between processes, so never store it. */
uint64_t keyed_hash(const void *data, size_t n);

/** SipHash-1-3 with the given 16-byte key: what keyed_hash() uses. */
uint64_t siphash13_hash(const uint8_t key[16], const void *data, size_t n);

extern unsigned __int128 id_hash_key[3]; /* set before main() */

/**
 * Keyed hash of an id of 16 bytes, several times faster than keyed_hash(): two different ids, chosen without knowledge
 * of the key, share any n bits of it with the probability 2^-n. Its bits must not be shown to who chooses the ids.
 *
 * That probability says nothing of many ids at once: with one key in some thousands, the product puts evenly spaced ids
 * in a few buckets. The last step is a bijection, which leaves the probability as it is and distributes such ids evenly
 * as well.
 * Source: pair-multiply-shift; Thorup, "High Speed Hashing for Integers and Strings".
 */
static inline uint64_t keyed_hash_id(const uint8_t id[16])
{
        uint64_t low, high, hash;

        memcpy(&low, id, sizeof low);
        memcpy(&high, id + sizeof low, sizeof high);
        hash = (uint64_t)(((id_hash_key[0] + low) * (id_hash_key[1] + high) + id_hash_key[2]) >> 64);
        hash = (hash ^ hash >> 32) * 0x9e3779b97f4a7c15u; /* 2^64 divided by the golden ratio */
        return hash ^ hash >> 32;
}

/** The bits of keyed_hash() that a table uses. */
static inline uint32_t hash_table_hash(const void *key, size_t size)
{
        return (uint32_t)keyed_hash(key, size);
}

/** Free the slots and empty the table; it stays usable, with the same arena. */
void hash_table_deinit(struct hash_table *t);

/** Remove all entries, keep the memory. */
void hash_table_clear(struct hash_table *t);

/**
 * Make room for one more entry.
 * @return ST_OK; ST_TOO_BIG at HASH_TABLE_MAX entries; ST_NO_MEMORY, also if the arena is full. The table is unchanged
 *         on failure.
 */
enum status hash_table_reserve(struct hash_table *t, struct error *err) MUST_CHECK;

/** Add an entry whose key is not in the table. Call hash_table_reserve() first. */
void hash_table_insert(struct hash_table *t, uint32_t hash, uint32_t entry);

/** Remove this entry. False if the table does not contain it with this hash. */
bool hash_table_remove(struct hash_table *t, uint32_t hash, uint32_t entry);

/** Renumber an entry (when the caller moves its last entry into a gap). False as for hash_table_remove(). */
bool hash_table_renumber(struct hash_table *t, uint32_t hash, uint32_t entry, uint32_t new_entry);

/** Slots visited by the longest lookup of an entry; 0 for an empty table. O(slots). */
uint32_t hash_table_longest_probe(const struct hash_table *t);

/** The entry with this key. False when there is none. entry_ret is untouched then. */
static inline bool hash_table_find(const struct hash_table *t, uint32_t hash, hash_table_equal *equal,
                                   const void *context, const void *key, size_t size, uint32_t *entry_ret)
{
        uint32_t mask = t->slot_count - 1;

        if (!t->count)
                return false;
        for (uint32_t at = hash & mask; t->slots[at].entry; at = (at + 1) & mask) {
                if (t->slots[at].hash == hash && equal(context, t->slots[at].entry - 1, key, size)) {
                        *entry_ret = t->slots[at].entry - 1;
                        return true;
                }
        }
        return false;
}

#endif
