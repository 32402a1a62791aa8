/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DWARF_ARANGES_H
#define CAIRN_DWARF_ARANGES_H

/**
 * @file
 * .debug_aranges: sets of address ranges, each of one unit.
 *
 * Not every compiler writes it, and where it differs from the DIEs and line tables, these are right. So it tells where
 * to look first, not what is there. Source: DWARF 5, 6.1.2; the sets have version 2 in all versions of DWARF.
 */
#include "dwarf/sections.h"

struct dwarf_aranges {
        struct dwarf_cursor sets; /* those still to be read */
        struct dwarf_cursor set;  /* the ranges of the current one */
        uint64_t unit;            /* of the current set: the offset in .debug_info of the header */
        uint8_t address_size;
};

void dwarf_aranges_begin(struct dwarf_aranges *a, const struct dwarf_sections *s);

/**
 * Go to the next set.
 * @return ST_NOT_FOUND at the end; ST_BAD_DATA at a header that is malformed or of another format.
 */
enum status dwarf_aranges_next_set(struct dwarf_aranges *a) MUST_CHECK;

/**
 * The next range of the set, with its size, which may be 0.
 * @return ST_NOT_FOUND after the last one; ST_BAD_DATA if the set is cut off, or goes on behind the pair of zeros that
 *         ends it, which may have been the range of a dropped function.
 */
enum status dwarf_aranges_next(struct dwarf_aranges *a, uint64_t *start_ret, uint64_t *size_ret) MUST_CHECK;

#endif
