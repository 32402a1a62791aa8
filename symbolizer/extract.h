/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_EXTRACT_H
#define CAIRN_SYMBOLIZER_EXTRACT_H

/**
 * @file
 * From ELF files to a symbol table: DWARF with inlined calls, then whatever
 * symbol tables cover what DWARF misses.
 *
 * The caller is a confined worker or a command-line program; the input is
 * hostile. Only descriptors are used, no paths.
 */
#include "dwarf/companion.h"
#include "symbolizer/symbol_table.h"
#include "symbolizer/wanted.h"

struct extract_inputs {
        int debuginfo_fd;   /* ELF with the best symbols; -1 none */
        int executable_fd;  /* the stripped or whole executable, for what the other lacks; -1 none */
        int altlink_fd;     /* dwz supplementary file; -1 none */
        int dwp_fd;         /* package of split DWARF; none unless > 0 */
        const char *name;   /* for messages */
        const struct wanted *wanted; /* borrowed; NULL: everything */
        struct dwarf_dwo_source dwo; /* who opens single files of split DWARF; all zero: nobody */
};

/**
 * What cannot be read is left out, and the table says so (symbol_table_partial()).
 * @param ret owned, symbol_table_deinit().
 * @return ST_BAD_DATA, ST_UNSUPPORTED or ST_TOO_BIG when nothing can be used; ST_NO_MEMORY.
 */
enum status symbol_table_extract(const struct extract_inputs *in, struct symbol_table *ret, struct error *err) MUST_CHECK;

#endif
