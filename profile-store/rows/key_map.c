/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-store/rows/key_map.h"

#include <assert.h>
#include <string.h>

#include "common/debug_check.h"
#include "common/hash/hash_table.h"
#include "common/memory/huge_pages.h"

#define CAPACITY_MIN 64

/* Hash bits that do not select the slot, never 0: nearly all unequal keys are told apart by their tags. */
static uint8_t make_key_tag(uint64_t hash)
{
        return (uint8_t)(hash >> 56) | 1;
}

/* The first slot, from i on, that is free or has the tag. */
static size_t find_tagged_slot(const struct key_map *m, size_t i, uint8_t tag)
{
        assert(m->capacity && m->count < m->capacity);
        while (m->tags[i] && m->tags[i] != tag)
                i = (i + 1) & (m->capacity - 1);
        return i;
}

/* The slot of the key, or the free slot for it, searching from slot i on. */
static size_t find_slot_from(const struct key_map *m, size_t i, uint8_t tag, const struct hash128 *key)
{
        for (;; i = (i + 1) & (m->capacity - 1)) {
                i = find_tagged_slot(m, i, tag);
                if (!m->tags[i] || hash128_equal(&m->slots[i].key, key))
                        return i;
        }
}

static size_t find_key_slot(const struct key_map *m, const struct hash128 *key, uint8_t *tag_ret)
{
        uint64_t hash = keyed_hash_id(key->bytes);
        uint8_t tag = make_key_tag(hash);

        if (tag_ret)
                *tag_ret = tag;
        return find_slot_from(m, hash & (m->capacity - 1), tag, key);
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

/* Each pass prefetches what the next one reads, so that the cache misses of all keys overlap. */
void key_map_find_batch(const struct key_map *m, const struct hash128 *keys, size_t count, uint64_t **ret)
{
        size_t slots[KEY_MAP_BATCH];
        uint8_t tags[KEY_MAP_BATCH];

        assert(count <= KEY_MAP_BATCH);
        for (size_t i = 0; i < count && m->count; i++) {
                uint64_t hash = keyed_hash_id(keys[i].bytes);

                tags[i] = make_key_tag(hash);
                slots[i] = hash & (m->capacity - 1);
                __builtin_prefetch(&m->tags[slots[i]]);
        }
        for (size_t i = 0; i < count && m->count; i++) {
                slots[i] = find_tagged_slot(m, slots[i], tags[i]);
                __builtin_prefetch(&m->slots[slots[i]]);
        }
        for (size_t i = 0; i < count; i++) {
                ret[i] = NULL;
                if (!m->count)
                        continue;
                slots[i] = find_slot_from(m, slots[i], tags[i], &keys[i]);
                if (m->tags[slots[i]])
                        ret[i] = &m->slots[slots[i]].value;
        }
}

void key_map_find_ids(const struct key_map *m, const uint64_t *ids, size_t count, uint64_t **ret)
{
        struct hash128 keys[KEY_MAP_BATCH];

        assert(count <= KEY_MAP_BATCH);
        for (size_t i = 0; i < count; i++)
                keys[i] = make_u64_key(ids[i]);
        key_map_find_batch(m, keys, count, ret);
}

static size_t count_usable_slots(size_t capacity)
{
        return capacity / 8 * 7;
}

/* Assert the invariants: count of used slots, load factor, and that probing reaches each key. Debug builds only. */
static void check_key_map(const struct key_map *m)
{
#if DEBUG_CHECKS
        size_t used = 0;

        assert((m->capacity & (m->capacity - 1)) == 0);
        assert(m->count <= count_usable_slots(m->capacity));
        for (size_t i = 0; i < m->capacity; i++) {
                used += m->tags[i] != 0;
                assert(!m->tags[i] || find_key_slot(m, &m->slots[i].key, NULL) == i);
        }
        assert(used == m->count);
#else
        (void)m;
#endif
}

static enum status grow_key_map(struct key_map *m, size_t capacity, struct error *err)
{
        struct key_map bigger = { .count = m->count, .capacity = capacity, .memory.use = m->memory.use };
        enum status st = m->memory.use == MEMORY_BASE
                                 ? ST_OK
                                 : memory_reserve(&bigger.memory, bigger.capacity * KEY_MAP_SLOT_BYTES, err);

        if (st) /* a query gets the refusal, which suggests narrowing it; other users retry on either status */
                return m->memory.use == MEMORY_QUERIES ? st : ST_NO_MEMORY;
        bigger.slots = reallocarray(NULL, bigger.capacity, sizeof *bigger.slots);
        bigger.tags = calloc_huge(bigger.capacity, 1);
        if (!bigger.slots || !bigger.tags) {
                key_map_deinit(&bigger);
                return error_no_memory(err);
        }
        advise_huge_pages(bigger.slots, bigger.capacity * sizeof *bigger.slots);
        for (size_t i = 0; i < m->capacity; i++) {
                if (m->tags[i]) {
                        size_t to = find_key_slot(&bigger, &m->slots[i].key, NULL);

                        bigger.slots[to] = m->slots[i];
                        bigger.tags[to] = m->tags[i];
                }
        }
        key_map_deinit(m);
        *m = bigger;
        check_key_map(m);
        return ST_OK;
}

enum status key_map_reserve(struct key_map *m, size_t count, struct error *err)
{
        size_t capacity = m->capacity ? m->capacity : CAPACITY_MIN;

        while (count_usable_slots(capacity) < count)
                capacity *= 2;
        return capacity > m->capacity && count ? grow_key_map(m, capacity, err) : ST_OK;
}

enum status key_map_put(struct key_map *m, const struct hash128 *key, uint64_t value, bool *added_ret,
                        uint64_t **value_ret, struct error *err)
{
        uint8_t tag;
        bool added;
        size_t i;

        if (m->count >= count_usable_slots(m->capacity)) {
                enum status st = grow_key_map(m, m->capacity ? m->capacity * 2 : CAPACITY_MIN, err);

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
