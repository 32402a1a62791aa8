/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DWARF_EXPLAIN_LINE_H
#define CAIRN_DWARF_EXPLAIN_LINE_H

/**
 * @file
 * The one row of a line table that covers an address, with everything that
 * dwarf/line.h does not keep: a second, slow reading of the program.
 *
 * Threads: those of the context.
 * Source: DWARF 5, 6.2.
 */
#include "dwarf/line.h"

struct dwarf_row_found {
        uint64_t table;                         /* offset in .debug_line */
        uint64_t opcode;                        /* offset in .debug_line of the opcode that made the row */
        uint64_t sequence_start, sequence_end;  /* addresses */
        uint64_t address, end;                  /* the row covers [address, end) */
        uint64_t file, line, column, discriminator;
        bool is_statement;
        uint64_t rows_at_address;               /* rows of the sequence at `address`; the last one is this one */
        uint64_t other_sequences;               /* that cover the address as well and were not taken */
};

/**
 * @param files cleared, and filled with the table's files: dwarf_lines_path() of them gives the path.
 * @return ST_NOT_FOUND when no row covers the address; else as dwarf_lines_read().
 */
enum status dwarf_row_find(const struct dwarf_context *x, uint64_t table, uint64_t address,
                           const struct dwarf_regions *code, struct dwarf_lines *files,
                           struct dwarf_row_found *ret) MUST_CHECK;

#endif
