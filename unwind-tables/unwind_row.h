/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CAIRN_UNWIND_TABLES_UNWIND_ROW_H
#define CAIRN_UNWIND_TABLES_UNWIND_ROW_H

/**
 * @file
 * Layout of unwind tables, shared by user space and BPF
 * (docs/formats/unwind.md).
 *
 * Code is divided into pages of 64 KiB of link-time addresses. The rows of a
 * page are sorted by offset; row i covers [offset(i), offset(i+1)), the last
 * one up to the end of the page. Code at a page's first byte has a row at
 * offset 0, so a lookup reads one page only. Addresses before a page's first
 * row, and rows of UNWIND_RULE_GAP, have no unwind information.
 *
 * A rule describes how to get from a frame to its caller: the CFA (the value
 * of sp in the caller, after the return address is popped), and the location
 * of the caller's frame pointer and pc. There are few distinct rules; all
 * tables share them.
 *
 * Source: DWARF 5, 6.4; System V ABI x86-64, 3.7; AArch64 DWARF (aadwarf64).
 */
#include <linux/types.h>

#define UNWIND_PAGE_BITS 16
#define UNWIND_PAGE_SIZE (1u << UNWIND_PAGE_BITS)
#define UNWIND_RULES_MAX 65536u

struct unwind_row {
        __u16 offset; /* of the address in its page */
        __u16 rule;   /* index in the shared array */
};

/* The first rules of every array. */
#define UNWIND_RULE_GAP 0           /* not in a function */
#define UNWIND_RULE_STOP 1          /* the outermost frame */
#define UNWIND_RULE_FRAME_POINTER 2 /* the frame record at fp; for code without a table */
#define UNWIND_RULE_FULL 3          /* unknown: the array has UNWIND_RULES_MAX distinct rules */
#define UNWIND_RULE_GO 4            /* likewise in Go code, whose frame pointers may lead to another stack */
#define UNWIND_RULES_FIXED 5

enum unwind_cfa {
        UNWIND_CFA_NONE,     /* only UNWIND_RULE_GAP */
        UNWIND_CFA_STOP,     /* the return address is undefined: no caller */
        UNWIND_CFA_UNKNOWN,  /* this layout cannot express the rule; see reason */
        UNWIND_CFA_REGISTER, /* base + cfa_offset */
        UNWIND_CFA_DEREF,    /* *(base + cfa_offset) + cfa_add */
        UNWIND_CFA_PLT,      /* sp + cfa_offset, 8 more when (pc & 15) >= cfa_add */
};

/* Registers by role; others by DWARF number. */
#define UNWIND_BASE_SP 0
#define UNWIND_BASE_FP 1
#define UNWIND_BASE_LR 2
/* + DWARF number, below UNWIND_SCRATCH_MAX; unwind_step.h defines where they are known */
#define UNWIND_BASE_SCRATCH 16
#define UNWIND_SCRATCH_MAX 16

enum unwind_where {
        UNWIND_SAME,        /* unchanged; for the pc: still in the link register */
        UNWIND_UNDEFINED,   /* lost */
        UNWIND_AT_CFA,      /* *(CFA + offset) */
        UNWIND_AT_SP,       /* *(sp + offset), the sp of this frame */
        UNWIND_AT_FP,       /* *(fp + offset), the fp of this frame */
        UNWIND_CFA_PLUS,    /* CFA + offset itself */
        UNWIND_IN_REGISTER, /* in the register that offset encodes as a base */
};

/* Reason of UNWIND_CFA_UNKNOWN. */
enum unwind_unknown_reason {
        UNWIND_REASON_NONE,
        UNWIND_REASON_CFA_EXPRESSION, /* unsupported DWARF expression */
        UNWIND_REASON_CFA_REGISTER,   /* the CFA depends on a register that is not tracked */
        UNWIND_REASON_FP,             /* the frame pointer's rule */
        UNWIND_REASON_RA,             /* the return address's rule */
        UNWIND_REASON_SP,             /* the stack pointer is not the CFA */
        UNWIND_REASON_OFFSET,         /* an offset does not fit 32 bits */
        UNWIND_REASON_MALFORMED,      /* malformed CFI, or nested too deeply */
        UNWIND_REASON_RULES_FULL,     /* the array has UNWIND_RULES_MAX distinct rules */
        UNWIND_REASON_COUNT,
};

#define UNWIND_FLAG_SIGNAL 1    /* the caller was interrupted: its pc is not a return address */
#define UNWIND_FLAG_SIGNAL_LR 2 /* the link register of the caller is saved 16 bytes before its pc */
#define UNWIND_FLAG_CALLER_GO 4 /* a frame that made a call from this code is unwound by UNWIND_RULE_GO */
#define UNWIND_FLAG_ANY_STACK 8 /* the caller's frame may be on another stack */
#define UNWIND_FLAG_CHAIN 16    /* a chain of frame records that ends with 0 */

struct unwind_rule {
        __u8 cfa;  /* enum unwind_cfa */
        __u8 base; /* UNWIND_BASE_* */
        __u8 fp;   /* enum unwind_where */
        __u8 ra;   /* enum unwind_where */
        __u8 flags;
        __u8 reason; /* enum unwind_unknown_reason */
        __u16 reserved;
        __s32 cfa_offset;
        __s32 cfa_add;
        __s32 fp_offset;
        __s32 ra_offset;
};

#endif
