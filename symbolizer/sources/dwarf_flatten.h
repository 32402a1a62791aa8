/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_SOURCES_DWARF_FLATTEN_H
#define CAIRN_SYMBOLIZER_SOURCES_DWARF_FLATTEN_H

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
#include "symbolizer/sources/function_symbols.h"
#include "symbolizer/table/address_filter.h"
#include "symbolizer/table/interval_overlay.h"

/** A unit between reading and merging: its code, the disjoint ranges, and their chains; reused. */
struct dwarf_flat_unit {
        struct dwarf_code code;
        struct dwarf_chains chains;
        struct symbol_range *ranges; /* owned; ascending, disjoint; with numbers of chains */
        size_t range_count, range_capacity;
        bool has_lineless;                   /* a range of a function without a line row */
        const struct address_filter *filter; /* borrowed; only ranges that cover one of them are kept; NULL: all */
};

void dwarf_flat_unit_init(struct dwarf_flat_unit *u);
void dwarf_flat_unit_deinit(struct dwarf_flat_unit *u);

/** Compute the ranges of u->code. @param scratch reused from unit to unit. */
enum status dwarf_flat_unit_build(struct dwarf_flat_unit *u, struct interval_list *scratch) MUST_CHECK;

/** The builder's numbers for the texts of a unit; reused from unit to unit. */
struct dwarf_merge {
        struct function_symbols *symbols; /* borrowed; for names that DWARF lacks; NULL none */
        uint32_t *functions, *files;      /* owned; by the numbers of the texts in its chains */
        size_t function_capacity, file_capacity;
};
void dwarf_merge_deinit(struct dwarf_merge *m);

/**
 * Add the ranges to the builder, with new chains: where units overlap, the unit merged first has the smaller chain
 * numbers. Failures are kept in the builder.
 * @param u consumed; may only be built again.
 */
void dwarf_flat_unit_merge(struct dwarf_flat_unit *u, struct dwarf_merge *m, struct symbol_table_builder *b);

#endif
