/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_SOURCES_DWARF_PART_H
#define CAIRN_SYMBOLIZER_SOURCES_DWARF_PART_H

/**
 * @file
 * Flattening of one unit: from scopes and line rows to disjoint ranges with
 * chains of frames, and merging these into the table.
 *
 * The frame of the innermost scope gets the file and line of the line row; each
 * enclosing scope gets the call site of the scope that was inlined into it.
 *
 * Flattening is most of the work and reads only the unit, so any number of units
 * are flattened in parallel. Merging runs for one unit after the other, and only
 * translates numbers and copies.
 */
#include "symbolizer/sources/dwarf_chains.h"
#include "symbolizer/table/interval_overlay.h"

/** One unit between reading and merging; reused. */
struct dwarf_part {
        struct dwarf_code code;
        struct dwarf_chains chains;
        struct symbol_range *ranges; /* owned; ascending, disjoint; chain numbers of the part */
        size_t range_count, range_capacity;
};

void dwarf_part_init(struct dwarf_part *p);
void dwarf_part_deinit(struct dwarf_part *p);

/** Compute the ranges of p->code. @param scratch reused from part to part. */
enum status dwarf_part_flatten(struct dwarf_part *p, struct interval_list *scratch) MUST_CHECK;

/** The builder's numbers for the texts of a part; reused from part to part. */
struct dwarf_merge {
        uint32_t *functions, *files; /* owned; by the numbers of the part's texts */
        size_t function_capacity, file_capacity;
};
void dwarf_merge_deinit(struct dwarf_merge *m);

/**
 * Add the ranges to the builder, with new chains: where units overlap, the unit merged first has the smaller chain
 * numbers. Failures are kept in the builder.
 * @param p consumed; may only be flattened again.
 */
void dwarf_part_merge(struct dwarf_part *p, struct dwarf_merge *m, struct symbol_table_builder *b);

#endif
