/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CAIRN_UNWIND_TABLES_ROW_H
#define CAIRN_UNWIND_TABLES_ROW_H

/**
 * @file
 * The layout of unwind tables, shared by user space and BPF
 * (docs/formats/unwind.md).
 *
 * Code is cut in pages of 64 KiB of link-time addresses. A page has rows sorted
 * by offset; row i holds for [offset(i), offset(i+1)), the last one to the
 * page's end. What covers a page's first byte has a row at offset 0, so one
 * page is all that a lookup needs. Addresses before a page's first row, and
 * rows of UNWIND_RULE_GAP, have no unwind information.
 *
 * A rule says how to get from a frame to its caller's: the CFA (the value of sp
 * in the caller, before nothing but the return address was taken off), and
 * where the caller's frame pointer and pc are. Rules are few and are shared by
 * all tables.
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

/* Rules that every array begins with. */
#define UNWIND_RULE_GAP 0           /* no function here */
#define UNWIND_RULE_STOP 1          /* the outermost frame */
#define UNWIND_RULE_FRAME_POINTER 2 /* the frame record that fp points to; for code without a table */
#define UNWIND_RULE_FULL 3          /* unknown: UNWIND_RULES_MAX distinct rules are in the array */
#define UNWIND_RULE_GO 4            /* the same in Go's code, whose frame pointers lead from one stack to another */
#define UNWIND_RULES_FIXED 5

enum unwind_cfa {
        UNWIND_CFA_NONE,     /* only UNWIND_RULE_GAP */
        UNWIND_CFA_STOP,     /* the return address is undefined: no caller */
        UNWIND_CFA_UNKNOWN,  /* there is a rule, but this layout cannot say it; see why */
        UNWIND_CFA_REGISTER, /* base + cfa_offset */
        UNWIND_CFA_DEREF,    /* *(base + cfa_offset) + cfa_add */
        UNWIND_CFA_PLT,      /* sp + cfa_offset, 8 more when (pc & 15) >= cfa_add */
};

/* Registers by their part; the others by DWARF number. */
#define UNWIND_BASE_SP 0
#define UNWIND_BASE_FP 1
#define UNWIND_BASE_LR 2
#define UNWIND_BASE_SCRATCH 16 /* + DWARF number, below UNWIND_SCRATCH_MAX; see unwind_step.h for where they are known */
#define UNWIND_SCRATCH_MAX 16

enum unwind_where {
        UNWIND_SAME,        /* not changed; for the pc: still in the link register */
        UNWIND_UNDEFINED,   /* lost */
        UNWIND_AT_CFA,      /* *(CFA + offset) */
        UNWIND_AT_SP,       /* *(sp + offset), the sp of this frame */
        UNWIND_AT_FP,       /* *(fp + offset), the fp of this frame */
        UNWIND_CFA_PLUS,    /* CFA + offset itself */
        UNWIND_IN_REGISTER, /* in the base that offset names */
};

/* Why a rule is UNWIND_CFA_UNKNOWN. */
enum unwind_why {
        UNWIND_WHY_NONE,
        UNWIND_WHY_CFA_EXPRESSION, /* a DWARF expression of a form that is not known */
        UNWIND_WHY_CFA_REGISTER,   /* the CFA hangs on a register that is not kept */
        UNWIND_WHY_FP,             /* the frame pointer's rule */
        UNWIND_WHY_RA,             /* the return address's rule */
        UNWIND_WHY_SP,             /* the stack pointer is not the CFA */
        UNWIND_WHY_OFFSET,         /* an offset does not fit 32 bits */
        UNWIND_WHY_MALFORMED,      /* CFI that breaks its format, or nests too deeply */
        UNWIND_WHY_RULES_FULL,     /* UNWIND_RULES_MAX distinct rules are in the array */
        UNWIND_WHY_COUNT,
};

#define UNWIND_FLAG_SIGNAL 1    /* the caller was interrupted, its pc is no return address */
#define UNWIND_FLAG_SIGNAL_LR 2 /* the caller's link register lies 16 bytes before its pc */
#define UNWIND_FLAG_CALLER_GO 4 /* a frame that made a call here is left by UNWIND_RULE_GO */
#define UNWIND_FLAG_ANY_STACK 8 /* the caller's frame may lie anywhere */
#define UNWIND_FLAG_CHAIN 16    /* a chain of frame records, of which the last has 0 */

struct unwind_rule {
        __u8 cfa;  /* enum unwind_cfa */
        __u8 base; /* UNWIND_BASE_* */
        __u8 fp;   /* enum unwind_where */
        __u8 ra;   /* enum unwind_where */
        __u8 flags;
        __u8 why; /* enum unwind_why */
        __u16 reserved;
        __s32 cfa_offset;
        __s32 cfa_add;
        __s32 fp_offset;
        __s32 ra_offset;
};

#endif
