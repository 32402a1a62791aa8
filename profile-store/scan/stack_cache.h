/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_SCAN_STACK_CACHE_H
#define CAIRN_PROFILE_STORE_SCAN_STACK_CACHE_H

/*
 * Cache of the location ids of stacks that queries have read from parts. A stack has a row in the file of each day, so
 * a query over a month would read many files for its last few stacks. An id is the hash of the stack, so entries never
 * become stale. A full cache is emptied.
 *
 * Memory: up to LIMIT_STACK_CACHE_BYTES and a quarter of the caches' share of the budget. Threads: any.
 */
#include "common/memory/arena.h"
#include "profile-store/rows/key_map.h"

struct stack_cache;

struct stack_cache *stack_cache_create(void);    /* NULL without memory */
void stack_cache_destroy(struct stack_cache *c); /* NULL is allowed */

/* Copy the location ids into an arena; *ret is NULL when the cache lacks the stack. ST_NO_MEMORY: the arena is full. */
enum status stack_cache_find(struct stack_cache *c, const struct hash128 *stack, struct arena *a, const uint64_t **ret,
                             uint32_t *count_ret) MUST_CHECK;

/* False when more than half of the memory is used. */
bool stack_cache_has_room(struct stack_cache *c) MUST_CHECK;

/* If memory runs out, the stack is not added. */
void stack_cache_add(struct stack_cache *c, const struct hash128 *stack, const uint64_t *ids, uint32_t count);

struct profile_store;

/*
 * Add the stacks of the newest parts, until half of the memory is used or LIMIT_STACK_CACHE_FILL_BYTES were read, so
 * that the first queries after a start find them. Unreadable parts are skipped: queries report them.
 */
void store_fill_stack_cache(struct profile_store *s);

#endif
