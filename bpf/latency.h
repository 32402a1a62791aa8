/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CAIRN_BPF_LATENCY_H
#define CAIRN_BPF_LATENCY_H

/*
 * How many threads of a process are on a CPU at the moment of a sample of one of them. Part of bpf/sample.bpf.c; its
 * program is loaded only if latency is wanted.
 *
 * If each sample counts the period divided by this number, the sum over a process is the wall clock time in which any
 * of its threads ran. This is the parallelism of perf record --latency. Threads that are runnable without having a CPU
 * do not count: with them the sums would be less than that time.
 *
 * Each CPU notes the process that it switches to. A sample compares the notes of all CPUs with its own process. So a
 * switch costs one store to a cache line that only this CPU writes, and nothing can drift: each switch, and each clock
 * tick, replaces the note of its CPU. Rejected: a count of runnable threads per process, changed by sched_switch and
 * sched_wakeup. It costs a hash and an atomic addition to a shared cache line several times per switch, has to be told
 * which threads ran before, and a switch that the kernel did not trace would make it wrong for the rest of the
 * process's life. Also rejected: to read the current thread of the run queues, which costs nothing per switch, but
 * needs a kernel with CONFIG_KALLSYMS_ALL.
 */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "bpf/kernel_types.h"

#define LATENCY_CPUS_MAX 8192 /* NR_CPUS of the kernel is not more; limits the verifier's work */

const volatile __u32 latency_cpus = 0; /* possible CPUs; 0: running threads are not counted */

struct running_process {
        __u32 tgid; /* 0: none */
        __u32 reserved[15];
};

/* Of each CPU. Sized by the agent. */
struct {
        __uint(type, BPF_MAP_TYPE_ARRAY);
        __uint(max_entries, 1);
        __uint(map_flags, BPF_F_MMAPABLE); /* page-aligned: a value is one cache line */
        __type(key, __u32);
        __type(value, struct running_process);
} running_processes SEC(".maps");

static __always_inline void note_running_process(__u32 tgid)
{
        __u32 cpu = bpf_get_smp_processor_id();
        volatile struct running_process *p = bpf_map_lookup_elem(&running_processes, &cpu);

        if (p)
                p->tgid = tgid;
}

/* Until measure_wait() in bpf/off_cpu.h, which does the same, is attached. Its arguments. */
SEC("tp_btf/sched_switch")
int note_switch(__u64 *ctx)
{
        const struct task_struct *next = (const struct task_struct *)ctx[2];

        note_running_process(next->tgid);
        return 0;
}

/*
 * Count the CPUs that run the process, after the note of this CPU. A function of its own, so that the verifier examines
 * it once, and without a branch, which would double its work.
 */
__noinline int count_running_threads(__u32 tgid)
{
        __u64 count = 0;

        for (__u32 i = 0; i < LATENCY_CPUS_MAX && i < latency_cpus; i++) {
                __u32 cpu = i;
                const volatile struct running_process *p = bpf_map_lookup_elem(&running_processes, &cpu);

                if (!p)
                        break;
                count += ((__u64)(p->tgid ^ tgid) - 1) >> 63; /* 1 if they are equal */
        }
        return count ? (int)count : 1;
}

#endif
