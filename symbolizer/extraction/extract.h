/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_EXTRACTION_EXTRACT_H
#define CAIRN_SYMBOLIZER_EXTRACTION_EXTRACT_H

/**
 * @file
 * Extraction: from ELF files to a symbol table. DWARF with inlined calls first,
 * then the symbol tables for addresses that DWARF does not cover.
 *
 * Runs in a confined worker or a command-line program; the input is hostile.
 * Only descriptors are used, no paths.
 */
#include "dwarf/split_companion.h"
#include "symbol-index/symbol_table.h"
#include "symbolizer/table/address_filter.h"

struct extract_inputs {
        int debuginfo_fd;                    /* ELF with the best symbols; -1 none */
        int executable_fd;                   /* the executable, stripped or not, for what debuginfo lacks; -1 none */
        int altlink_fd;                      /* dwz supplementary file; -1 none */
        int dwp_fd;                          /* package of split DWARF; none unless > 0 */
        const char *name;                    /* for messages */
        const char *file_name;               /* of the executable, for names of functions without one; NULL unknown */
        bool with_positions;                 /* extract columns and discriminators, too */
        bool has_relative_paths;             /* with positions: paths are not joined with the compilation directory */
        const struct address_filter *filter; /* borrowed; NULL: everything */
        struct dwarf_dwo_source dwo;         /* opens single files of split DWARF; all zero: none */
};

/**
 * Unreadable parts are left out and listed in symbol_table_partial_text().
 * @param ret owned, symbol_table_deinit().
 * @return ST_BAD_DATA, ST_UNSUPPORTED or ST_TOO_BIG when no part is usable; ST_NO_MEMORY.
 */
enum status symbol_table_extract(const struct extract_inputs *in, struct symbol_table *ret,
                                 struct error *err) MUST_CHECK;

#endif
