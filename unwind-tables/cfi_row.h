/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_UNWIND_TABLES_CFI_ROW_H
#define CAIRN_UNWIND_TABLES_CFI_ROW_H

/**
 * @file
 * A row of the virtual unwind table as CFI says it, of the columns that are
 * followed: CFA, frame pointer, return address, stack pointer.
 * Source: DWARF 5, 6.4.1.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind-tables/cfi_arch.h"
#include "unwind-tables/row.h"

enum cfi_kind {
        CFI_UNSPECIFIED,
        CFI_UNDEFINED,
        CFI_SAME,
        CFI_OFFSET,         /* saved at CFA + offset */
        CFI_VAL_OFFSET,     /* is CFA + offset */
        CFI_REGISTER,       /* in reg; for the CFA: reg + offset */
        CFI_EXPRESSION,     /* saved where the expression says */
        CFI_VAL_EXPRESSION, /* is what the expression says; also the CFA's */
};

struct cfi_column {
        enum cfi_kind kind;
        uint64_t reg;
        int64_t offset;
        const uint8_t *expression; /* borrowed from the section */
        size_t expression_size;
};

struct cfi_row {
        struct cfi_column cfa, fp, ra, sp;
};

/** The rule of a row, UNWIND_CFA_UNKNOWN with the reason where there is none; ra is the CIE's return address column. */
struct unwind_rule cfi_row_rule(const struct cfi_row *row, const struct cfi_arch *arch, uint64_t ra, bool is_signal);

#endif
