/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_SOURCE_FILL_H
#define CAIRN_SYMBOLIZER_SOURCE_FILL_H

/**
 * @file
 * How a lesser source joins a table: range by range, it says only what better
 * ones left open.
 *
 * Where the table covers nothing, the source's range is taken as it is. Where
 * the table has a line and no function, a source that knows lines too replaces
 * it, and one that knows names alone names its outermost frame. Everything else
 * stays.
 */
#include "symbolizer/symbol_table_builder.h"

struct source_ranges {
        struct symbol_range *items; /* owned; the chains are those of the builder that will be filled */
        size_t count, capacity;
};
void source_ranges_deinit(struct source_ranges *s);

/** Add [start, end); after the last one. False without memory; an empty or a backward range is dropped. */
bool source_ranges_add(struct source_ranges *s, uint64_t start, uint64_t end, uint32_t chain);

/**
 * Settle b and fill it.
 * @return whether any address was taken from the source.
 */
bool source_fill(struct symbol_table_builder *b, const struct source_ranges *s);

#endif
