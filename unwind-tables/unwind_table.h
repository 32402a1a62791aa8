/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_UNWIND_TABLES_UNWIND_TABLE_H
#define CAIRN_UNWIND_TABLES_UNWIND_TABLE_H

/**
 * @file
 * The unwind table of one ELF file (unwind_row.h defines the rows).
 *
 * Threads: any number of readers of one table, no writer; rule_set.h has the rule
 * for shared rules.
 * Source: docs/formats/unwind.md.
 */
#include "elf-image/elf_image.h"
#include "unwind-tables/cfi_source.h"
#include "unwind-tables/rule_set.h"

struct unwind_page {
        uint64_t number;    /* link-time address >> UNWIND_PAGE_BITS */
        uint32_t first_row; /* index in the table's rows */
        uint32_t row_count; /* at most UNWIND_PAGE_SIZE */
};

struct unwind_stats {
        uint64_t fdes, fdes_discarded, fdes_outside, fdes_double, fdes_unreadable; /* cfi_source.h */
        uint64_t trampolines, entries;                                             /* rows for code without CFI */
        uint64_t functions;                                                        /* FDEs in the table */
        uint64_t rules;                                                            /* distinct ones among the rows */
        uint64_t gap_rows, stop_rows;
        uint64_t unknown_rows[UNWIND_REASON_COUNT];
};

struct unwind_table {
        struct unwind_page *pages; /* owned, by number */
        size_t page_count, page_capacity;
        struct unwind_row *rows; /* owned, page after page */
        size_t row_count, row_capacity;
        bool is_go; /* code without CFI is Go code and has frame pointers */
        struct unwind_stats stats;
};

/**
 * Build the table of an ELF file. The image is not needed afterwards.
 * @param rules  shared by tables; new rules are added.
 * @param ret    untouched on failure.
 * @return as cfi_source_open(); ST_TOO_BIG past LIMIT_UNWIND_PAGES or LIMIT_UNWIND_ROWS. CFI
 *         that rules cannot express is not an error: its rows carry the reason.
 */
enum status unwind_table_build(const struct elf_image *img, struct unwind_rules *rules, struct unwind_table *ret,
                               struct error *err) MUST_CHECK;
/** Likewise, from parsed CFI. @param img  for the entry point and trampolines; may be NULL. */
enum status unwind_table_build_from_cfi(const struct cfi_source *source, const struct elf_image *img,
                                        struct unwind_rules *rules, struct unwind_table *ret,
                                        struct error *err) MUST_CHECK;
/** A zeroed table is allowed. */
void unwind_table_deinit(struct unwind_table *t);
#define _cleanup_unwind_table_ _cleanup_(unwind_table_deinit)

/**
 * Find the unwind row that covers a code address.
 *
 * @param pc  link-time address: runtime pc minus bias.
 * @param ret borrowed row, valid until unwind_table_deinit(); untouched on failure. Its rule is never UNWIND_RULE_GAP.
 * @return ST_OK; ST_NOT_FOUND when pc is outside every function (not an error).
 */
enum status unwind_table_find(const struct unwind_table *t, uint64_t pc, const struct unwind_row **ret) MUST_CHECK;

/** Number of rows with UNWIND_CFA_UNKNOWN rules. */
uint64_t unwind_stats_count_unknown(const struct unwind_stats *stats);

#endif
