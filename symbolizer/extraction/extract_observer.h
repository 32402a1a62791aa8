/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_EXTRACTION_EXTRACT_OBSERVER_H
#define CAIRN_SYMBOLIZER_EXTRACTION_EXTRACT_OBSERVER_H

/**
 * @file
 * Observer of an extraction, called while the files are open; used for
 * explanations (symbolizer/explain/explain.h).
 */
#include "symbolizer/extraction/extract.h"
#include "symbolizer/table/code_map.h"
#include "symbolizer/table/symbol_table_builder.h"

/** The inputs of a running extraction; absent images are NULL. */
struct function_symbols;

struct extract_view {
        const struct elf_image *debuginfo, *executable;
        const struct elf_image *best;              /* the one whose DWARF is read */
        const struct elf_image *altlink;           /* the dwz file that best names */
        const struct elf_image *mini;              /* .gnu_debugdata, unpacked */
        const struct dwarf_companions *companions; /* sources of the split units of best */
        struct function_symbols *symbols;          /* names that they give to functions of the DWARF of best */
        const struct code_map *code;               /* in addresses of the executable, as the table */
        const char *file_name;                     /* of the inputs */
        bool has_boundaries;                       /* boundaries of functions were a source */
        uint64_t dwarf_bias;                       /* of the executable against the DWARF of best (extract_files.h) */
};

struct extract_observer {
        void *context;
        /** The builder holds the ranges of DWARF only, settled. May be NULL. */
        enum status (*dwarf)(void *context, const struct symbol_table_builder *b, struct error *err);
        /** The table is complete. */
        enum status (*done)(void *context, const struct extract_view *v, const struct symbol_table *t,
                            struct error *err);
};

/** As symbol_table_extract(); a failure of the observer is returned. */
enum status symbol_table_extract_observed(const struct extract_inputs *in, const struct extract_observer *observer,
                                          struct symbol_table *ret, struct error *err) MUST_CHECK;

#endif
