/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_DWARF_NAMES_H
#define CAIRN_SYMBOLIZER_DWARF_NAMES_H

/**
 * @file
 * Names of functions from their DIEs, each origin resolved once.
 *
 * The linkage name, wherever the chain of abstract origins and specifications
 * has it; else the plain name. A C++ function without a linkage name gets its
 * namespaces and classes in front when these were noted.
 */
#include <elfutils/libdw.h>

#include "symbolizer/symbol_table_builder.h"

struct dwarf_name_entry {
        const void *die;    /* address of a DIE in its section; NULL is free */
        uint32_t value;
};
struct dwarf_name_map {
        struct dwarf_name_entry *entries; /* owned */
        size_t slot_count, count;
};

struct dwarf_names {
        struct symbol_table_builder *builder;
        struct dwarf_name_map functions;  /* of an origin DIE: its function */
        struct dwarf_name_map qualifiers; /* of a DIE: string offset of "ns::Class" */
};

void dwarf_names_init(struct dwarf_names *n, struct symbol_table_builder *builder);
void dwarf_names_deinit(struct dwarf_names *n);

/** The DIE of this function is inside "ns::Class" (a string offset of the builder). */
void dwarf_names_note_qualifier(struct dwarf_names *n, Dwarf_Die *die, uint32_t qualifier);

/** The function that a subprogram or an inlined call is of, SYMBOL_NO_FUNCTION when nothing names it. */
uint32_t dwarf_names_function(struct dwarf_names *n, Dwarf_Die *die);

#endif
