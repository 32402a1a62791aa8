/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-store/scan/stack_cache.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "common/metrics.h"

static struct metric hits =
        METRIC_COUNTER("cairn_stack_cache_hits_total", "Stacks of queries that were in the cache.", "");
static struct metric misses =
        METRIC_COUNTER("cairn_stack_cache_misses_total", "Stacks of queries that were not in the cache.", "");
static struct metric stacks = METRIC_GAUGE("cairn_stack_cache_stacks", "Stacks in the cache.", "");

/* Allocated in the arena. */
struct cached_stack {
        uint32_t count;
        uint64_t ids[];
};

struct stack_cache {
        pthread_mutex_t lock;
        struct arena arena;
        struct key_map stacks; /* stack id to the address of a struct cached_stack */
        size_t limit;          /* of arena and map together, in bytes */
};

static void empty_stack_cache(struct stack_cache *c)
{
        metric_add(&stacks, -(int64_t)c->stacks.count);
        arena_deinit(&c->arena);
        key_map_deinit(&c->stacks);
        arena_init_budget(&c->arena, c->limit, MEMORY_CACHES);
}

struct stack_cache *stack_cache_create(void)
{
        struct stack_cache *c = calloc(1, sizeof *c);
        size_t share = memory_use_ceiling(MEMORY_CACHES) / 4;

        if (!c)
                return NULL;
        metric_register(&hits);
        metric_register(&misses);
        metric_register(&stacks);
        pthread_mutex_init(&c->lock, NULL);
        c->limit = share < LIMIT_STACK_CACHE_BYTES ? share : LIMIT_STACK_CACHE_BYTES;
        c->stacks.memory.use = MEMORY_CACHES;
        empty_stack_cache(c);
        return c;
}

void stack_cache_destroy(struct stack_cache *c)
{
        if (!c)
                return;
        empty_stack_cache(c);
        pthread_mutex_destroy(&c->lock);
        free(c);
}

enum status stack_cache_find(struct stack_cache *c, const struct hash128 *stack, struct arena *a, const uint64_t **ret,
                             uint32_t *count_ret)
{
        const struct cached_stack *s = NULL;
        const uint64_t *found;
        uint64_t *copy = NULL;

        *ret = NULL;
        pthread_mutex_lock(&c->lock);
        found = key_map_find(&c->stacks, stack);
        if (found) {
                s = (const struct cached_stack *)(uintptr_t)*found;
                copy = arena_alloc_array(a, s->count + (size_t)1, sizeof *copy);
                if (copy) {
                        memcpy(copy, s->ids, s->count * sizeof *copy);
                        *count_ret = s->count;
                        *ret = copy;
                }
        }
        pthread_mutex_unlock(&c->lock);
        metric_add(found ? &hits : &misses, 1);
        return found && !copy ? ST_NO_MEMORY : ST_OK;
}

bool stack_cache_has_room(struct stack_cache *c)
{
        bool has_room;

        pthread_mutex_lock(&c->lock);
        has_room = c->arena.used + c->stacks.memory.bytes < c->limit / 2;
        pthread_mutex_unlock(&c->lock);
        return has_room;
}

void stack_cache_add(struct stack_cache *c, const struct hash128 *stack, const uint64_t *ids, uint32_t count)
{
        size_t bytes = sizeof(struct cached_stack) + count * sizeof *ids;
        struct cached_stack *s;
        bool added = false;
        uint64_t *value;

        pthread_mutex_lock(&c->lock);
        if (c->arena.used + c->stacks.memory.bytes + bytes > c->limit)
                empty_stack_cache(c);
        s = key_map_find(&c->stacks, stack) ? NULL : arena_alloc(&c->arena, bytes);
        if (s) {
                s->count = count;
                memcpy(s->ids, ids, count * sizeof *ids);
                if (key_map_put(&c->stacks, stack, (uintptr_t)s, &added, &value, NULL))
                        empty_stack_cache(c);
                else
                        metric_add(&stacks, added);
        }
        pthread_mutex_unlock(&c->lock);
}
