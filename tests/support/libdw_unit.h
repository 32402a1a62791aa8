/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_TESTS_SUPPORT_LIBDW_UNIT_H
#define CAIRN_TESTS_SUPPORT_LIBDW_UNIT_H

/**
 * @file
 * Reads one compilation unit: its functions and inlined calls as scopes, their address ranges, and its line rows. Then
 * flattens these into ranges.
 *
 * The frame of the innermost scope has the line row's file and line; each enclosing scope has the file and line of the
 * call inlined into it.
 *
 * Paths are those of the file table; relative ones are joined to their directory and the unit's.
 * "DIR/./nptl/nptl-stack.c" is not normalized, like in the output of addr2line and llvm-symbolizer.
 */
#include <elfutils/libdw.h>

#include "tests/support/libdw_file.h"
#include "tests/support/libdw_lines.h"
#include "tests/support/libdw_names.h"
#include "symbolizer/table/code_map.h"
#include "symbolizer/table/interval_overlay.h"

#define NO_SCOPE UINT32_MAX

struct libdw_scope {
        uint32_t parent; /* the scope into which this one is inlined, NO_SCOPE for a function */
        uint32_t function;
        uint32_t call_file; /* string offset */
        uint32_t call_line;
};

/** Scratch memory, reused for each unit. */
struct libdw_unit {
        struct symbol_table_builder *builder;
        const struct code_map *code;
        const uint8_t *line_section; /* .debug_line */
        size_t line_section_size;
        bool big_endian;
        struct libdw_names names;
        struct libdw_rows rows;
        struct interval_list intervals;
        struct libdw_scope *scopes;
        size_t scope_count, scope_capacity;
        uint32_t *files; /* file table index -> string offset, UINT32_MAX: not yet looked up */
        size_t file_count, file_capacity;
        Dwarf_Files *file_table;
        const char *directory;   /* the unit's DW_AT_comp_dir, NULL if unknown */
        bool only_notes;         /* this walk only records the scopes of functions */
        uint64_t function_total; /* functions with code, of all units */
        uint64_t *tables;        /* offsets of the line tables that units refer to */
        size_t table_count, table_capacity;
        bool tables_sorted;
        /* used while flattening */
        uint64_t flat_until;
        size_t row_hint;
        uint32_t last_scope, last_file, last_line, last_chain;
};

void libdw_unit_init(struct libdw_unit *u, const struct libdw_file *file, struct symbol_table_builder *builder,
                     const struct code_map *code);
void libdw_unit_deinit(struct libdw_unit *u);

/** Add the ranges of a unit to the builder. Unreadable parts are skipped; failures are stored in the builder. */
void libdw_unit_extract(struct libdw_unit *u, Dwarf_Die *unit_die);

/** Only record the scopes of functions, so that names do not depend on the order of DIEs and units. */
void libdw_unit_note(struct libdw_unit *u, Dwarf_Die *unit_die);

/** Add the ranges of a line table, unless it belongs to one of the previous units. */
void libdw_unit_extract_lines(struct libdw_unit *u, uint64_t offset, Dwarf_Files *files, size_t file_count);

/* Shared by libdw_unit.c, which walks the DIEs, and libdw_flatten.c. */
void libdw_unit_flatten(struct libdw_unit *u);
uint32_t libdw_unit_file(struct libdw_unit *u, uint64_t number); /* string offset of its path, 0: unknown */

#endif
