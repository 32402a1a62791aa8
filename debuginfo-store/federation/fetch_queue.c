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

static struct fetch_entry **fetch_queue_bucket(struct fetch_queue *t, const struct build_id *id, const char *resource)
{
        uint64_t hash = keyed_hash(id->bytes, id->size) ^ keyed_hash(resource, strlen(resource));

        return &t->buckets[hash % FETCH_QUEUE_BUCKETS];
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

static bool entry_answers(const struct fetch_entry *entry, const struct build_id *id, const char *resource,
                          const struct forward_list *route)
{
        return build_id_equal(&entry->id, id) && strcmp(entry->resource, resource) == 0 &&
               (strcmp(entry->via, route->via) == 0 || (entry->state == FETCH_ENTRY_MISSING && !entry->via[0]));
}

struct fetch_entry *fetch_queue_find(struct fetch_queue *t, const struct build_id *id, const char *resource,
                                     const struct forward_list *route)
{
        struct fetch_entry **at = fetch_queue_bucket(t, id, resource), *found = NULL;

        while (*at) {
                struct fetch_entry *entry = *at;

                if (is_expired_entry(entry)) {
                        *at = entry->next;
                        free_fetch_entry(entry);
                        t->count--;
                        continue;
                }
                if (entry_answers(entry, id, resource, route))
                        found = entry;
                at = &entry->next;
        }
        return found;
}

void fetch_queue_remove(struct fetch_queue *t, struct fetch_entry *gone)
{
        for (struct fetch_entry **at = fetch_queue_bucket(t, &gone->id, gone->resource); *at; at = &(*at)->next) {
                if (*at == gone) {
                        *at = gone->next;
                        free_fetch_entry(gone);
                        assert(t->count > 0);
                        t->count--;
                        return;
                }
        }
}

void fetch_queue_expire(struct fetch_queue *t)
{
        for (size_t i = 0; i < FETCH_QUEUE_BUCKETS; i++)
                for (struct fetch_entry *entry = t->buckets[i]; entry; entry = entry->next)
                        entry->forget_ns = 0; /* only used for cached results */
}

/* Evict a cached result, so that a client with very many requests does not block those of others. */
static void evict_answered_entry(struct fetch_queue *t)
{
        for (size_t i = 0; i < FETCH_QUEUE_BUCKETS; i++, t->hand = (t->hand + 1) % FETCH_QUEUE_BUCKETS) {
                for (struct fetch_entry *entry = t->buckets[t->hand]; entry; entry = entry->next) {
                        if (entry->state == FETCH_ENTRY_MISSING || entry->state == FETCH_ENTRY_FAILED) {
                                fetch_queue_remove(t, entry);
                                return;
                        }
                }
        }
}

struct fetch_entry *fetch_queue_add(struct fetch_queue *t, const struct build_id *id, const char *resource,
                                    const struct forward_list *route)
{
        struct fetch_entry **bucket = fetch_queue_bucket(t, id, resource);
        struct fetch_entry *entry;

        if (t->count >= FETCH_QUEUE_MAX)
                evict_answered_entry(t);
        entry = t->count < FETCH_QUEUE_MAX ? calloc(1, sizeof *entry) : NULL;
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
        entry->next = *bucket;
        *bucket = entry;
        t->count++;
        assert(t->count <= FETCH_QUEUE_MAX);
        return entry;
}

void fetch_queue_deinit(struct fetch_queue *t)
{
        for (size_t b = 0; b < FETCH_QUEUE_BUCKETS; b++) {
                while (t->buckets[b]) {
                        struct fetch_entry *entry = t->buckets[b];

                        t->buckets[b] = entry->next;
                        free_fetch_entry(entry);
                }
        }
}
