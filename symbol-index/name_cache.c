/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-index/name_cache.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define SHARDS 16

struct name {
        uint32_t number, size;
        char text[];
};

struct name_cache {
        pthread_mutex_t locks[SHARDS];
        struct name *slots[NAME_CACHE_SLOTS];
};

struct name_cache *name_cache_create(void)
{
        struct name_cache *c = calloc(1, sizeof *c);

        for (unsigned i = 0; c && i < SHARDS; i++)
                pthread_mutex_init(&c->locks[i], NULL);
        return c;
}

void name_cache_destroy(struct name_cache *c)
{
        if (!c)
                return;
        for (unsigned i = 0; i < NAME_CACHE_SLOTS; i++)
                free(c->slots[i]);
        for (unsigned i = 0; i < SHARDS; i++)
                pthread_mutex_destroy(&c->locks[i]);
        free(c);
}

static uint32_t get_name_slot(uint32_t number)
{
        return number % NAME_CACHE_SLOTS;
}

bool name_cache_get(struct name_cache *c, uint32_t number, struct buf *out)
{
        uint32_t slot = get_name_slot(number);
        const struct name *name;
        bool found;

        buf_clear(out);
        pthread_mutex_lock(&c->locks[slot % SHARDS]);
        name = c->slots[slot];
        found = name && name->number == number && buf_append(out, name->text, name->size) == ST_OK;
        pthread_mutex_unlock(&c->locks[slot % SHARDS]);
        return found;
}

void name_cache_put(struct name_cache *c, uint32_t number, const char *text, size_t size)
{
        uint32_t slot = get_name_slot(number);
        struct name *name, *old;

        if (size > NAME_CACHE_NAME_BYTES)
                return;
        name = malloc(sizeof *name + size);
        if (!name)
                return;
        name->number = number;
        name->size = (uint32_t)size;
        memcpy(name->text, text, size);
        pthread_mutex_lock(&c->locks[slot % SHARDS]);
        old = c->slots[slot];
        c->slots[slot] = name;
        pthread_mutex_unlock(&c->locks[slot % SHARDS]);
        free(old);
}
