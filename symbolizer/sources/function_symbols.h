/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_SOURCES_FUNCTION_SYMBOLS_H
#define CAIRN_SYMBOLIZER_SOURCES_FUNCTION_SYMBOLS_H

/**
 * @file
 * ELF symbols as names of functions that DWARF describes, for the cases in which a symbol knows better:
 *
 * - DWARF has only a bare name: neither a linkage name nor an enclosing namespace or class. Builds with line tables
 *   only (-gmlt, -g1, debuginfo=line-tables-only) and skeleton units without their .dwo file are like this, as are
 *   functions of GCC without external linkage. Different functions would have one name. The mangled symbol that starts
 *   where the function does is used.
 * - The linker assigned the debug information of a dropped function to another one of the same size (ld.bfd and gold,
 *   for copies of inline functions): the linkage name is a symbol at another address, and a symbol with another name
 *   covers exactly the function.
 *
 * - The function is too long: GNU as for RISC-V writes lengths from before relaxation. Its own symbol ends before, and
 *   the symbol of another function starts, in addresses for which there is no line row.
 *
 * Clone suffixes (".cold", ".constprop.0") and symbol versions are not part of the name.
 *
 * Threads: one at a time.
 */
#include "common/hash/hash_table.h"
#include "dwarf/code.h"
#include "symbolizer/sources/code_symbols.h"

struct function_symbol {
        uint64_t start, end; /* as in DWARF */
        const char *name;    /* borrowed from its image */
        bool is_function;    /* by its type; clang's parts of a function are labels with a size */
};

struct function_symbols {
        /** Gives the symbols, on first use. */
        enum status (*collect)(void *context, const struct code_symbols **ret);
        void *context;
        uint64_t dwarf_bias; /* of the symbols against the DWARF */

        struct function_symbol *items; /* owned; those with a size, by start, then best first */
        size_t count;
        struct hash_table names; /* of the items; filled when first needed */
        bool is_loaded, is_hashed;
};
void function_symbols_deinit(struct function_symbols *s);

/** A name inside a symbol's: without a NUL. */
struct function_symbol_name {
        const char *text; /* borrowed; NULL: keep the name of DWARF */
        size_t size;
};

/**
 * The name to use instead of DWARF's, by one range of the function: any of them if the name is bare, else the first.
 * @param s NULL: no symbols.
 * @return ST_NO_MEMORY, or a failure of collect.
 */
enum status function_symbols_find_name(struct function_symbols *s, const struct dwarf_interval *range,
                                       const struct dwarf_name *name, struct function_symbol_name *ret) MUST_CHECK;

/**
 * Where a function without line rows at its end really ends: at the symbol of another function that starts in the
 * range, behind the end of all symbols that start with the function; else at the end of the range.
 * @param s NULL: no symbols.
 * @return as above.
 */
enum status function_symbols_find_end(struct function_symbols *s, const struct dwarf_interval *range,
                                      uint64_t *ret) MUST_CHECK;

#endif
