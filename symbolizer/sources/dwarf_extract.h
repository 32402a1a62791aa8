/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_SOURCES_DWARF_EXTRACT_H
#define CAIRN_SYMBOLIZER_SOURCES_DWARF_EXTRACT_H

/**
 * @file
 * Extraction of address ranges from the DWARF of one ELF file.
 *
 * Units are read and flattened by several threads and merged in their order, so
 * that the result does not depend on scheduling. Only a few units are in memory
 * at a time, whatever the size of the file.
 *
 * Where ranges of units overlap, a range with a line row wins over one without,
 * then one with a function over one with lines only, then the earlier unit: a
 * linker keeps the first of several copies of a function, and may give the
 * others the address of that one.
 */
#include "dwarf/split_companion.h"
#include "symbolizer/table/address_filter.h"
#include "symbolizer/table/code_map.h"
#include "symbolizer/table/symbol_table_builder.h"

struct function_symbols;

struct dwarf_summary {
        enum symbol_quality
                quality;        /* QUALITY_DWARF with at least one function, QUALITY_LINES with lines only, else NONE */
        uint64_t unit_count;    /* units read; each line table without a unit counts as one */
        uint64_t damaged_units; /* units with unreadable parts */
        enum status damage;     /* reason of the first damaged unit */
        uint64_t damaged_at;    /* its offset in .debug_info, of a line table in .debug_line */
        uint64_t left_out;      /* units whose header cannot be read */
        struct error missing;   /* reason for the first of these or for a missing section; ST_OK: none */
        uint64_t missing_companions;       /* skeleton units without their .dwo or .dwp file: lines only, but for */
        uint64_t skeletons_with_functions; /* those of them with functions (-fsplit-dwarf-inlining) */
        bool is_complete;                  /* all units were read */
};

/** The input of an extraction. Everything is borrowed. */
struct dwarf_input {
        const struct elf_image *img;     /* the file with the DWARF */
        const struct elf_image *altlink; /* its dwz supplementary file; NULL none */
        const struct code_map *code;
        const struct dwarf_companions *companions; /* opens the split units of skeleton units; NULL none */
        const struct address_filter *filter;       /* NULL: all addresses */
        struct function_symbols *symbols;          /* NULL: all names are those of DWARF */
        bool has_relative_paths;                   /* paths are not joined with the compilation directory */
};

/**
 * With a filter, only units that may cover its addresses are read. For these addresses the table, and the quality,
 * equal those of a complete extraction.
 * @param builder new.
 * @return ST_OK also without any DWARF, and with damaged units; ST_BAD_DATA,
 *         ST_UNSUPPORTED when none of it can be read; ST_TOO_BIG; ST_NO_MEMORY.
 */
enum status dwarf_extract(const struct dwarf_input *in, struct symbol_table_builder *builder, struct dwarf_summary *ret,
                          struct error *err) MUST_CHECK;

#endif
