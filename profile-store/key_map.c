/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-store/key_map.h"

#include <assert.h>
#include <string.h>

#include "common/hash_table.h"

/* Bits of the hash that do not choose the slot, and never 0: nearly all keys that differ are told apart by their tags.
 */
static uint8_t make_key_tag(uint64_t hash)
{
        return (uint8_t)(hash >> 56) | 1;
}

static size_t find_key_slot(const struct key_map *m, const struct hash128 *key, uint8_t *tag_ret)
{
        uint64_t hash = keyed_hash(key->bytes, sizeof key->bytes);
        uint8_t tag = make_key_tag(hash);
        size_t i = hash & (m->capacity - 1);

        assert(m->capacity && m->count < m->capacity);
        while (m->tags[i] && (m->tags[i] != tag || !hash128_equal(&m->slots[i].key, key)))
                i = (i + 1) & (m->capacity - 1);
        if (tag_ret)
                *tag_ret = tag;
        return i;
}

void key_map_deinit(struct key_map *m)
{
        free(m->slots);
        free(m->tags);
        if (m->memory.use != MEMORY_BASE)
                memory_release(&m->memory);
        *m = (struct key_map){ .memory.use = m->memory.use };
}

uint64_t *key_map_find(const struct key_map *m, const struct hash128 *key)
{
        size_t i;

        if (!m->count)
                return NULL;
        i = find_key_slot(m, key, NULL);
        return m->tags[i] ? &m->slots[i].value : NULL;
}

static enum status grow_key_map(struct key_map *m, struct error *err)
{
        struct key_map bigger = { .count = m->count,
                                  .capacity = m->capacity ? m->capacity * 2 : 64,
                                  .memory.use = m->memory.use };

        enum status st = m->memory.use == MEMORY_BASE
                                 ? ST_OK
                                 : memory_reserve(&bigger.memory, bigger.capacity * KEY_MAP_SLOT_BYTES, err);

        if (st) /* to a query the refusal says how to narrow it; other users wait for memory of either kind */
                return m->memory.use == MEMORY_QUERIES ? st : ST_NO_MEMORY;
        bigger.slots = reallocarray(NULL, bigger.capacity, sizeof *bigger.slots);
        bigger.tags = calloc(bigger.capacity, 1);
        if (!bigger.slots || !bigger.tags) {
                key_map_deinit(&bigger);
                return error_no_memory(err);
        }
        for (size_t i = 0; i < m->capacity; i++) {
                if (m->tags[i]) {
                        size_t to = find_key_slot(&bigger, &m->slots[i].key, NULL);

                        bigger.slots[to] = m->slots[i];
                        bigger.tags[to] = m->tags[i];
                }
        }
        key_map_deinit(m);
        *m = bigger;
        key_map_check(m);
        return ST_OK;
}

void key_map_check(const struct key_map *m)
{
#if KEY_MAP_CHECKS
        size_t used = 0;

        assert((m->capacity & (m->capacity - 1)) == 0);
        assert(m->count <= m->capacity / 8 * 7);
        for (size_t i = 0; i < m->capacity; i++) {
                used += m->tags[i] != 0;
                assert(!m->tags[i] || find_key_slot(m, &m->slots[i].key, NULL) == i);
        }
        assert(used == m->count);
#else
        (void)m;
#endif
}

enum status key_map_put(struct key_map *m, const struct hash128 *key, uint64_t value, bool *added_ret,
                        uint64_t **value_ret, struct error *err)
{
        uint8_t tag;
        bool added;
        size_t i;

        if (m->count >= m->capacity / 8 * 7) {
                enum status st = grow_key_map(m, err);

                if (st)
                        return st;
        }
        i = find_key_slot(m, key, &tag);
        added = !m->tags[i];
        if (added) {
                m->slots[i] = (struct key_map_slot){ .key = *key, .value = value };
                m->tags[i] = tag;
                m->count++;
        }
        if (added_ret)
                *added_ret = added;
        if (value_ret)
                *value_ret = &m->slots[i].value;
        return ST_OK;
}

enum status key_map_merge(struct key_map *into, const struct key_map *from, struct error *err)
{
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < from->capacity; i++) {
                if (from->tags[i])
                        st = key_map_put(into, &from->slots[i].key, 0, NULL, NULL, err);
        }
        return st;
}

struct hash128 make_u64_key(uint64_t id)
{
        struct hash128 key = { 0 };

        memcpy(key.bytes, &id, sizeof id);
        return key;
}
