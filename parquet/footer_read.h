/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PARQUET_FOOTER_READ_H
#define CAIRN_PARQUET_FOOTER_READ_H

/**
 * @file
 * File metadata, validated: every chunk lies inside the file before its footer and has the type of the schema, and the
 * rows of the row groups add up.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/memory/arena.h"
#include "parquet/schema.h"

/* A min or max in PLAIN encoding, as in the file, without the length of a byte array. */
struct raw_bound {
        const uint8_t *data; /* NULL: none */
        size_t size;
        bool exact;
};

struct read_chunk {
        int32_t codec;
        bool has_null_count;
        uint64_t value_count;
        uint64_t start; /* of its first page in the file */
        uint64_t size;  /* of all its pages */
        uint64_t null_count;
        struct raw_bound min, max;
};

struct read_group {
        uint64_t rows;
        struct read_chunk *chunks; /* one a column */
};

struct read_footer {
        struct parquet_schema schema;
        uint64_t rows;
        struct read_group *groups;
        size_t group_count;
};

/**
 * @param data  the whole file; bounds are borrowed from it.
 * @param has_start  its first bytes are present, and checked.
 * @param a     allocates everything else.
 */
enum status footer_read(const uint8_t *data, size_t size, bool has_start, struct arena *a, struct read_footer *ret,
                        struct error *err) MUST_CHECK;

#endif
