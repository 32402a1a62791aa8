/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_TABLE_GAP_FILL_H
#define CAIRN_SYMBOLIZER_TABLE_GAP_FILL_H

/**
 * @file
 * Merging a source into a table that already holds better ones: each range of
 * the source fills only what the better sources left open.
 *
 * Where the table covers nothing, the source's range is added. Where the table
 * has a line and no function, a source with lines replaces it, and a source with
 * names only sets the function of its outermost frame. Everything else stays.
 */
#include "symbolizer/table/symbol_table_builder.h"

struct source_ranges {
        struct symbol_range *items; /* owned; chain numbers of the builder to be filled */
        size_t count, capacity;
};
void source_ranges_deinit(struct source_ranges *s);

/** Add [start, end); after the last one. False without memory; an empty or a backward range is dropped. */
bool source_ranges_add(struct source_ranges *s, uint64_t start, uint64_t end, uint32_t chain);

/**
 * Settle b and merge the source into it.
 * @return whether any address was filled from the source.
 */
bool fill_table_gaps(struct symbol_table_builder *b, const struct source_ranges *s);

#endif
