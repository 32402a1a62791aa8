/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CAIRN_BPF_ARCH_H
#define CAIRN_BPF_ARCH_H

/*
 * All that depends on the processor. The saved user registers hold the system
 * call's number, or -1 when the kernel was entered by an interrupt or an
 * exception (arch/x86/entry/entry_64.S; arch/arm64/kernel/entry-common.c).
 */
#include "bpf/kernel_types.h"

static __always_inline int arch_in_syscall(const struct pt_regs *regs)
{
#if defined(__TARGET_ARCH_x86)
        return (long)regs->orig_ax != -1;
#elif defined(__TARGET_ARCH_arm64)
        return regs->syscallno != -1;
#else
#error "no rule for this processor"
#endif
}

#endif
