/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-store/rows/frame_chains.h"

#include <string.h>

#include "common/memory/array.h"

enum status report_full_arena(const struct arena *a, size_t n, const char *what, struct error *err)
{
        if (!arena_fits(a, n))
                return error_set(err, ST_TOO_BIG, "%s need more than %zu bytes", what, a->max);
        if (a->memory.use != MEMORY_BASE && a->failed != ST_NO_MEMORY)
                return error_set(err, ST_BUSY, "%s need more memory than is free; retry later", what);
        return error_no_memory(err);
}

void frame_chains_deinit(struct frame_chains *c)
{
        hash_table_deinit(&c->table);
        free(c->items);
        free(c->scratch);
        *c = (struct frame_chains){ .arena = c->arena };
}

struct scan_frame *frame_chain_begin(struct frame_chains *c, uint32_t count)
{
        if (!array_reserve_many(&c->scratch, &c->scratch_capacity, 0, (size_t)count + 1))
                return NULL;
        memset(c->scratch, 0, count * sizeof *c->scratch); /* including padding, which is hashed and compared */
        return c->scratch;
}

static bool is_equal_chain(const void *context, uint32_t number, const void *key, size_t size)
{
        const struct frame_chain *chain = &((const struct frame_chains *)context)->items[number];

        return chain->count * sizeof *chain->frames == size && (size == 0 || memcmp(chain->frames, key, size) == 0);
}

enum status frame_chain_end(struct frame_chains *c, uint32_t count, const struct scan_frame **ret, struct error *err)
{
        size_t size = count * sizeof *c->scratch;
        uint32_t hash = hash_table_hash(c->scratch, size), number;
        struct scan_frame *copy;

        if (hash_table_find(&c->table, hash, is_equal_chain, c, c->scratch, size, &number)) {
                *ret = c->items[number].frames;
                return ST_OK;
        }
        if (hash_table_reserve(&c->table, err) || !array_reserve(&c->items, &c->capacity, c->count))
                return error_no_memory(err);
        copy = arena_alloc(c->arena, size);
        if (!copy)
                return report_full_arena(c->arena, size, "frames of locations", err);
        if (size)
                memcpy(copy, c->scratch, size);
        c->items[c->count] = (struct frame_chain){ copy, count };
        hash_table_insert(&c->table, hash, (uint32_t)c->count++);
        *ret = copy;
        return ST_OK;
}
