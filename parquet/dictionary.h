/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PARQUET_DICTIONARY_H
#define CAIRN_PARQUET_DICTIONARY_H

/**
 * @file
 * Distinct byte strings, numbered in order of arrival.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/memory/buf.h"
#include "common/error.h"
#include "common/hash/hash_table.h"

struct byte_dict_entry {
        uint64_t offset; /* into bytes */
        uint32_t size;
};

struct byte_dict {
        struct buf bytes;
        struct buf entries; /* struct byte_dict_entry */
        struct hash_table numbers;
        uint32_t count;
};

void byte_dict_init(struct byte_dict *d, size_t max_bytes);
void byte_dict_deinit(struct byte_dict *d);
void byte_dict_clear(struct byte_dict *d);

/** Find or add data and return its number. ST_TOO_BIG, ST_NO_MEMORY. */
enum status byte_dict_add(struct byte_dict *d, const void *data, uint32_t n, uint32_t *ret) MUST_CHECK;

static inline const struct byte_dict_entry *byte_dict_entry(const struct byte_dict *d, uint32_t i)
{
        return (const struct byte_dict_entry *)d->entries.data + i;
}

struct int_dict {
        int64_t *values; /* count of them */
        uint32_t *codes; /* one for each value given */
        struct hash_table numbers;
        size_t capacity; /* of values */
        uint32_t count;
        enum status failed;
};

/**
 * Number the values.
 *
 * @return false when more than max are distinct, or most of those seen so far (a dictionary would not pay off), or when
 *         memory ran out (d->failed).
 */
bool int_dict_fill(struct int_dict *d, const int64_t *values, size_t count, uint32_t max) MUST_CHECK;
void int_dict_deinit(struct int_dict *d);

#endif
