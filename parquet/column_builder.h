/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PARQUET_COLUMN_BUILDER_H
#define CAIRN_PARQUET_COLUMN_BUILDER_H

/**
 * @file
 * Values of one column, buffered until their row group is written.
 *
 * A slot is one (repetition level, definition level) pair: a value, a null, an
 * empty or a null list. Slots with def == max_def have a value. Since a column
 * has at most one repeated ancestor, levels need no stack: the first slot of a
 * row has rep 0, the next ones of its list have rep 1, which is next_rep.
 *
 * Invariant, between puts: slots <= announced, equal at the end of a row.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/memory/buf.h"
#include "parquet/dictionary.h"
#include "parquet/schema.h"

struct column_builder {
        const struct parquet_node *node;
        struct buf defs;  /* uint8_t a slot; unused when max_def is 0 */
        struct buf reps;  /* uint8_t a slot; unused when max_rep is 0 */
        struct buf ints;  /* int64_t a value, except in byte columns; doubles as their bits */
        struct buf codes; /* uint32_t a value, in byte columns only: number of its entry in dict */
        struct byte_dict dict;
        uint64_t plain_bytes; /* size of a byte column's values in PLAIN encoding */
        uint64_t slots;
        uint64_t announced; /* number of slots once all lists are complete */
        uint64_t rows;
        uint8_t next_rep;
        enum status failed;
};

void column_builder_init(struct column_builder *c, const struct parquet_node *node);
void column_builder_deinit(struct column_builder *c);
void column_builder_clear(struct column_builder *c);

bool column_is_bytes(const struct column_builder *c);
size_t column_value_count(const struct column_builder *c);

/** Memory used by the values, in bytes. */
uint64_t column_builder_bytes(const struct column_builder *c);

void column_put_int(struct column_builder *c, int64_t value);
void column_put_ints(struct column_builder *c, const int64_t *values, size_t count);
void column_put_bytes(struct column_builder *c, const void *data, size_t n);

/** A slot without a value, in a node of the schema that this column is below. */
void column_put_null(struct column_builder *c, const struct parquet_node *node);
void column_put_nulls(struct column_builder *c, size_t count); /* rows of an optional column outside lists */
void column_put_list(struct column_builder *c, const struct parquet_node *node, uint64_t count);

/** The first failure, or ST_USAGE when a list is incomplete. */
enum status column_builder_status(const struct column_builder *c);

#endif
