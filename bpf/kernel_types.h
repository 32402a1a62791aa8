/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CAIRN_BPF_KERNEL_TYPES_H
#define CAIRN_BPF_KERNEL_TYPES_H

/*
 * The kernel fields that the program reads. libbpf relocates their offsets to the running kernel (BTF), so this
 * layout is irrelevant and building needs neither kernel headers nor BTF.
 */
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct mm_struct {
        unsigned long exec_vm;     /* executable, not writable pages */
        unsigned long start_stack; /* start of the stack of the first thread; arguments and environment are above */
};

#if defined(__TARGET_ARCH_x86)
struct thread_struct {
        unsigned long fsbase; /* saved at the last switch, and current: user space changes it by a system call */
};
#endif

struct task_struct {
        struct task_struct *group_leader;
        struct mm_struct *mm;
        unsigned int flags;
        int tgid;
        __u64 start_boottime;
        __u64 self_exec_id;
        char comm[16];
#if defined(__TARGET_ARCH_x86)
        struct thread_struct thread;
#endif
};

#pragma clang attribute pop

#define PF_KTHREAD 0x00200000 /* of task_struct.flags; include/linux/sched.h */

#endif
