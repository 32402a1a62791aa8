/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SYMBOLIZER_SOURCES_SOURCE_GO_H
#define CAIRN_SYMBOLIZER_SOURCES_SOURCE_GO_H

/**
 * @file
 * Functions, lines and inlined calls of a Go program from its pclntab, which
 * stripping leaves in place.
 */
#include "symbolizer/table/code_map.h"
#include "symbolizer/table/gap_fill.h"

struct go_summary {
        bool used;                       /* some address was resolved by it */
        uint64_t function_count, broken; /* broken: functions with an unreadable record */
};

/**
 * Fill b from img's pclntab.
 * @return ST_NOT_FOUND when img is not a Go program; ST_BAD_DATA when the table
 *         cannot be read at all; ST_NO_MEMORY.
 */
enum status fill_from_go_table(const struct elf_image *img, const struct code_map *code, struct symbol_table_builder *b,
                               struct go_summary *ret, struct error *err) MUST_CHECK;

#endif
