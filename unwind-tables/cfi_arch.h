/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_UNWIND_TABLES_CFI_ARCH_H
#define CAIRN_UNWIND_TABLES_CFI_ARCH_H

/**
 * @file
 * Processor-specific part of CFI: register numbers, and the trampolines
 * through which kernels return from signal handlers.
 * Source: System V ABI x86-64, 3.6.2 (figure 3.36); AArch64 DWARF (aadwarf64),
 * 4.1.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind-tables/unwind_row.h"

struct cfi_arch {
        uint16_t machine;         /* e_machine */
        uint64_t sp, fp, ra;      /* DWARF numbers */
        bool ra_is_register;      /* without a rule, ra is still in the link register; else there is no caller */
        const uint8_t *sigreturn; /* instructions of the trampoline */
        size_t sigreturn_size;
        struct unwind_rule signal; /* rule at the trampoline */
        bool signal_by_layout; /* the trampoline's CFI does not describe the interrupted pc: use `signal` for any signal
                                  frame */
};

/** NULL for an unsupported processor. */
const struct cfi_arch *cfi_arch_find(uint16_t machine);

/** UNWIND_BASE_* of a DWARF register; false for one that rules cannot name. */
bool cfi_arch_find_base(const struct cfi_arch *arch, uint64_t reg, uint8_t *ret);

#endif
