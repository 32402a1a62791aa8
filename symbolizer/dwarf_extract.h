/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_DWARF_EXTRACT_H
#define CAIRN_SYMBOLIZER_DWARF_EXTRACT_H

/**
 * @file
 * All ranges that the DWARF of one ELF file gives.
 *
 * Units are read and flattened by several threads and merged in their order, so
 * the result does not depend on the threads. No more than a few units are in
 * memory at a time, whatever the size of the file.
 *
 * Where ranges of units overlap, one with a function wins over one with lines
 * only, and else the earlier unit: a linker keeps the first of several copies of a
 * function, and may give the others the address of that one.
 */
#include "dwarf/companion.h"
#include "symbolizer/extract_internal.h"
#include "symbolizer/symbol_table_builder.h"
#include "symbolizer/wanted.h"

struct dwarf_summary {
        enum symbol_quality quality; /* QUALITY_DWARF with at least one function, QUALITY_LINES with lines only, else NONE */
        uint64_t unit_count;         /* that were read; line tables of their own count as one */
        uint64_t damaged_units;      /* of which something is missing because it cannot be read */
        enum status damage;          /* why, of the first of them */
        uint64_t damaged_at;         /* its offset in .debug_info, of a line table in .debug_line */
        uint64_t left_out;           /* units that could not be entered at all */
        struct error missing;        /* why the first of these, or a section, is missing; ST_OK: nothing is */
        uint64_t missing_companions; /* units of which there are lines only: nobody has the other half (.dwo, .dwp) */
        bool is_complete;            /* all units were read */
};

/**
 * @param img     the file with the DWARF.
 * @param altlink its dwz supplementary file, or NULL.
 * @return ST_OK also without any DWARF, and with damaged units; ST_BAD_DATA,
 *         ST_UNSUPPORTED when none of it can be read; ST_TOO_BIG; ST_NO_MEMORY.
 */
enum status dwarf_extract(const struct elf_image *img, const struct elf_image *altlink, const struct code_map *code,
                          struct symbol_table_builder *builder, struct dwarf_summary *ret,
                          struct error *err) MUST_CHECK;

/**
 * The same with split DWARF, and for a few addresses: only the units that say something about them are read. What the table then has for
 * these addresses, and the quality, are those of the whole.
 * @param companions who has the other halves of skeleton units; NULL nobody.
 * @param builder new; @param wanted NULL for everything.
 */
enum status dwarf_extract_wanted(const struct elf_image *img, const struct elf_image *altlink,
                                 const struct dwarf_companions *companions, const struct code_map *code,
                                 const struct wanted *wanted, struct symbol_table_builder *builder,
                                 struct dwarf_summary *ret, struct error *err) MUST_CHECK;

#endif
