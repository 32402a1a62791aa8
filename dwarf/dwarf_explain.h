/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DWARF_DWARF_EXPLAIN_H
#define CAIRN_DWARF_DWARF_EXPLAIN_H

/**
 * @file
 * Explains the result for one address: the DIEs, ranges and attributes of the scopes that dwarf_reader_unit()
 * found. The unit is read by the normal reader; only the DIEs involved are decoded a second time.
 *
 * Threads: as for the reader.
 */
#include "common/limits.h"
#include "dwarf/code.h"
#include "dwarf/context.h"
#include "dwarf/line.h"

/** How a DIE of a name chain was reached from the one before it. */
enum dwarf_hop_kind { DWARF_HOP_SELF, DWARF_HOP_ORIGIN, DWARF_HOP_SPECIFICATION };

struct dwarf_hop {
        dwarf_ref die;
        uint64_t unit; /* offset of the unit that holds it */
        uint16_t tag;
        enum dwarf_hop_kind how;
        bool has_linkage_name, has_name;
};

#define DWARF_HOPS_MAX (LIMIT_DWARF_ORIGINS + 1) /* with the scope's own DIE */

struct dwarf_scope_found {
        uint64_t die; /* offset in .debug_info of the unit's file */
        uint16_t tag;
        struct dwarf_name name;        /* borrowed from the code */
        uint32_t call_file, call_line; /* as in struct dwarf_scope */
        uint64_t call_column;          /* 0 unknown */
        bool has_interval;             /* an outer scope need not cover its inner scopes */
        uint64_t start, end;
        uint64_t used_start, used_end; /* the part of it that counts: see walk.c and cut_intervals() */
        bool is_list;                  /* from a list of ranges */
        uint64_t list, entry;          /* its offset in .debug_ranges or .debug_rnglists, and the number of the range */
        struct dwarf_hop hops[DWARF_HOPS_MAX];
        size_t hop_count, name_hop; /* name_hop == hop_count: nameless */
};

struct dwarf_unit_found {
        const struct dwarf_unit *unit;
        uint16_t tag;
        bool is_split;
        const char *name, *directory, *producer, *dwo_name; /* borrowed from the object; NULL unknown */
        bool has_dwo_id;
        uint64_t dwo_id, line_table; /* line_table: UINT64_MAX none */
};

/**
 * Whether the ranges of the unit DIE cover the address. Cheap; a unit that returns false may still have functions
 * there.
 */
bool dwarf_unit_claims(struct dwarf_reader *r, size_t i, uint64_t address);

/**
 * Enter unit i, the last one read into code, again. The functions below refer to the unit entered last.
 * @param half  enter the split unit of a skeleton, which has the scopes; false: the unit in the linked file, which has
 *          the rows.
 */
enum status dwarf_explain_enter(struct dwarf_reader *r, size_t i, const struct dwarf_code *code, bool half) MUST_CHECK;
/** Call before reading the next unit. */
void dwarf_explain_leave(struct dwarf_reader *r);

void dwarf_unit_explain(struct dwarf_reader *r, struct dwarf_unit_found *ret);

/** The innermost scope at an address, DWARF_NO_SCOPE if none covers it. */
uint32_t dwarf_scope_at(const struct dwarf_code *code, uint64_t address);

/** Whether a scope or a row of the unit covers the address. */
bool dwarf_code_covers(const struct dwarf_code *code, uint64_t address);

/** Explain one scope of the code. */
void dwarf_scope_explain(struct dwarf_reader *r, const struct dwarf_code *code, uint32_t scope, uint64_t address,
                         struct dwarf_scope_found *ret);

/** The row of its line table that covers the address; as dwarf_row_find(). */
struct dwarf_row_found;
enum status dwarf_row_explain(struct dwarf_reader *r, const struct dwarf_code *code, uint64_t address,
                              struct dwarf_lines *files, struct dwarf_row_found *ret) MUST_CHECK;

struct dwarf_row_found {
        uint64_t table;                        /* offset in .debug_line */
        uint64_t opcode;                       /* offset in .debug_line of the opcode that made the row */
        uint64_t sequence_start, sequence_end; /* addresses */
        uint64_t address, end;                 /* the row covers [address, end) */
        uint64_t file, line, column, discriminator;
        bool is_statement;
        uint64_t rows_at_address; /* rows of the sequence at `address`; the last one is this one */
        uint64_t other_sequences; /* sequences that also cover the address but are not used */
};

/**
 * @param files cleared, and filled with the table's files: dwarf_lines_path() of them gives the path.
 * @return ST_NOT_FOUND when no row covers the address; else as dwarf_lines_read().
 */
enum status dwarf_row_find(const struct dwarf_context *x, uint64_t table, uint64_t address,
                           const struct dwarf_regions *code, struct dwarf_lines *files,
                           struct dwarf_row_found *ret) MUST_CHECK;

#endif
