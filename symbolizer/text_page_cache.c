/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/text_page_cache.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include "common/limits.h"

#define SHARDS 16

struct text_page_cache {
        pthread_mutex_t locks[SHARDS];
        struct text_page *slots[TEXT_PAGE_CACHE_SLOTS];
};

struct text_page_cache *text_page_cache_create(void)
{
        struct text_page_cache *c = calloc(1, sizeof *c);

        for (unsigned i = 0; c && i < SHARDS; i++)
                pthread_mutex_init(&c->locks[i], NULL);
        return c;
}

void text_page_cache_destroy(struct text_page_cache *c)
{
        if (!c)
                return;
        for (unsigned i = 0; i < TEXT_PAGE_CACHE_SLOTS; i++)
                free(c->slots[i]);
        for (unsigned i = 0; i < SHARDS; i++)
                pthread_mutex_destroy(&c->locks[i]);
        free(c);
}

/* Neighbouring pages have last numbers some hundred apart. */
static uint32_t slot_of(uint32_t last)
{
        return last * 2654435761u >> 21;
}

static_assert(TEXT_PAGE_CACHE_SLOTS == 1 << (32 - 21), "slot_of() reaches all slots");

bool text_page_cache_get(struct text_page_cache *c, uint32_t last, uint32_t number, struct buf *out)
{
        uint32_t slot = slot_of(last);
        const struct text_page *page;
        bool found;

        buf_clear(out);
        pthread_mutex_lock(&c->locks[slot % SHARDS]);
        page = c->slots[slot];
        found = page && page->last == last && last - number < page->count;
        if (found) {
                uint32_t size;
                const char *text = text_page_get(page, page->count - 1 - (last - number), &size);

                found = buf_append(out, text, size) == ST_OK;
        }
        pthread_mutex_unlock(&c->locks[slot % SHARDS]);
        return found;
}

void text_page_cache_put(struct text_page_cache *c, struct text_page *page)
{
        uint32_t slot = slot_of(page->last);

        if (page->size <= TEXT_PAGE_CACHE_PAGE_BYTES) {
                struct text_page *old;

                pthread_mutex_lock(&c->locks[slot % SHARDS]);
                old = c->slots[slot];
                c->slots[slot] = page;
                pthread_mutex_unlock(&c->locks[slot % SHARDS]);
                page = old;
        }
        free(page);
}
