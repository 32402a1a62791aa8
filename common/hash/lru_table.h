/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_HASH_LRU_TABLE_H
#define CAIRN_COMMON_HASH_LRU_TABLE_H

/**
 * @file
 * Hash table whose entries are also in a list by their last use, for caches and other bounded sets.
 *
 * Entries belong to the caller, begin with a struct lru_entry, keep their address, and are as many as the caller
 * permits. The hash is the caller's, from keyed_hash() (hash_table.h), so that no client can choose keys that collide.
 *
 *     uint64_t hash = keyed_hash(name, size);
 *     struct thing *thing = (struct thing *)lru_table_find(&t, hash, equal_thing, name);
 *
 *     if (thing)
 *             lru_table_touch(&t, &thing->lru);
 *     else if (t.count == THINGS_MAX)
 *             ... lru_table_remove(&t, lru_table_oldest(&t)) ...
 *
 * Memory: 8 bytes per bucket, allocated once, and sizeof(struct lru_entry), 40 bytes, in each entry. A table never
 * grows: with as many entries as expected, a bucket has one or two.
 *
 * Threads: one at a time.
 */
#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "common/error.h"

struct lru_entry {
        LIST_ENTRY(lru_entry) same_bucket;
        TAILQ_ENTRY(lru_entry) by_use;
        uint64_t hash;
};

TAILQ_HEAD(lru_list, lru_entry);
LIST_HEAD(lru_bucket, lru_entry);

struct lru_table {
        size_t count;
        size_t bucket_count;        /* a power of two */
        struct lru_bucket *buckets; /* owned */
        struct lru_list used;       /* least recently used first */
};

/** Whether an entry has this key. */
typedef bool lru_equal(const struct lru_entry *entry, const void *key);

/** @param expected  number of entries for which a lookup compares few keys; any number fits. */
enum status lru_table_init(struct lru_table *t, size_t expected, struct error *err) MUST_CHECK;

/** Free the buckets; the caller has freed the entries, or frees them. Also after a failed or no init. */
void lru_table_deinit(struct lru_table *t);

/** The most recently added entry with this key; NULL when there is none. Its use is not noted. */
struct lru_entry *lru_table_find(const struct lru_table *t, uint64_t hash, lru_equal *equal, const void *key);

/** Add an entry as the most recently used one. Its key may be in the table already. */
void lru_table_insert(struct lru_table *t, struct lru_entry *entry, uint64_t hash);

void lru_table_remove(struct lru_table *t, struct lru_entry *entry);

/** Note a use. */
static inline void lru_table_touch(struct lru_table *t, struct lru_entry *entry)
{
        TAILQ_REMOVE(&t->used, entry, by_use);
        TAILQ_INSERT_TAIL(&t->used, entry, by_use);
}

/** Both ends of the list by use, NULL for an empty table, and the neighbours of an entry, NULL after the last one. */
static inline struct lru_entry *lru_table_oldest(const struct lru_table *t)
{
        return TAILQ_FIRST(&t->used);
}

static inline struct lru_entry *lru_table_newest(const struct lru_table *t)
{
        return TAILQ_LAST(&t->used, lru_list);
}

static inline struct lru_entry *lru_entry_newer(const struct lru_entry *entry)
{
        return TAILQ_NEXT(entry, by_use);
}

static inline struct lru_entry *lru_entry_older(const struct lru_entry *entry)
{
        return TAILQ_PREV(entry, lru_list, by_use);
}

#endif
