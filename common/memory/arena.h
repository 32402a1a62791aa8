/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_MEMORY_ARENA_H
#define CAIRN_COMMON_MEMORY_ARENA_H

/**
 * @file
 * Arena allocator with a maximum size; all memory is freed at once, except that of large arrays that were outgrown.
 *
 * Threads: one arena belongs to one thread.
 */
#include <stdbool.h>
#include <stddef.h>

#include "common/cleanup.h"
#include "common/error.h"
#include "common/memory/memory_budget.h"

struct arena {
        struct arena_chunk *chunks;
        size_t used; /* bytes handed out or lost to alignment */
        size_t max;
        enum status failed;               /* status of the last failed allocation: ST_TOO_BIG, ST_NO_MEMORY, ST_BUSY */
        struct memory_reservation memory; /* for all chunks; MEMORY_BASE: not reserved */
};

void arena_init(struct arena *a, size_t max);
/** Like arena_init(), but chunks are reserved from the memory budget. */
void arena_init_budget(struct arena *a, size_t max, enum memory_use use);
void arena_deinit(struct arena *a);
#define _cleanup_arena_ _cleanup_(arena_deinit)

/** Whether n more bytes stay within the maximum. Distinguishes a full arena from a failed malloc(). */
bool arena_fits(const struct arena *a, size_t n);

/** The error of the last failed allocation: ST_TOO_BIG past the maximum, ST_BUSY from the budget, else ST_NO_MEMORY. */
enum status arena_error(const struct arena *a, struct error *err, const char *what);

/** n zeroed bytes, 16-byte aligned; NULL beyond the maximum or out of memory. Valid until arena_deinit(). */
void *arena_alloc(struct arena *a, size_t n);

/** count * size zeroed bytes, with overflow check. */
void *arena_alloc_array(struct arena *a, size_t count, size_t size);

/**
 * End the use of an array of n bytes, which a larger copy replaced. The memory of a large array is freed; that of a
 * small one stays in the arena. NULL is ignored.
 */
void arena_discard(struct arena *a, void *array, size_t n);

/**
 * Move all allocations of `from` into `into`; both have the same memory use. `from` is empty afterwards and stays
 * usable.
 * @return false, with nothing moved, if that exceeds the maximum of `into`.
 */
bool arena_absorb(struct arena *into, struct arena *from);

/** A copy of n bytes plus a NUL. */
char *arena_strndup(struct arena *a, const char *s, size_t n);

#endif
