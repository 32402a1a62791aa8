/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_AGENT_ID_TABLE_H
#define CAIRN_AGENT_ID_TABLE_H

/**
 * @file
 * Numbers for keys of bytes: a key is known by its 128-bit hash alone.
 *
 * Threads: one writer, or any number of readers.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/cleanup.h"
#include "common/hash.h"

struct id_table_slot {
        struct hash128 hash;
        uint32_t id;
        bool used;
};

struct id_table {
        struct id_table_slot *slots; /* owned; a power of two, at most two thirds in use */
        size_t capacity, count;
};

void id_table_deinit(struct id_table *t);

/** False when the key has no number. */
bool id_table_find(const struct id_table *t, const void *key, size_t n, uint32_t *ret);

/** Give a key its number, in place of one it may have; false without memory. */
bool id_table_put(struct id_table *t, const void *key, size_t n, uint32_t id);

#endif
