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

struct sock_common {
        unsigned short skc_family;
};

struct sock {
        struct sock_common __sk_common;
};

struct socket {
        struct sock *sk;
};

struct inode {
        unsigned short i_mode;
};

struct file {
        struct inode *f_inode;
        void *private_data;
};

struct fdtable {
        unsigned int max_fds;
        struct file **fd;
};

struct files_struct {
        struct fdtable *fdt;
};

struct sched_info {
        unsigned long long run_delay; /* needs CONFIG_SCHED_INFO */
};

struct rq {
        __u64 clock; /* nanoseconds, of the last time when the scheduler read it */
};

struct cfs_rq {
        struct rq *rq;
};

struct sched_entity {
        struct cfs_rq *cfs_rq; /* of the CPU that the thread is on, whatever its class; needs CONFIG_FAIR_GROUP_SCHED */
};

struct task_struct {
        struct sched_entity se;
        struct task_struct *group_leader;
        struct mm_struct *mm;
        struct files_struct *files;
        unsigned int flags;
        unsigned int __state;
        unsigned in_iowait : 1;
        int pid, tgid;
        struct sched_info sched_info;
        __u64 start_boottime;
        __u64 self_exec_id;
        char comm[16];
#if defined(__TARGET_ARCH_x86)
        struct thread_struct thread;
#endif
};

#pragma clang attribute pop

/* Of task_struct.flags; include/linux/sched.h. */
#define PF_IO_WORKER 0x00000010
#define PF_USER_WORKER 0x00004000 /* since 6.4 */
#define PF_KTHREAD 0x00200000

/* Of task_struct.__state. */
#define TASK_STOPPED 0x00000004
#define TASK_TRACED 0x00000008
#define TASK_DEAD 0x00000080

#endif
