/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_TESTS_SUPPORT_LIBDW_NAMES_H
#define CAIRN_TESTS_SUPPORT_LIBDW_NAMES_H

/**
 * @file
 * Names of functions from their DIEs, each origin resolved once.
 *
 * The linkage name, wherever the chain of abstract origins and specifications
 * has it; else the plain name. A C++ function without a linkage name gets its
 * namespaces and classes in front when these were noted.
 */
#include <elfutils/libdw.h>

#include "symbolizer/table/symbol_table_builder.h"

struct libdw_name_entry {
        const void *die; /* address of a DIE in its section; NULL is free */
        uint32_t value;
};
struct libdw_name_map {
        struct libdw_name_entry *entries; /* owned */
        size_t slot_count, count;
};

struct libdw_names {
        struct symbol_table_builder *builder;
        struct libdw_name_map functions;  /* of an origin DIE: its function */
        struct libdw_name_map qualifiers; /* of a DIE: string offset of "ns::Class" */
};

void libdw_names_init(struct libdw_names *n, struct symbol_table_builder *builder);
void libdw_names_deinit(struct libdw_names *n);

/** The DIE of this function is inside "ns::Class" (a string offset of the builder). */
void libdw_names_note_qualifier(struct libdw_names *n, Dwarf_Die *die, uint32_t qualifier);

/** Append what stands in front of what is inside of a function: "ns::around(int)". False when nothing names it. */
bool libdw_names_around(struct libdw_names *n, Dwarf_Die *function, uint32_t qualifier, struct buf *to);

/** String offset of a path, a relative one behind the directory of its unit. */
uint32_t libdw_path_add(struct symbol_table_builder *b, const char *directory, const char *path);

/** The function that a subprogram or an inlined call is of, SYMBOL_NO_FUNCTION when nothing names it. */
uint32_t libdw_names_function(struct libdw_names *n, Dwarf_Die *die);

#endif
