/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOL_INDEX_NAME_CACHE_H
#define CAIRN_SYMBOL_INDEX_NAME_CACHE_H

/**
 * @file
 * Cache of demangled names by function number, shared by all views of an index: demangling takes microseconds, and a
 * few thousand functions account for most lookups. Numbers are never reused, so entries never become stale.
 *
 * Memory: NAME_CACHE_SLOTS names of at most NAME_CACHE_NAME_BYTES; direct
 * mapped. Longer names are not cached.
 *
 * Threads: any.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/memory/buf.h"

#define NAME_CACHE_SLOTS 32768
#define NAME_CACHE_NAME_BYTES 1024

struct name_cache;

struct name_cache *name_cache_create(void); /* NULL when out of memory; owned, name_cache_destroy() */
void name_cache_destroy(struct name_cache *c);

/** Copy the name of a number into out, which is cleared first; false on a miss. */
bool name_cache_get(struct name_cache *c, uint32_t number, struct buf *out);

/** Cache a name. No effect when out of memory. */
void name_cache_put(struct name_cache *c, uint32_t number, const char *name, size_t size);

#endif
