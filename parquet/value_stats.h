/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PARQUET_VALUE_STATS_H
#define CAIRN_PARQUET_VALUE_STATS_H

/**
 * @file
 * Min and max of a range of values, in the order that TYPE_ORDER gives their type: signed numbers, bytes as unsigned.
 * Doubles have neither as soon as one is NaN; zeros become -0.0 as min and +0.0 as max. Byte values are cut to
 * STATS_BYTES; a cut maximum is rounded up so that it stays a bound, or left out where that is impossible.
 * Source: parquet.thrift, ColumnOrder and Statistics.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "parquet/column_builder.h"

#define STATS_BYTES 64

struct stats_bound {
        uint8_t bytes[STATS_BYTES]; /* the value in PLAIN encoding, without the length of a byte array */
        uint8_t size;
        bool exact;
        bool present;
        int64_t number; /* except in byte columns; doubles as their bits */
};

struct value_stats {
        uint64_t null_count;
        uint64_t value_count;
        bool unordered; /* there was a NaN */
        struct stats_bound min;
        struct stats_bound max;
};

/** Statistics of the values [start, end) of a column; the caller provides null_count. */
void value_stats_of(const struct column_builder *c, size_t start, size_t end, uint64_t null_count,
                    struct value_stats *ret);

/** Merge from into to; both are of the same column. */
void value_stats_merge(const struct parquet_node *node, struct value_stats *to, const struct value_stats *from);

/** Whether a <= b, both present. */
bool stats_bound_ordered(const struct parquet_node *node, const struct stats_bound *a, const struct stats_bound *b);

#endif
