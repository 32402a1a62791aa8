/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_LOOKUP_CACHE_H
#define CAIRN_SYMBOLIZER_LOOKUP_CACHE_H

/**
 * @file
 * Readable names by function number, shared by all views of an index: making
 * one costs microseconds, and the same few thousand functions are asked for
 * again and again. A number never changes its text, so nothing is ever stale.
 *
 * Memory: NAME_CACHE_SLOTS names of at most NAME_CACHE_NAME_BYTES; a newer one
 * takes the slot of an older one. Longer names are not kept.
 *
 * Threads: any.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"

#define NAME_CACHE_SLOTS 32768
#define NAME_CACHE_NAME_BYTES 1024

struct name_cache;

struct name_cache *name_cache_create(void); /* NULL without memory; owned, name_cache_destroy() */
void name_cache_destroy(struct name_cache *c);

/** Copy the name of a number into out, cleared first; false when it is not kept. */
bool name_cache_get(struct name_cache *c, uint32_t number, struct buf *out);

/** Keep a name. Without memory it is not kept, and that is all. */
void name_cache_put(struct name_cache *c, uint32_t number, const char *name, size_t size);

#endif
