/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_TESTS_SUPPORT_LIBDW_LINES_H
#define CAIRN_TESTS_SUPPORT_LIBDW_LINES_H

/**
 * @file
 * The line rows of one unit, from its line number program.
 *
 * Not read with libdw, because libdw sorts the rows of all sequences together: if a sequence ends with several rows at
 * one address, its empty last row and the first row of the next sequence are then indistinguishable, and rows of
 * functions dropped by the linker (at address 0) mix with those of live ones. Source: DWARF 5, 6.2; DWARF 4, 6.2 for
 * versions 2 to 4.
 */
#include "symbolizer/table/code_map.h"
#include "symbolizer/table/symbol_table_builder.h"

struct libdw_row { /* covers [start, end) */
        uint64_t start, end;
        uint32_t file; /* index in the unit's file table */
        uint32_t line; /* 0: compiler-generated code */
};

/** Sorted and disjoint. Reused for each unit. */
struct libdw_rows {
        struct libdw_row *rows; /* owned */
        size_t count, capacity;
};

/**
 * Replace the rows by those of the program at offset of .debug_line.
 *
 * Of several rows at one address the last is kept, because it covers the instruction. Sequences that do not start in
 * code are skipped.
 * @return ST_BAD_DATA, with the rows of the sequences before the fault kept;
 *         ST_UNSUPPORTED for another version; ST_NO_MEMORY.
 */
enum status libdw_rows_read(struct libdw_rows *r, const uint8_t *section, size_t section_size, uint64_t offset,
                            bool big_endian, const struct code_map *code, struct error *err) MUST_CHECK;
void libdw_rows_deinit(struct libdw_rows *r);

/** The index of the first row that ends after the address, searched from hint on; count if there is none. */
size_t libdw_rows_next(const struct libdw_rows *r, uint64_t address, size_t hint);

#endif
