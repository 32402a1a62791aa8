/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_EXTRACT_OBSERVER_H
#define CAIRN_SYMBOLIZER_EXTRACT_OBSERVER_H

/**
 * @file
 * Looking on while a symbol table is made, with the files still open: what
 * explanations are made of (symbolizer/explain.h).
 */
#include "symbolizer/extract.h"
#include "symbolizer/extract_internal.h"
#include "symbolizer/symbol_table_builder.h"

/** What an extraction works on; images that it does not have are NULL. */
struct extract_view {
        const struct elf_image *debuginfo, *executable;
        const struct elf_image *best;    /* the one whose DWARF is read */
        const struct elf_image *altlink; /* the dwz file that best names */
        const struct elf_image *mini;    /* .gnu_debugdata, unpacked */
        const struct dwarf_companions *companions; /* who has the other halves of best's skeletons */
        const struct code_map *code;     /* in the addresses of the file that runs, as the table */
        uint64_t displacement;           /* how much greater these are than those of best (symbolizer/extract_displace.h) */
};

struct extract_observer {
        void *context;
        /** DWARF is in the builder, settled, and nothing else. */
        enum status (*dwarf)(void *context, const struct symbol_table_builder *b, struct error *err);
        /** The table is done. */
        enum status (*done)(void *context, const struct extract_view *v, const struct symbol_table *t, struct error *err);
};

/** As symbol_table_extract(); what the observer fails with is the result. */
enum status symbol_table_extract_watched(const struct extract_inputs *in, const struct extract_observer *observer,
                                         struct symbol_table *ret, struct error *err) MUST_CHECK;

#endif
