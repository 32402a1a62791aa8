/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_HASH_NUMBER_TABLE_H
#define CAIRN_COMMON_HASH_NUMBER_TABLE_H

/**
 * @file
 * Hash table from nonzero 32-bit numbers to 32-bit values, for hot paths: 8 bytes per slot, at most half of them in
 * use. Keys are assigned by this program, so multiplicative hashing suffices; keys chosen by outsiders need
 * common/hash/hash_table.h.
 *
 * A zeroed table is empty and usable.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct number_slot {
        uint32_t key, value; /* key 0: free */
};

struct number_table {
        struct number_slot *slots; /* owned */
        uint32_t slot_count;       /* 0 or a power of two */
        uint32_t count;
        unsigned shift;
};

void number_table_deinit(struct number_table *t);

/** Remove all keys, keep the memory. */
void number_table_clear(struct number_table *t);

static inline uint32_t number_table_home(const struct number_table *t, uint32_t key)
{
        return key * 2654435769u >> t->shift;
}

static inline uint32_t number_table_slot(const struct number_table *t, uint32_t key)
{
        uint32_t at = number_table_home(t, key);

        while (t->slots[at].key != key && t->slots[at].key)
                at = (at + 1) & (t->slot_count - 1);
        return at;
}

/** Prefetch the slot of a key. The table must not be empty. */
static inline void number_table_expect(const struct number_table *t, uint32_t key)
{
        __builtin_prefetch(&t->slots[number_table_home(t, key)]);
}

static inline bool number_table_get(const struct number_table *t, uint32_t key, uint32_t *ret)
{
        const struct number_slot *s;

        if (!t->count)
                return false;
        s = &t->slots[number_table_slot(t, key)];
        if (!s->key)
                return false;
        *ret = s->value;
        return true;
}

/** Set the value of a key that is not in the table. False when out of memory. */
bool number_table_add(struct number_table *t, uint32_t key, uint32_t value);

#endif
