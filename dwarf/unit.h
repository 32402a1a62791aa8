/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DWARF_UNIT_H
#define CAIRN_DWARF_UNIT_H

/**
 * @file
 * The units of .debug_info, from their headers.
 * Source: DWARF 5, 7.5.1; DWARF 4, 7.5.1 for versions 2 to 4.
 */
#include "common/error.h"
#include "dwarf/form.h"
#include "dwarf/sections.h"

struct dwarf_unit {
        uint64_t offset, end; /* in .debug_info, the header included */
        uint64_t first_die;   /* offset of the unit's own DIE */
        uint64_t abbrev_offset;
        uint64_t signature;   /* of a type unit; of a skeleton and a split unit the id they share (version 5) */
        uint64_t type_offset; /* in .debug_info, of the type of a type unit */
        struct dwarf_format format;
        uint8_t type; /* enum dwarf_unit_type */
};

/** In the order of the section, disjoint. */
struct dwarf_units {
        struct dwarf_unit *items; /* owned */
        size_t count, capacity;
        uint64_t left_out;   /* units with a broken header or of an unknown version; at least that many */
        struct error damage; /* reason of the first of these; ST_OK: none */
};

/**
 * Read all headers. A unit with a malformed header or of an unknown version is
 * left out; reading stops at a unit that ends past the section, and at LIMIT_DWARF_UNITS.
 * @return ST_NO_MEMORY.
 */
enum status dwarf_units_read(const struct dwarf_sections *s, struct dwarf_units *ret, struct error *err) MUST_CHECK;
void dwarf_units_deinit(struct dwarf_units *u);

/** The unit that holds the DIE at this offset, or NULL. */
const struct dwarf_unit *dwarf_units_find(const struct dwarf_units *u, uint64_t offset);

#endif
