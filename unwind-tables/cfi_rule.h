/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_UNWIND_TABLES_CFI_RULE_H
#define CAIRN_UNWIND_TABLES_CFI_RULE_H

/**
 * @file
 * A row of the virtual unwind table as defined by CFI, reduced to the
 * columns that are followed: CFA, frame pointer, return address, stack
 * pointer.
 * Source: DWARF 5, 6.4.1.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind-tables/cfi_arch.h"
#include "unwind-tables/unwind_row.h"

enum cfi_kind {
        CFI_UNSPECIFIED,
        CFI_UNDEFINED,
        CFI_SAME,
        CFI_OFFSET,         /* saved at CFA + offset */
        CFI_VAL_OFFSET,     /* is CFA + offset */
        CFI_REGISTER,       /* in reg; for the CFA: reg + offset */
        CFI_EXPRESSION,     /* saved at the address that the expression computes */
        CFI_VAL_EXPRESSION, /* the value of the expression; also for the CFA */
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

/**
 * Convert a row to a rule, UNWIND_CFA_UNKNOWN with the reason when a rule cannot express it.
 * @param ra  the return address column of the CIE.
 */
struct unwind_rule cfi_row_to_rule(const struct cfi_row *row, const struct cfi_arch *arch, uint64_t ra, bool is_signal);

#endif
