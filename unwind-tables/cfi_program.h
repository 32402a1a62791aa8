/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_UNWIND_TABLES_CFI_PROGRAM_H
#define CAIRN_UNWIND_TABLES_CFI_PROGRAM_H

/**
 * @file
 * Runs call frame instructions and hands out rows.
 * Source: DWARF 5, 6.4.2 and 7.24; for 0x2d to 0x2f binutils include/dwarf2.def and aadwarf64, 4.4.
 */
#include "common/limits.h"
#include "common/reader.h"
#include "unwind-tables/cfi_section.h"

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

/** The FDE is borrowed until the last row is out. */
void cfi_program_init(struct cfi_program *p, const struct cfi_arch *arch, const struct cfi_fde *fde);

/**
 * The next row, of addresses [*start_ret, p->loc); rows follow each other without gaps from the FDE's start to its end.
 * @return ST_OK, the row is p->row; ST_NOT_FOUND after the last; ST_BAD_DATA for instructions that break the format,
 *         ST_TOO_BIG past LIMIT_UNWIND_REMEMBERED: what is left is [p->loc, p->end).
 */
enum status cfi_program_next(struct cfi_program *p, uint64_t *start_ret) MUST_CHECK;

/** Run a CIE's initial instructions; address is that of r->data[0]. */
enum status cfi_program_initial(struct reader *r, const struct cfi_arch *arch, struct cfi_cie *cie) MUST_CHECK;

#endif
