/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind-tables/cfi_arch.h"

#include <elf.h>

/* mov $15, %rax; syscall */
static const uint8_t SIGRETURN_X86_64[] = { 0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05 };
/* mov x8, #139; svc #0 */
static const uint8_t SIGRETURN_AARCH64[] = { 0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4 };

/*
 * sp points to struct ucontext on x86-64, whose registers begin 40 bytes into
 * it (rbp 10th, rsp 15th, rip 16th), and to struct rt_sigframe on aarch64: 128
 * bytes of siginfo, 176 of ucontext up to its sigcontext, 8 of fault address,
 * then x0 to x30, sp, pc.
 */
static const struct cfi_arch ARCHES[] = {
        {
                .machine = EM_X86_64,
                .sp = 7,
                .fp = 6,
                .ra = 16,
                .sigreturn = SIGRETURN_X86_64,
                .sigreturn_size = sizeof SIGRETURN_X86_64,
                .signal = { .cfa = UNWIND_CFA_DEREF,
                            .base = UNWIND_BASE_SP,
                            .cfa_offset = 40 + 15 * 8,
                            .fp = UNWIND_AT_SP,
                            .fp_offset = 40 + 10 * 8,
                            .ra = UNWIND_AT_SP,
                            .ra_offset = 40 + 16 * 8,
                            .flags = UNWIND_FLAG_SIGNAL },
        },
        {
                .machine = EM_AARCH64,
                .sp = 31,
                .fp = 29,
                .ra = 30,
                .ra_is_register = true,
                .sigreturn = SIGRETURN_AARCH64,
                .sigreturn_size = sizeof SIGRETURN_AARCH64,
                .signal = { .cfa = UNWIND_CFA_DEREF,
                            .base = UNWIND_BASE_SP,
                            .cfa_offset = 312 + 31 * 8,
                            .fp = UNWIND_AT_SP,
                            .fp_offset = 312 + 29 * 8,
                            .ra = UNWIND_AT_SP,
                            .ra_offset = 312 + 32 * 8,
                            .flags = UNWIND_FLAG_SIGNAL | UNWIND_FLAG_SIGNAL_LR },
                .signal_by_layout = true,
        },
};

const struct cfi_arch *cfi_arch_find(uint16_t machine)
{
        for (size_t i = 0; i < sizeof ARCHES / sizeof *ARCHES; i++) {
                if (ARCHES[i].machine == machine)
                        return &ARCHES[i];
        }
        return NULL;
}

bool cfi_arch_find_base(const struct cfi_arch *arch, uint64_t reg, uint8_t *ret)
{
        if (reg == arch->sp)
                *ret = UNWIND_BASE_SP;
        else if (reg == arch->fp)
                *ret = UNWIND_BASE_FP;
        else if (arch->ra_is_register && reg == arch->ra)
                *ret = UNWIND_BASE_LR;
        else if (reg < UNWIND_SCRATCH_MAX)
                *ret = (uint8_t)(UNWIND_BASE_SCRATCH + reg);
        else
                return false;
        return true;
}
