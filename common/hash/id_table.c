/* SPDX-License-Identifier: Apache-2.0 */
#include "common/hash/id_table.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory/array.h"

void id_table_deinit(struct id_table *t)
{
        hash_table_deinit(&t->by_digest);
        free(t->entries);
        *t = (struct id_table){ 0 };
}

static bool equal_digest(const void *context, uint32_t entry, const void *key, size_t size)
{
        const struct id_table *t = context;

        return memcmp(&t->entries[entry].digest, key, size) == 0;
}

static bool find_id_entry(const struct id_table *t, uint32_t hash, const struct hash128 *digest, uint32_t *ret)
{
        return hash_table_find(&t->by_digest, hash, equal_digest, t, digest, sizeof *digest, ret);
}

bool id_table_find(const struct id_table *t, const void *key, size_t n, uint32_t *ret)
{
        struct hash128 digest = hash_bytes128(key, n);
        uint32_t i;

        if (!find_id_entry(t, hash_table_hash(&digest, sizeof digest), &digest, &i))
                return false;
        *ret = t->entries[i].id;
        return true;
}

bool id_table_put(struct id_table *t, const void *key, size_t n, uint32_t id)
{
        struct hash128 digest = hash_bytes128(key, n);
        uint32_t hash = hash_table_hash(&digest, sizeof digest), i;

        assert(t->count == t->by_digest.count);
        if (find_id_entry(t, hash, &digest, &i)) {
                t->entries[i].id = id;
                return true;
        }
        if (!array_reserve(&t->entries, &t->capacity, t->count) || hash_table_reserve(&t->by_digest, NULL))
                return false;
        hash_table_insert(&t->by_digest, hash, (uint32_t)t->count);
        t->entries[t->count++] = (struct id_table_entry){ .digest = digest, .id = id };
        return true;
}
