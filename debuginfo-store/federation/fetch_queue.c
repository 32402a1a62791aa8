/* SPDX-License-Identifier: Apache-2.0 */
#include "debuginfo-store/federation/fetch_queue.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/hash/hash_table.h"

bool fetch_resource_is_part(const char *resource)
{
        return strchr(resource, '/') != NULL;
}

#define FETCHES_EXPECTED 4096

enum status fetch_queue_init(struct fetch_queue *t, struct error *err)
{
        return lru_table_init(&t->entries, FETCHES_EXPECTED, err);
}

static uint64_t hash_fetch(const struct build_id *id, const char *resource)
{
        return keyed_hash(id->bytes, id->size) ^ keyed_hash(resource, strlen(resource));
}

static void free_fetch_entry(struct fetch_entry *entry)
{
        download_unref(entry->download);
        free(entry->resource);
        free(entry->forwarded_for);
        free(entry->via);
        free(entry);
}

static bool is_expired_entry(const struct fetch_entry *entry)
{
        return (entry->state == FETCH_ENTRY_MISSING || entry->state == FETCH_ENTRY_FAILED) &&
               entry->forget_ns <= monotonic_ns();
}

struct fetch_key {
        const struct build_id *id;
        const char *resource;
        const struct forward_list *route;
};

static bool entry_answers(const struct lru_entry *one, const void *key)
{
        const struct fetch_entry *entry = (const struct fetch_entry *)one;
        const struct fetch_key *k = key;

        return build_id_equal(&entry->id, k->id) && strcmp(entry->resource, k->resource) == 0 &&
               !is_expired_entry(entry) &&
               (strcmp(entry->via, k->route->via) == 0 || (entry->state == FETCH_ENTRY_MISSING && !entry->via[0]));
}

struct fetch_entry *fetch_queue_find(struct fetch_queue *t, const struct build_id *id, const char *resource,
                                     const struct forward_list *route)
{
        const struct fetch_key key = { id, resource, route };

        return (struct fetch_entry *)lru_table_find(&t->entries, hash_fetch(id, resource), entry_answers, &key);
}

void fetch_queue_remove(struct fetch_queue *t, struct fetch_entry *gone)
{
        lru_table_remove(&t->entries, &gone->lru);
        free_fetch_entry(gone);
}

void fetch_queue_expire(struct fetch_queue *t)
{
        for (struct lru_entry *one = lru_table_oldest(&t->entries); one; one = lru_entry_newer(one))
                ((struct fetch_entry *)one)->forget_ns = 0; /* only used for cached results */
}

/*
 * Evict the oldest cached result, so that a client with very many requests does not block those of others. Pending
 * entries on the way become the newest, which bounds the steps of many calls.
 */
static void evict_answered_entry(struct fetch_queue *t)
{
        for (size_t left = t->entries.count; left; left--) {
                struct fetch_entry *entry = (struct fetch_entry *)lru_table_oldest(&t->entries);

                if (entry->state == FETCH_ENTRY_MISSING || entry->state == FETCH_ENTRY_FAILED) {
                        fetch_queue_remove(t, entry);
                        return;
                }
                lru_table_touch(&t->entries, &entry->lru);
        }
}

/* Remove what expired of the oldest entries. */
static void remove_expired_entries(struct fetch_queue *t)
{
        struct lru_entry *one = lru_table_oldest(&t->entries), *newer;

        for (int steps = 0; one && steps < 4; steps++, one = newer) {
                newer = lru_entry_newer(one);
                if (is_expired_entry((struct fetch_entry *)one))
                        fetch_queue_remove(t, (struct fetch_entry *)one);
        }
}

struct fetch_entry *fetch_queue_add(struct fetch_queue *t, const struct build_id *id, const char *resource,
                                    const struct forward_list *route)
{
        struct fetch_entry *entry;

        remove_expired_entries(t);
        if (t->entries.count >= FETCH_QUEUE_MAX)
                evict_answered_entry(t);
        entry = t->entries.count < FETCH_QUEUE_MAX ? calloc(1, sizeof *entry) : NULL;
        if (!entry)
                return NULL;
        entry->resource = strdup(resource);
        entry->forwarded_for = strdup(route->header);
        entry->via = strdup(route->via);
        if (!entry->resource || !entry->forwarded_for || !entry->via) {
                free_fetch_entry(entry);
                return NULL;
        }
        entry->id = *id;
        lru_table_insert(&t->entries, &entry->lru, hash_fetch(id, resource));
        assert(t->entries.count <= FETCH_QUEUE_MAX);
        return entry;
}

void fetch_queue_deinit(struct fetch_queue *t)
{
        while (t->entries.count)
                fetch_queue_remove(t, (struct fetch_entry *)lru_table_oldest(&t->entries));
        lru_table_deinit(&t->entries);
}
