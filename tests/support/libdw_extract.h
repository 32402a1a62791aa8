/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_TESTS_SUPPORT_LIBDW_EXTRACT_H
#define CAIRN_TESTS_SUPPORT_LIBDW_EXTRACT_H

/** @file Reads all ranges from the DWARF of one ELF file. Source: DWARF 2 to 5, read with libdw. */
#include "symbolizer/table/code_map.h"
#include "symbolizer/table/symbol_table_builder.h"

/**
 * @param img     the file with the DWARF.
 * @param altlink its dwz supplementary file, or NULL.
 * @param names_first walk all units first, so that the scopes of every name are known.
 * @param quality_ret QUALITY_DWARF with at least one function, QUALITY_LINES
 *        with lines only, else QUALITY_NONE.
 * @return ST_OK also without any DWARF; ST_BAD_DATA when a unit's header is broken.
 */
enum status libdw_extract(const struct elf_image *img, const struct elf_image *altlink, const struct code_map *code,
                          struct symbol_table_builder *builder, bool names_first, enum symbol_quality *quality_ret,
                          struct error *err) MUST_CHECK;

#endif
