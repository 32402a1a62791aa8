/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_SOURCES_DWARF_SELECTION_H
#define CAIRN_SYMBOLIZER_SOURCES_DWARF_SELECTION_H

/**
 * @file
 * The units that may cover a few addresses, found without reading them all.
 */
#include "dwarf/dwarf_object.h"
#include "dwarf/regions.h"
#include "symbolizer/table/address_filter.h"

/** Addresses of code that the DIE of a unit gives. */
struct dwarf_claim {
        uint64_t start, end;
        size_t unit;
};

/**
 * The claims of all units, ascending and disjoint: those that touch or overlap are joined, with the unit of one of
 * them.
 * @param ret owned; free().  @return ST_NO_MEMORY.
 */
enum status dwarf_collect_claims(struct dwarf_object *o, const struct dwarf_regions *code, struct dwarf_claim **ret,
                                 size_t *count_ret) MUST_CHECK;

struct selected_unit {
        size_t unit;     /* of the object's main file */
        bool only_lines; /* its line table is read, and the unit only if a row covers an address */
};

struct dwarf_selection {
        struct selected_unit *units; /* owned; ascending */
        size_t count;
        uint64_t bytes;   /* of .debug_info, in those that are not only lines */
        uint64_t *tables; /* owned; by unit of the object: the offset of its line table, UINT64_MAX none */
};

/** @param ret free with dwarf_selection_deinit(), also after a failure.  @return ST_NO_MEMORY. */
enum status dwarf_select(struct dwarf_object *o, const struct dwarf_regions *code, const struct address_filter *w,
                         struct dwarf_selection *ret) MUST_CHECK;
/**
 * Select by .debug_aranges, and by the DIEs of units that it does not list. For an address to which these units give a
 * function and a line row, the selection is complete. For any other, and if is_found_ret is false because an address of
 * code is in no range or the section is malformed, use dwarf_select(). Returns as above.
 */
enum status dwarf_select_by_aranges(struct dwarf_object *o, const struct dwarf_regions *code,
                                    const struct address_filter *w, struct dwarf_selection *ret,
                                    bool *is_found_ret) MUST_CHECK;
void dwarf_selection_deinit(struct dwarf_selection *s);

#endif
