/* SPDX-License-Identifier: Apache-2.0 */
#include "common/hash/lru_table.h"

#include <stdlib.h>

enum status lru_table_init(struct lru_table *t, size_t expected, struct error *err)
{
        size_t count = 1;

        while (count < expected)
                count *= 2;
        *t = (struct lru_table){ .bucket_count = count, .buckets = calloc(count, sizeof *t->buckets) };
        TAILQ_INIT(&t->used);
        return t->buckets ? ST_OK : error_no_memory(err);
}

void lru_table_deinit(struct lru_table *t)
{
        free(t->buckets);
        *t = (struct lru_table){ 0 };
}

static struct lru_bucket *get_lru_bucket(const struct lru_table *t, uint64_t hash)
{
        return &t->buckets[hash & (t->bucket_count - 1)];
}

struct lru_entry *lru_table_find(const struct lru_table *t, uint64_t hash, lru_equal *equal, const void *key)
{
        struct lru_entry *entry;

        LIST_FOREACH(entry, get_lru_bucket(t, hash), same_bucket)
        if (entry->hash == hash && equal(entry, key))
                break;
        return entry;
}

void lru_table_insert(struct lru_table *t, struct lru_entry *entry, uint64_t hash)
{
        entry->hash = hash;
        LIST_INSERT_HEAD(get_lru_bucket(t, hash), entry, same_bucket);
        TAILQ_INSERT_TAIL(&t->used, entry, by_use);
        t->count++;
}

void lru_table_remove(struct lru_table *t, struct lru_entry *entry)
{
        assert(t->count > 0);
        LIST_REMOVE(entry, same_bucket);
        TAILQ_REMOVE(&t->used, entry, by_use);
        t->count--;
}
