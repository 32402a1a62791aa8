/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CAIRN_UNWIND_TABLES_UNWIND_STEP_H
#define CAIRN_UNWIND_TABLES_UNWIND_STEP_H

/**
 * @file
 * One step up a stack by an unwind rule: registers of a frame in, registers of
 * its caller out. Plain C without calls but the reader's, for user space and
 * BPF alike; which rule holds at a pc is the caller's business.
 *
 * The pc to look a rule up for is unwind_lookup_pc(): a return address may lie
 * past the end of its function when the call does not return.
 *
 * Only sp, fp, pc and the link register are followed from frame to frame. Other
 * registers are known in an interrupted frame, and taken for known in its caller
 * while the interrupted function has pushed nothing: whose CFA hangs on such a
 * register has helpers that leave it alone (OpenSSL's). A rule that needs one of
 * them further up is UNWIND_NO_REGISTER.
 */
#include "unwind-tables/row.h"

enum unwind_status {
        UNWIND_STEPPED,       /* the registers are the caller's now */
        UNWIND_DONE,          /* there is no caller */
        UNWIND_NO_RULE,       /* no unwind information for this pc */
        UNWIND_UNKNOWN_RULE,  /* the rule is one that tables cannot say */
        UNWIND_NO_MEMORY_AT,  /* stack memory could not be read */
        UNWIND_NO_REGISTER,   /* the rule needs a register that is not known here */
        UNWIND_NO_PROGRESS,   /* the caller's frame would not lie above this one */
};

struct unwind_regs {
        __u64 pc, sp, fp;
        __u64 lr;               /* aarch64 */
        __u64 code_mask;        /* bits of a code address: aarch64 return addresses may be signed above them; else all */
        __u64 scratch[UNWIND_SCRATCH_MAX]; /* by DWARF number */
        __u8 scratch_known;
        __u8 pc_is_return;      /* 0: interrupted at pc */
};

/** Read 8 bytes at addr; not 0 when they cannot be had. */
typedef int (*unwind_read_fn)(void *ctx, __u64 addr, __u64 *ret);

#ifndef UNWIND_INLINE
#define UNWIND_INLINE static inline __attribute__((always_inline))
#endif

UNWIND_INLINE __u64 unwind_lookup_pc(const struct unwind_regs *regs)
{
        return regs->pc - (regs->pc_is_return ? 1 : 0);
}

/**
 * The number of the rule to try in code that no CFI covers: hand-written code
 * and a compiler's built-in code (V8's) keep frame pointers. A walk that goes
 * wrong ends at a pc that is no code.
 */
UNWIND_INLINE __u32 unwind_rule_in_hole(__u32 number)
{
        return number == UNWIND_RULE_GAP ? UNWIND_RULE_FRAME_POINTER : number;
}

/** Is it one of the two rules for code without CFI? Their chain ends with 0. */
UNWIND_INLINE int unwind_is_by_frame_pointer(const struct unwind_rule *rule)
{
        return rule->flags & UNWIND_FLAG_CHAIN;
}

/**
 * The number of the rule for a caller before whose return address there is no
 * function, given the one at the address itself: nobody called from there. A
 * signal's trampoline goes on; anything else was put there to begin a stack
 * (makecontext), whatever its CFI says.
 */
UNWIND_INLINE __u32 unwind_rule_at_start(const struct unwind_rule *rule, __u32 number)
{
        if (number == UNWIND_RULE_GAP || (rule->flags & UNWIND_FLAG_SIGNAL))
                return number;
        return UNWIND_RULE_STOP;
}

/**
 * The number of the rule to step by, given the one that holds at unwind_lookup_pc().
 * Go's CFI does not say that a frame lies on another stack (systemstack), nor
 * where the frame pointer was saved; its frame pointers lead through both.
 */
UNWIND_INLINE __u32 unwind_rule_for(const struct unwind_regs *regs, const struct unwind_rule *rule, __u32 number)
{
        return (rule->flags & UNWIND_FLAG_CALLER_GO) && regs->pc_is_return ? UNWIND_RULE_GO : number;
}

UNWIND_INLINE enum unwind_status unwind_base_value(const struct unwind_regs *regs, __u32 base, __u64 *ret)
{
        if (base == UNWIND_BASE_SP) {
                *ret = regs->sp;
        } else if (base == UNWIND_BASE_FP) {
                *ret = regs->fp;
        } else if (base == UNWIND_BASE_LR) {
                if (regs->pc_is_return)
                        return UNWIND_NO_REGISTER;
                *ret = regs->lr;
        } else {
                if (!regs->scratch_known || base < UNWIND_BASE_SCRATCH ||
                    base >= UNWIND_BASE_SCRATCH + UNWIND_SCRATCH_MAX)
                        return UNWIND_NO_REGISTER;
                *ret = regs->scratch[(base - UNWIND_BASE_SCRATCH) & (UNWIND_SCRATCH_MAX - 1)];
        }
        return UNWIND_STEPPED;
}

UNWIND_INLINE enum unwind_status unwind_where_value(const struct unwind_regs *regs, __u8 where, __s32 offset, __u64 cfa,
                                                    __u64 same, unwind_read_fn read, void *ctx, __u64 *ret)
{
        __u64 addr;

        switch (where) {
        case UNWIND_SAME:
                *ret = same;
                return UNWIND_STEPPED;
        case UNWIND_UNDEFINED:
                *ret = 0;
                return UNWIND_STEPPED;
        case UNWIND_CFA_PLUS:
                *ret = cfa + (__s64)offset;
                return UNWIND_STEPPED;
        case UNWIND_IN_REGISTER:
                return unwind_base_value(regs, (__u32)offset, ret);
        case UNWIND_AT_CFA:
                addr = cfa;
                break;
        case UNWIND_AT_SP:
                addr = regs->sp;
                break;
        case UNWIND_AT_FP:
                addr = regs->fp;
                break;
        default:
                return UNWIND_UNKNOWN_RULE;
        }
        return read(ctx, addr + (__s64)offset, ret) ? UNWIND_NO_MEMORY_AT : UNWIND_STEPPED;
}

UNWIND_INLINE enum unwind_status unwind_cfa_value(const struct unwind_regs *regs, const struct unwind_rule *rule,
                                                  unwind_read_fn read, void *ctx, __u64 *ret)
{
        enum unwind_status st;
        __u64 cfa;

        switch (rule->cfa) {
        case UNWIND_CFA_STOP:
                return UNWIND_DONE;
        case UNWIND_CFA_NONE:
                return UNWIND_NO_RULE;
        case UNWIND_CFA_PLT:
                *ret = regs->sp + (__s64)rule->cfa_offset + ((regs->pc & 15) >= (__u64)(__s64)rule->cfa_add ? 8 : 0);
                return UNWIND_STEPPED;
        case UNWIND_CFA_REGISTER:
        case UNWIND_CFA_DEREF:
                break;
        default:
                return UNWIND_UNKNOWN_RULE;
        }
        st = unwind_base_value(regs, rule->base, &cfa);
        if (st != UNWIND_STEPPED)
                return st;
        cfa += (__s64)rule->cfa_offset;
        if (rule->cfa == UNWIND_CFA_DEREF) {
                if (read(ctx, cfa, &cfa))
                        return UNWIND_NO_MEMORY_AT;
                cfa += (__s64)rule->cfa_add;
        }
        *ret = cfa;
        return UNWIND_STEPPED;
}

/** Apply the rule as it is, without judging the result. The registers are untouched unless UNWIND_STEPPED. */
UNWIND_INLINE enum unwind_status unwind_apply(struct unwind_regs *regs, const struct unwind_rule *rule,
                                              unwind_read_fn read, void *ctx)
{
        __u64 cfa = 0, fp = 0, ra = 0, lr;
        enum unwind_status st = unwind_cfa_value(regs, rule, read, ctx, &cfa);
        __u8 pushed_nothing = !regs->pc_is_return && cfa - regs->sp <= 8 && !(rule->flags & UNWIND_FLAG_SIGNAL);

        if (st != UNWIND_STEPPED)
                return st;
        if (rule->ra == UNWIND_SAME && regs->pc_is_return)
                return UNWIND_NO_REGISTER; /* the call that this frame made has overwritten lr */
        st = unwind_where_value(regs, rule->ra, rule->ra_offset, cfa, regs->lr, read, ctx, &ra);
        if (st == UNWIND_STEPPED)
                st = unwind_where_value(regs, rule->fp, rule->fp_offset, cfa, regs->fp, read, ctx, &fp);
        if (st != UNWIND_STEPPED)
                return st;
        ra &= regs->code_mask;
        lr = ra;
        if ((rule->flags & UNWIND_FLAG_SIGNAL_LR) && read(ctx, regs->sp + (__s64)rule->ra_offset - 16, &lr))
                return UNWIND_NO_MEMORY_AT;
        regs->pc = ra;
        regs->sp = cfa;
        regs->fp = fp;
        regs->lr = lr;
        regs->scratch_known = pushed_nothing;
        regs->pc_is_return = !(rule->flags & UNWIND_FLAG_SIGNAL);
        return UNWIND_STEPPED;
}

/**
 * Apply the rule and take only what can be a caller: its frame lies above this
 * one, unless a signal's handler or Go's runtime had a stack of its own, and its
 * pc is not 0. A chain of steps with a bounded stack therefore ends, but for
 * such frames that lead in a circle: bound the frames too.
 */
UNWIND_INLINE enum unwind_status unwind_step(struct unwind_regs *regs, const struct unwind_rule *rule,
                                             unwind_read_fn read, void *ctx)
{
        __u64 sp = regs->sp;
        __u8 was_return = regs->pc_is_return;
        enum unwind_status st;

        if (unwind_is_by_frame_pointer(rule) && regs->fp == 0)
                return UNWIND_DONE;
        st = unwind_apply(regs, rule, read, ctx);

        if (st != UNWIND_STEPPED)
                return st;
        if (regs->pc == 0)
                return UNWIND_DONE;
        if (!(rule->flags & (UNWIND_FLAG_SIGNAL | UNWIND_FLAG_ANY_STACK)) && (regs->sp < sp || (regs->sp == sp && was_return)))
                return UNWIND_NO_PROGRESS;
        return UNWIND_STEPPED;
}

#endif
