/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_TESTS_SUPPORT_LIBDW_NAMES_H
#define CAIRN_TESTS_SUPPORT_LIBDW_NAMES_H

/**
 * @file
 * Names of functions from their DIEs, each origin resolved once.
 *
 * The linkage name, from any DIE in the chain of abstract origins and specifications; otherwise the plain name. A C++
 * function without a linkage name is qualified with its namespaces and classes if these were recorded.
 */
#include <elfutils/libdw.h>

#include "symbolizer/table/symbol_table_builder.h"

struct libdw_name_entry {
        const void *die; /* address of a DIE in its section; NULL: free slot */
        uint32_t value;
};
struct libdw_name_map {
        struct libdw_name_entry *entries; /* owned */
        size_t slot_count, count;
};

struct libdw_names {
        struct symbol_table_builder *builder;
        struct libdw_name_map functions;  /* origin DIE -> function */
        struct libdw_name_map qualifiers; /* DIE -> string offset of "ns::Class" */
};

void libdw_names_init(struct libdw_names *n, struct symbol_table_builder *builder);
void libdw_names_deinit(struct libdw_names *n);

/** Record that the DIE of this function is inside "ns::Class" (a string offset of the builder). */
void libdw_names_note_qualifier(struct libdw_names *n, Dwarf_Die *die, uint32_t qualifier);

/**
 * Append the name of a function's scope, as a prefix of names inside it: "ns::around(int)". False if it has no name.
 */
bool libdw_names_around(struct libdw_names *n, Dwarf_Die *function, uint32_t qualifier, struct buf *to);

/** String offset of a path; a relative one is joined to the directory of its unit. */
uint32_t libdw_path_add(struct symbol_table_builder *b, const char *directory, const char *path);

/** The function of a subprogram or an inlined call, SYMBOL_NO_FUNCTION if it has no name. */
uint32_t libdw_names_function(struct libdw_names *n, Dwarf_Die *die);

#endif
