/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_ARENA_H
#define CAIRN_COMMON_ARENA_H

/**
 * @file
 * Memory that is given back all at once, with a maximum.
 *
 * Threads: one arena belongs to one thread.
 */
#include <stdbool.h>
#include <stddef.h>

#include "common/cleanup.h"
#include "common/error.h"

struct arena {
        struct arena_chunk *chunks;
        size_t used;  /* bytes handed out or lost to alignment */
        size_t max;
};

void arena_init(struct arena *a, size_t max);
void arena_deinit(struct arena *a);
#define _cleanup_arena_ _cleanup_(arena_deinit)

/** Whether n bytes more stay within the maximum: tells a full arena from a system without memory. */
bool arena_fits(const struct arena *a, size_t n);

/** n zeroed bytes, 16-byte aligned; NULL past the maximum or without memory. Valid until arena_deinit(). */
void *arena_alloc(struct arena *a, size_t n);

/** count * size zeroed bytes with an overflow test. */
void *arena_alloc_array(struct arena *a, size_t count, size_t size);

/** A copy of n bytes plus a NUL. */
char *arena_strndup(struct arena *a, const char *s, size_t n);

#endif
