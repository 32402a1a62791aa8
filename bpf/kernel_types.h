/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CAIRN_BPF_KERNEL_TYPES_H
#define CAIRN_BPF_KERNEL_TYPES_H

/*
 * The few kernel fields that we read, declared by ourselves. libbpf replaces
 * the offsets by those of the running kernel (its BTF), so the layout here
 * means nothing and building needs no kernel's headers or BTF.
 */
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct mm_struct {
        unsigned long exec_vm; /* pages that are executable and not writable */
        unsigned long start_stack; /* where the first thread's stack began; arguments and environment lie above */
};

struct task_struct {
        struct task_struct *group_leader;
        struct mm_struct *mm;
        unsigned int flags;
        int tgid;
        __u64 start_boottime;
        __u64 self_exec_id;
        char comm[16];
};

#pragma clang attribute pop

#define PF_KTHREAD 0x00200000 /* of task_struct.flags; include/linux/sched.h */

#endif
