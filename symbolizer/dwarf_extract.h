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
 * only, and else the one whose chain of frames came first in a later unit.
 */
#include "symbolizer/extract_internal.h"
#include "symbolizer/symbol_table_builder.h"

struct dwarf_summary {
        enum symbol_quality quality; /* QUALITY_DWARF with at least one function, QUALITY_LINES with lines only, else NONE */
        uint64_t damaged_units;      /* of which something is missing because it cannot be read */
        enum status damage;          /* why, of the first of them */
};

/**
 * @param img     the file with the DWARF.
 * @param altlink its dwz supplementary file, or NULL.
 * @return ST_OK also without any DWARF, and with damaged units; ST_BAD_DATA when
 *         a unit's header is broken; ST_TOO_BIG; ST_NO_MEMORY.
 */
enum status dwarf_extract(const struct elf_image *img, const struct elf_image *altlink, const struct code_map *code,
                          struct symbol_table_builder *builder, struct dwarf_summary *ret,
                          struct error *err) MUST_CHECK;

#endif
