/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-formats/number_map.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory/array.h"

void number_map_deinit(struct number_map *m)
{
        free(m->keys);
        hash_table_deinit(&m->numbers);
        *m = (struct number_map){ 0 };
}

static bool equal_number_key(const void *context, uint32_t number, const void *key, size_t size)
{
        const struct number_map *m = context;

        return memcmp(&m->keys[number], key, size) == 0;
}

enum status number_map_get(struct number_map *m, const struct number_key *key, uint32_t *ret, bool *fresh_ret,
                           struct error *err)
{
        uint32_t hash = hash_table_hash(key, sizeof *key);
        bool found = hash_table_find(&m->numbers, hash, equal_number_key, m, key, sizeof *key, ret);

        if (!found) {
                enum status st = hash_table_reserve(&m->numbers, err);

                if (st)
                        return st;
                if (!array_reserve(&m->keys, &m->capacity, m->count))
                        return error_no_memory(err);
                *ret = m->count++;
                m->keys[*ret] = *key;
                hash_table_insert(&m->numbers, hash, *ret);
        }
        assert(*ret < m->count);
        if (fresh_ret)
                *fresh_ret = !found;
        return ST_OK;
}

bool number_map_find(const struct number_map *m, const struct number_key *key, uint32_t *ret)
{
        return hash_table_find(&m->numbers, hash_table_hash(key, sizeof *key), equal_number_key, m, key, sizeof *key,
                               ret);
}
