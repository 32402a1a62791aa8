/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_DWARF_SPANS_H
#define CAIRN_SYMBOLIZER_DWARF_SPANS_H

/**
 * @file
 * From the scopes and rows of a unit to ranges with chains of frames, and from
 * these into a table.
 *
 * The frame of the innermost scope gets the line row's file and line; each
 * scope around it gets the place of the call that was inlined into it.
 *
 * The first step is most of the work and needs nothing but the unit, so that
 * any number of units are at it at one time. The second is done for one unit
 * after the other, and only translates numbers and copies.
 */
#include "symbolizer/dwarf_chains.h"
#include "symbolizer/extract_internal.h"

/** One unit on its way into the table; reused. */
struct dwarf_part {
        struct dwarf_code code;
        struct dwarf_chains chains;
        struct symbol_range *ranges; /* owned; ascending, apart; their chains are the part's */
        size_t range_count, range_capacity;
};

void dwarf_part_init(struct dwarf_part *p);
void dwarf_part_deinit(struct dwarf_part *p);

/** Make the ranges of p->code. @param scratch reused from part to part. */
enum status dwarf_part_flatten(struct dwarf_part *p, struct interval_list *scratch) MUST_CHECK;

/** Numbers of the builder for what a unit names; reused from part to part. */
struct dwarf_merge {
        uint32_t *functions, *files; /* owned; by the numbers of the part's texts */
        size_t function_capacity, file_capacity;
};
void dwarf_merge_deinit(struct dwarf_merge *m);

/**
 * Add the ranges to the builder, with chains of their own: where units overlap, the one that was added first has
 * the smaller number. Failures stay in the builder.
 * @param p can be flattened again afterwards, and nothing else.
 */
void dwarf_part_merge(struct dwarf_part *p, struct dwarf_merge *m, struct symbol_table_builder *b);

#endif
