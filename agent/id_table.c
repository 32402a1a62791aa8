/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/id_table.h"

#include <stdlib.h>
#include <string.h>

void id_table_deinit(struct id_table *t)
{
        free(t->slots);
        *t = (struct id_table){ 0 };
}

static struct id_table_slot *slot_of(const struct id_table *t, const struct hash128 *hash)
{
        uint64_t start;

        memcpy(&start, hash->bytes, sizeof start);
        for (size_t i = start & (t->capacity - 1);; i = (i + 1) & (t->capacity - 1)) {
                struct id_table_slot *s = &t->slots[i];

                if (!s->used || memcmp(&s->hash, hash, sizeof *hash) == 0)
                        return s;
        }
}

bool id_table_find(const struct id_table *t, const void *key, size_t n, uint32_t *ret)
{
        struct hash128 hash = hash128(key, n);
        const struct id_table_slot *s = t->capacity ? slot_of(t, &hash) : NULL;

        if (!s || !s->used)
                return false;
        *ret = s->id;
        return true;
}

static bool grow(struct id_table *t)
{
        struct id_table old = *t, bigger = { .capacity = old.capacity ? 2 * old.capacity : 256, .count = old.count };

        bigger.slots = calloc(bigger.capacity, sizeof *bigger.slots);
        if (!bigger.slots)
                return false;
        for (size_t i = 0; i < old.capacity; i++)
                if (old.slots[i].used)
                        *slot_of(&bigger, &old.slots[i].hash) = old.slots[i];
        free(old.slots);
        *t = bigger;
        return true;
}

bool id_table_put(struct id_table *t, const void *key, size_t n, uint32_t id)
{
        struct hash128 hash = hash128(key, n);

        struct id_table_slot *s;

        if (3 * (t->count + 1) > 2 * t->capacity && !grow(t))
                return false;
        s = slot_of(t, &hash);
        t->count += !s->used;
        *s = (struct id_table_slot){ .hash = hash, .id = id, .used = true };
        return true;
}
