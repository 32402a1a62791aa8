/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CAIRN_UNWIND_TABLES_UNWIND_STEP_H
#define CAIRN_UNWIND_TABLES_UNWIND_STEP_H

/**
 * @file
 * One step up a stack by an unwind rule: registers of a frame in,
 * registers of its caller out. Plain C without calls except to the memory
 * reader, for user space and BPF alike; finding the rule for a pc is up to the
 * caller.
 *
 * Look up the rule at unwind_lookup_pc(): a return address may lie past the
 * end of its function when the call does not return.
 *
 * Only sp, fp, pc and the link register are tracked across frames. Other
 * registers are known in an interrupted frame, and assumed unchanged in its
 * caller while the interrupted function has pushed nothing: functions whose
 * CFA depends on such a register call helpers that preserve it (OpenSSL). A
 * rule that needs one of them further up yields UNWIND_NO_REGISTER.
 */
#include "unwind-tables/unwind_row.h"

enum unwind_status {
        UNWIND_STEPPED,      /* the registers are now the caller's */
        UNWIND_DONE,         /* there is no caller */
        UNWIND_NO_RULE,      /* no unwind information for this pc */
        UNWIND_UNKNOWN_RULE, /* tables cannot express the rule */
        UNWIND_NO_MEMORY_AT, /* stack memory is unreadable */
        UNWIND_NO_REGISTER,  /* the rule needs an unknown register */
        UNWIND_NO_PROGRESS,  /* the caller's frame would not be above this one */
};

struct unwind_regs {
        __u64 pc, sp, fp;
        __u64 lr;        /* aarch64 */
        __u64 code_mask; /* valid bits of a code address: aarch64 return addresses may be signed above them */
        __u64 scratch[UNWIND_SCRATCH_MAX]; /* by DWARF number */
        __u8 scratch_known;
        __u8 pc_is_return; /* 0: interrupted at pc */
};

/** Read 8 bytes at addr; nonzero on failure. */
typedef int (*unwind_read_fn)(void *ctx, __u64 addr, __u64 *ret);

#ifndef UNWIND_INLINE
#define UNWIND_INLINE static inline __attribute__((always_inline))
#endif

UNWIND_INLINE __u64 unwind_lookup_pc(const struct unwind_regs *regs)
{
        return regs->pc - (regs->pc_is_return ? 1 : 0);
}

/**
 * The rule number to try in code without CFI: hand-written code and V8's built-in code have
 * frame pointers. A wrong step leads to a pc that is not code, where the walk ends.
 */
UNWIND_INLINE __u32 unwind_rule_in_gap(__u32 number)
{
        return number == UNWIND_RULE_GAP ? UNWIND_RULE_FRAME_POINTER : number;
}

/** Whether it is one of the two rules for code without CFI, whose chain ends with 0. */
UNWIND_INLINE int unwind_rule_uses_frame_chain(const struct unwind_rule *rule)
{
        return rule->flags & UNWIND_FLAG_CHAIN;
}

/**
 * The rule number for a caller whose return address is the start of a function, given the rule
 * at that address: no call precedes it. A signal trampoline continues; any other such address
 * was stored to start a stack (makecontext), whatever its CFI says.
 */
UNWIND_INLINE __u32 unwind_rule_at_function_start(const struct unwind_rule *rule, __u32 number)
{
        if (number == UNWIND_RULE_GAP || (rule->flags & UNWIND_FLAG_SIGNAL))
                return number;
        return UNWIND_RULE_STOP;
}

/**
 * The rule number to step by, given the one at unwind_lookup_pc(). Go's CFI describes neither
 * switches of the stack (systemstack) nor where the frame pointer was saved; Go's frame pointers
 * work in both cases.
 */
UNWIND_INLINE __u32 unwind_select_rule(const struct unwind_regs *regs, const struct unwind_rule *rule, __u32 number)
{
        return (rule->flags & UNWIND_FLAG_CALLER_GO) && regs->pc_is_return ? UNWIND_RULE_GO : number;
}

UNWIND_INLINE enum unwind_status unwind_read_base(const struct unwind_regs *regs, __u32 base, __u64 *ret)
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

UNWIND_INLINE enum unwind_status unwind_restore_register(const struct unwind_regs *regs, __u8 where, __s32 offset,
                                                         __u64 cfa, __u64 same, unwind_read_fn read, void *ctx,
                                                         __u64 *ret)
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
                return unwind_read_base(regs, (__u32)offset, ret);
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

UNWIND_INLINE enum unwind_status unwind_compute_cfa(const struct unwind_regs *regs, const struct unwind_rule *rule,
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
        st = unwind_read_base(regs, rule->base, &cfa);
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

/** Apply the rule without checking the result. The registers are untouched unless UNWIND_STEPPED. */
UNWIND_INLINE enum unwind_status unwind_apply(struct unwind_regs *regs, const struct unwind_rule *rule,
                                              unwind_read_fn read, void *ctx)
{
        __u64 cfa = 0, fp = 0, ra = 0, lr;
        enum unwind_status st = unwind_compute_cfa(regs, rule, read, ctx, &cfa);
        __u8 pushed_nothing = !regs->pc_is_return && cfa - regs->sp <= 8 && !(rule->flags & UNWIND_FLAG_SIGNAL);

        if (st != UNWIND_STEPPED)
                return st;
        if (rule->ra == UNWIND_SAME && regs->pc_is_return)
                return UNWIND_NO_REGISTER; /* overwritten by the call that this frame made */
        st = unwind_restore_register(regs, rule->ra, rule->ra_offset, cfa, regs->lr, read, ctx, &ra);
        if (st == UNWIND_STEPPED)
                st = unwind_restore_register(regs, rule->fp, rule->fp_offset, cfa, regs->fp, read, ctx, &fp);
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
 * Apply the rule and accept only a plausible caller: its frame is above this one, except for
 * signal handlers and Go, which may use another stack, and its pc is not 0. With a bounded stack
 * the walk therefore ends, except for such frames in a cycle: callers must bound the number of
 * frames.
 */
UNWIND_INLINE enum unwind_status unwind_step(struct unwind_regs *regs, const struct unwind_rule *rule,
                                             unwind_read_fn read, void *ctx)
{
        __u64 sp = regs->sp;
        __u8 was_return = regs->pc_is_return;
        enum unwind_status st;

        if (unwind_rule_uses_frame_chain(rule) && regs->fp == 0)
                return UNWIND_DONE;
        st = unwind_apply(regs, rule, read, ctx);

        if (st != UNWIND_STEPPED)
                return st;
        if (regs->pc == 0)
                return UNWIND_DONE;
        if (!(rule->flags & (UNWIND_FLAG_SIGNAL | UNWIND_FLAG_ANY_STACK)) &&
            (regs->sp < sp || (regs->sp == sp && was_return)))
                return UNWIND_NO_PROGRESS;
        return UNWIND_STEPPED;
}

#endif
