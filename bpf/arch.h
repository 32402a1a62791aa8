/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CAIRN_BPF_ARCH_H
#define CAIRN_BPF_ARCH_H

/*
 * Processor-specific part: the user registers that the kernel saved on entry. Their order is ABI (ptrace, signal
 * frames), so no BTF of the running kernel is needed. The system call number is -1 after an interrupt or
 * exception. Source: arch/x86/include/asm/ptrace.h, arch/x86/entry/entry_64.S; arch/arm64/include/asm/ptrace.h,
 * arch/arm64/kernel/entry-common.c.
 */
#include "unwind-tables/unwind_step.h"

#if defined(__TARGET_ARCH_x86) || defined(__x86_64__)

struct arch_regs {
        __u64 r15, r14, r13, r12, rbp, rbx, r11, r10, r9, r8, rax, rcx, rdx, rsi, rdi;
        __u64 system_call;
        __u64 rip, cs, eflags, rsp, ss;
};

#define ARCH_CS_64 0x33 /* __USER_CS */

static inline __attribute__((always_inline)) int arch_in_syscall(const struct arch_regs *r)
{
        return (__s64)r->system_call != -1;
}

static inline __attribute__((always_inline)) int arch_is_64_bit(const struct arch_regs *r)
{
        return r->cs == ARCH_CS_64;
}

/* The first argument of the system call. */
static inline __attribute__((always_inline)) __u64 arch_syscall_argument(const struct arch_regs *r)
{
        return r->rdi;
}

static inline __attribute__((always_inline)) int arch_is_same_place(const struct arch_regs *a,
                                                                    const struct arch_regs *b)
{
        return a->rip == b->rip && a->rsp == b->rsp;
}

static inline __attribute__((always_inline)) void arch_unwind_regs(const struct arch_regs *r, struct unwind_regs *ret)
{
        ret->pc = r->rip;
        ret->sp = r->rsp;
        ret->fp = r->rbp;
        ret->lr = 0;
        ret->code_mask = ~0ull;
        ret->scratch[0] = r->rax;
        ret->scratch[1] = r->rdx;
        ret->scratch[2] = r->rcx;
        ret->scratch[3] = r->rbx;
        ret->scratch[4] = r->rsi;
        ret->scratch[5] = r->rdi;
        ret->scratch[6] = r->rbp;
        ret->scratch[7] = r->rsp;
        ret->scratch[8] = r->r8;
        ret->scratch[9] = r->r9;
        ret->scratch[10] = r->r10;
        ret->scratch[11] = r->r11;
        ret->scratch[12] = r->r12;
        ret->scratch[13] = r->r13;
        ret->scratch[14] = r->r14;
        ret->scratch[15] = r->r15;
        ret->scratch_known = 1;
        ret->pc_is_return = 0;
}

#elif defined(__TARGET_ARCH_arm64) || defined(__aarch64__)

struct arch_regs {
        __u64 x[31];
        __u64 sp, pc, pstate;
        __u64 orig_x0;
        __s32 system_call; /* little-endian kernels */
        __u32 reserved;
};

#define ARCH_PSTATE_32 0x10 /* PSR_MODE32_BIT */

static inline __attribute__((always_inline)) int arch_in_syscall(const struct arch_regs *r)
{
        return r->system_call != -1;
}

static inline __attribute__((always_inline)) int arch_is_64_bit(const struct arch_regs *r)
{
        return !(r->pstate & ARCH_PSTATE_32);
}

/* The first argument of the system call; x0 has its result later. */
static inline __attribute__((always_inline)) __u64 arch_syscall_argument(const struct arch_regs *r)
{
        return r->orig_x0;
}

static inline __attribute__((always_inline)) int arch_is_same_place(const struct arch_regs *a,
                                                                    const struct arch_regs *b)
{
        return a->pc == b->pc && a->sp == b->sp;
}

/* Return addresses may be signed above bit 47. */
static inline __attribute__((always_inline)) void arch_unwind_regs(const struct arch_regs *r, struct unwind_regs *ret)
{
        ret->pc = r->pc;
        ret->sp = r->sp;
        ret->fp = r->x[29];
        ret->lr = r->x[30];
        ret->code_mask = (1ull << 48) - 1;
        for (int i = 0; i < UNWIND_SCRATCH_MAX; i++)
                ret->scratch[i] = r->x[i];
        ret->scratch_known = 1;
        ret->pc_is_return = 0;
}

#else
#error "unsupported processor"
#endif

#endif
