/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-formats/number_map.h"

#include <stdlib.h>
#include <string.h>

#include "common/hash.h"

void number_map_deinit(struct number_map *m)
{
        free(m->keys);
        free(m->slots);
        *m = (struct number_map){ 0 };
}

static uint32_t slot_of(const struct number_map *m, const struct number_key *key)
{
        uint32_t mask = m->slot_count - 1;
        uint32_t at = (uint32_t)hash64(key, sizeof *key) & mask;

        while (m->slots[at] && memcmp(&m->keys[m->slots[at] - 1], key, sizeof *key) != 0)
                at = (at + 1) & mask;
        return at;
}

/* Twice the slots; half of them can be in use, so there are half as many keys. */
static enum status grow(struct number_map *m, struct error *err)
{
        uint32_t slot_count = m->slot_count ? m->slot_count * 2 : 256;
        struct number_key *keys;
        uint32_t *slots;

        if (slot_count > 1u << 30)
                return error_set(err, ST_TOO_BIG, "dictionary has more than %u entries", m->count);
        keys = reallocarray(m->keys, slot_count / 2, sizeof *keys);
        if (!keys)
                return error_no_memory(err);
        m->keys = keys;
        slots = calloc(slot_count, sizeof *slots);
        if (!slots)
                return error_no_memory(err);
        free(m->slots);
        m->slots = slots;
        m->slot_count = slot_count;
        for (uint32_t i = 0; i < m->count; i++)
                slots[slot_of(m, &m->keys[i])] = i + 1;
        return ST_OK;
}

enum status number_map_get(struct number_map *m, const struct number_key *key, uint32_t *ret, bool *fresh_ret,
                           struct error *err)
{
        uint32_t at;

        if (m->count == m->slot_count / 2) {
                enum status st = grow(m, err);

                if (st)
                        return st;
        }
        at = slot_of(m, key);
        if (fresh_ret)
                *fresh_ret = !m->slots[at];
        if (!m->slots[at]) {
                m->keys[m->count] = *key;
                m->slots[at] = ++m->count;
        }
        *ret = m->slots[at] - 1;
        return ST_OK;
}

bool number_map_find(const struct number_map *m, const struct number_key *key, uint32_t *ret)
{
        uint32_t at;

        if (m->count == 0)
                return false;
        at = slot_of(m, key);
        if (!m->slots[at])
                return false;
        *ret = m->slots[at] - 1;
        return true;
}
