/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DWARF_EXPLAIN_H
#define CAIRN_DWARF_EXPLAIN_H

/**
 * @file
 * Why one unit says what it says about an address: the DIEs, the ranges and the
 * attributes behind the scopes that dwarf_reader_unit() found. The unit is read
 * by the usual reader; here only the DIEs on the way are read once more.
 *
 * Threads: those of the reader.
 */
#include "common/limits.h"
#include "dwarf/code.h"
#include "dwarf/context.h"

/** How a DIE on the way to a name was reached from the one before it. */
enum dwarf_hop_kind { DWARF_HOP_SELF, DWARF_HOP_ORIGIN, DWARF_HOP_SPECIFICATION };

struct dwarf_hop {
        dwarf_ref die;
        uint64_t unit;      /* offset of the unit that holds it */
        uint16_t tag;
        enum dwarf_hop_kind how;
        bool has_linkage_name, has_name;
};

#define DWARF_HOPS_MAX (LIMIT_DWARF_ORIGINS + 1) /* with the scope's own DIE */

struct dwarf_scope_found {
        uint64_t die;       /* offset in .debug_info of the unit's file */
        uint16_t tag;
        struct dwarf_name name;             /* borrowed from the code */
        uint32_t call_file, call_line;      /* as in struct dwarf_scope */
        uint64_t call_column;               /* 0 unknown */
        bool has_interval;                  /* an outer scope need not cover what is inside of it */
        uint64_t start, end;
        bool is_list;                       /* from a list of ranges */
        uint64_t list, entry;               /* its offset in .debug_ranges or .debug_rnglists, and the number of the range */
        struct dwarf_hop hops[DWARF_HOPS_MAX];
        size_t hop_count, name_hop;         /* name_hop == hop_count: nameless */
};

struct dwarf_unit_found {
        const struct dwarf_unit *unit;
        uint16_t tag;
        bool is_split;
        const char *name, *directory, *producer, *dwo_name; /* borrowed from the object; NULL unknown */
        bool has_dwo_id;
        uint64_t dwo_id, line_table; /* line_table: UINT64_MAX none */
};

/** Does unit i say itself that it covers the address? Cheap; one that does not may have functions there all the same. */
bool dwarf_unit_claims(struct dwarf_reader *r, size_t i, uint64_t address);

/**
 * Go back to unit i, which was read last, into code. The functions below are about the unit entered last.
 * @param half of a skeleton whose other half was read: that one, where scopes are; else the unit, which has the rows.
 */
enum status dwarf_explain_enter(struct dwarf_reader *r, size_t i, const struct dwarf_code *code, bool half) MUST_CHECK;
/** Before the next unit is read. */
void dwarf_explain_leave(struct dwarf_reader *r);

void dwarf_unit_explain(struct dwarf_reader *r, struct dwarf_unit_found *ret);

/** The innermost scope of the code at an address, DWARF_NO_SCOPE outside of all: the one that is painted last. */
uint32_t dwarf_scope_at(const struct dwarf_code *code, uint64_t address);

/** Does the unit say anything about the address, with a scope or with a row? */
bool dwarf_code_covers(const struct dwarf_code *code, uint64_t address);

/** About one scope of the code. */
void dwarf_scope_explain(struct dwarf_reader *r, const struct dwarf_code *code, uint32_t scope, uint64_t address,
                         struct dwarf_scope_found *ret);

/** The row of its line table that covers the address; as dwarf_row_find(). */
struct dwarf_row_found;
enum status dwarf_row_explain(struct dwarf_reader *r, const struct dwarf_code *code, uint64_t address,
                              struct dwarf_lines *files, struct dwarf_row_found *ret) MUST_CHECK;

#endif
