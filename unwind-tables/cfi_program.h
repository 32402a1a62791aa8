/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_UNWIND_TABLES_CFI_PROGRAM_H
#define CAIRN_UNWIND_TABLES_CFI_PROGRAM_H

/**
 * @file
 * Interpreter of call frame instructions that yields rows.
 * Source: DWARF 5, 6.4.2 and 7.24; for 0x2d to 0x2f binutils
 * include/dwarf2.def and aadwarf64, 4.4.
 */
#include "common/limits.h"
#include "common/reader.h"
#include "unwind-tables/cfi_source.h"

struct cfi_program {
        struct reader r;
        const struct cfi_arch *arch;
        const struct cfi_cie *cie;
        uint64_t address; /* of r.data[0] */
        uint64_t loc, end;
        struct cfi_row row;
        struct cfi_row remembered[LIMIT_UNWIND_REMEMBERED];
        size_t depth;
        bool done;
};

/** The FDE is borrowed until the last row. */
void cfi_program_init(struct cfi_program *p, const struct cfi_arch *arch, const struct cfi_fde *fde);

/**
 * The next row, for addresses [*start_ret, p->loc). Rows are contiguous from the start of the
 * FDE to its end.
 * @return ST_OK, the row is p->row; ST_NOT_FOUND after the last; ST_BAD_DATA for malformed
 *         instructions, ST_TOO_BIG past LIMIT_UNWIND_REMEMBERED: [p->loc, p->end) is left.
 */
enum status cfi_program_next(struct cfi_program *p, uint64_t *start_ret) MUST_CHECK;

/** Run the initial instructions of a CIE. */
enum status cfi_program_run_initial(struct reader *r, const struct cfi_arch *arch, struct cfi_cie *cie) MUST_CHECK;

#endif
