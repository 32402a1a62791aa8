/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CAIRN_BPF_OFF_CPU_H
#define CAIRN_BPF_OFF_CPU_H

/*
 * Time that threads wait, by stack. Part of bpf/sample.bpf.c, loaded only if it is wanted.
 *
 * A wait begins when a thread is switched out and ends when it is switched in. Its length is known at the end only, so
 * it is sampled there: a thread that waits does not change its stack.
 *
 * **Estimator.** Each CPU adds up the waits that end on it, and divides the sum into stretches of equal length. One
 * point is drawn in each stretch, uniformly. A wait is sampled if it covers a point, and counts as many stretches as
 * it covers points: a wait of t has the weight 0 or more with the expectation t, whatever the other waits are. So sums
 * over any set of waits are unbiased, and the sum of all differs from the truth by less than a stretch per CPU.
 * A draw of probability min(1, t / stretch) for each wait was rejected: a random number per switch, and sums that vary
 * with the square root of the number of samples.
 *
 * **Run queue.** How long a thread was runnable without a CPU is the kernel's own sum (task_struct.sched_info, which
 * /proc/PID/schedstat shows): it is noted when a wait begins, and read again for samples, after the switch. Rejected: a
 * program on sched_wakeup, which costs as much as the one on sched_switch.
 *
 * **Time.** The scheduler reads the clock at the begin of each switch, and keeps the time in the run queue of the CPU
 * (rq.clock, what run_delay is made of). To read the clock once more costs twice as much as all the rest.
 *
 * **Cost.** A switch costs a search in two cache lines and an addition; only samples cost more. Where threads of a CPU
 * wait so much that there were more than off_cpu_samples_max samples in a second, its stretches double. This happens
 * between two stretches and depends on earlier samples only, so the estimate stays unbiased.
 *
 * **User half.** The memory of the thread is not accessible while the switch is traced, since the one before is still
 * the current thread. The program writes to a perf event of this CPU, whose notification of its readers, which do not
 * exist, is an interrupt of this CPU (irq_work). It occurs at the end of the switch, when interrupts are enabled again,
 * in the context of the thread that waited; a second program runs there and walks the stack. That the registers are
 * those seen at the switch is checked. Rejected: to walk each stack when its wait begins, which costs a microsecond per
 * switch; a probe at finish_task_switch(), which kernels without kprobes lack; bpf_timer, whose interrupt is later and
 * may be on another CPU; to read the other thread's page tables.
 *
 * All of this runs with interrupts disabled. The table of waiting threads is shared by the CPUs without a lock; an
 * entry belongs to one thread, which is on one CPU at a time. Two threads that take a free entry at the same time lose
 * one wait.
 */
#include <linux/bpf.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/kernel_types.h"
#include "bpf/latency.h"
#include "bpf/sample.h"
#include "bpf/unwind_user.h"

const volatile __u64 off_cpu_stretch_ns = 0;  /* shortest stretch */
const volatile __u32 off_cpu_samples_max = 0; /* of a CPU in a second, before its stretches become longer */

#define OFF_CPU_SETS 32768
#define OFF_CPU_WAYS 2
#define OFF_CPU_STRETCH_MAX_NS (1ull << 40)
#define OFF_CPU_SECOND_NS 1000000000ull

struct waiting_thread {
        __u64 since_ns;
        __u64 run_delay_ns; /* task_struct.sched_info.run_delay when it began */
        __u32 tid;          /* 0: unused */
        __u32 state;        /* task_struct.__state; 0: it is not blocked */
        __u64 reserved;
};

struct waiting_set {
        struct waiting_thread threads[OFF_CPU_WAYS];
};

struct {
        __uint(type, BPF_MAP_TYPE_ARRAY);
        __uint(max_entries, OFF_CPU_SETS);
        __uint(map_flags, BPF_F_MMAPABLE); /* page-aligned: a set is one cache line */
        __type(key, __u32);
        __type(value, struct waiting_set);
} waiting SEC(".maps");

/* Of one CPU: the position in its sum of waits, and the sample that waits for its user half. */
struct off_cpu_clock {
        __u64 stretch_ns; /* 0: nothing was added yet */
        __u64 at_ns;      /* position in the stretch */
        __u64 point_ns;   /* in the stretch */
        __u64 next_ns;    /* position at which something happens: the point, or the end of the stretch behind it */
        __u64 second_ns;  /* start of the second in which samples are counted */
        __u32 samples;
        __u32 tid; /* of the sample below; 0: there is none */
        struct sample_key key;
        __u64 weight_ns;
        __u64 waited_ns;
        __u64 run_delay_ns; /* when the wait began */
        __u64 task;         /* task_struct, for bpf_probe_read_kernel() */
        __u32 state;        /* of struct waiting_thread */
        __u32 reserved;
        struct arch_regs saved;
        __u32 kernel_count;
        __u32 reserved2;
        __u64 kernel[SAMPLE_KERNEL_STACK_MAX];
};

struct {
        __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
        __uint(max_entries, 1);
        __type(key, __u32);
        __type(value, struct off_cpu_clock);
} off_cpu_clocks SEC(".maps");

/* Sized by the agent: an event of each CPU, whose only purpose is its notification. */
struct {
        __uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
        __uint(max_entries, 1);
        __type(key, __u32);
        __type(value, __u32);
} off_cpu_interrupts SEC(".maps");

#define WAIT_CALL_ENTRY(number, reason) [number] = (reason),
static const volatile __u8 wait_calls[WAIT_SYSTEM_CALLS] = { WAIT_CALLS(WAIT_CALL_ENTRY)
                                                                     WAIT_CALLS_GENERIC(WAIT_CALL_ENTRY) };

#define OFF_CPU_FILE_TYPE 0170000 /* S_IFMT */
#define OFF_CPU_AF_UNIX 1

/* The reason to wait for a file, by its type. */
static __always_inline enum wait_reason classify_file(struct task_struct *task, __u64 descriptor)
{
        struct fdtable *table = BPF_CORE_READ(task, files, fdt);
        struct file *file = NULL, **files;

        if (!table || descriptor >= BPF_CORE_READ(table, max_fds))
                return WAIT_OTHER;
        files = BPF_CORE_READ(table, fd);
        if (bpf_probe_read_kernel(&file, sizeof file, files + descriptor) || !file)
                return WAIT_OTHER;
        switch (BPF_CORE_READ(file, f_inode, i_mode) & OFF_CPU_FILE_TYPE) {
        case 0140000: { /* S_IFSOCK */
                struct socket *s = (struct socket *)BPF_CORE_READ(file, private_data);

                return BPF_CORE_READ(s, sk, __sk_common.skc_family) == OFF_CPU_AF_UNIX ? WAIT_UNIX_SOCKET
                                                                                       : WAIT_NETWORK;
        }
        case 0010000: /* S_IFIFO */
                return WAIT_PIPE;
        case 0020000: /* S_IFCHR */
                return WAIT_TERMINAL;
        case 0100000: /* S_IFREG */
        case 0040000: /* S_IFDIR */
        case 0060000: /* S_IFBLK */
                return WAIT_DISK;
        case 0:
                return WAIT_EVENT;
        default:
                return WAIT_OTHER;
        }
}

/* Set the reason, and the futex, of a blocked thread. */
static __always_inline void classify_wait(struct off_cpu_clock *c, struct task_struct *task, __u32 state)
{
        __u64 call = c->saved.system_call, reason = WAIT_OTHER;

        c->key.futex = 0;
        if (state & (TASK_STOPPED | TASK_TRACED)) {
                reason = WAIT_STOPPED;
        } else if (arch_is_64_bit(&c->saved)) {
                if (!arch_in_syscall(&c->saved)) {
                        reason = WAIT_PAGE_FAULT;
                } else if (call < WAIT_SYSTEM_CALLS) {
                        reason = wait_calls[call];
                        if (reason == WAIT_FUTEX && call != WAIT_CALL_FUTEX_WAITV)
                                c->key.futex = arch_syscall_argument(&c->saved);
                        else if (reason != WAIT_IO_URING && BPF_CORE_READ_BITFIELD_PROBED(task, in_iowait))
                                reason = WAIT_DISK;
                        else if (reason == WAIT_BY_FILE)
                                reason = classify_file(task, arch_syscall_argument(&c->saved));
                        if (reason == WAIT_NONE)
                                reason = WAIT_OTHER;
                }
        }
        c->key.wait_reason = (__u32)reason;
}

/* How long the thread of a sample was runnable in its wait. Right after the switch, which adds this to the sum. */
static __always_inline __u64 read_queued_ns(const struct off_cpu_clock *c)
{
        const struct task_struct *task = (const struct task_struct *)c->task;
        __u64 run_delay_ns = 0;
        __u32 tid = 0;

        if (!c->state)
                return c->waited_ns;
        if (bpf_core_read(&tid, sizeof tid, &task->pid) || tid != c->tid ||
            bpf_core_read(&run_delay_ns, sizeof run_delay_ns, &task->sched_info.run_delay) ||
            run_delay_ns < c->run_delay_ns)
                return 0;
        run_delay_ns -= c->run_delay_ns;
        return run_delay_ns < c->waited_ns ? run_delay_ns : c->waited_ns;
}

/* Split the weight of a wait into its two parts. */
static __always_inline void split_weight(const struct off_cpu_clock *c, struct sample_weight *ret)
{
        __u64 waited_ns = c->waited_ns, queued_ns = read_queued_ns(c), share;

        if (waited_ns >> 32) { /* so that the products fit */
                waited_ns >>= 24;
                queued_ns >>= 24;
        }
        share = (queued_ns << 16) / (waited_ns ? waited_ns : 1);
        ret->queued_ns = (c->weight_ns >> 16) * share + (((c->weight_ns & 0xffff) * share) >> 16);
        ret->blocked_ns = c->weight_ns - ret->queued_ns;
        ret->running = 0;
}

/* Submit the sample that waits for its user half: in the context of its thread, else without it. */
static __always_inline void submit_wait(struct off_cpu_clock *c, int is_current)
{
        struct task_struct *task = bpf_get_current_task_btf();
        __u32 zero = 0, kernel_count = c->kernel_count;
        struct unwind_walk *w = bpf_map_lookup_elem(&scratch, &zero);
        struct mm_struct *mm = task->mm;

        if (!w) {
                c->tid = 0;
                return;
        }
        w->record.key = c->key;
        split_weight(c, &w->record.weight);
        c->tid = 0;
        /* All of it, since the verifier of 5.15 does not follow a length that was spilled to the stack. */
        w->record.kernel_count = kernel_count;
        if (kernel_count > SAMPLE_KERNEL_STACK_MAX ||
            bpf_probe_read_kernel(w->record.frames, sizeof c->kernel, c->kernel))
                w->record.kernel_count = 0;
        w->record.user_count = 0;
        w->record.user_end = SAMPLE_END_UNKNOWN;
        w->context.word_count = 0;
        if (is_current && mm) {
                if (!begin_sample(w, task))
                        return;
                if (!bpf_probe_read_kernel(&w->saved, sizeof w->saved, (const void *)bpf_task_pt_regs(task)) &&
                    arch_is_same_place(&w->saved, &c->saved)) {
                        finish_sample(w, task, mm);
                        return;
                }
        }
        count_stat(STAT_OFF_CPU_NO_USER);
        submit_sample(w);
}

/* Keep all about the wait except for the user half, and request the interrupt. */
static __always_inline void begin_wait_sample(void *ctx, struct off_cpu_clock *c, struct task_struct *task)
{
        struct task_struct *leader = task->group_leader;
        __u8 nothing = 0;
        long n;

        c->key.process.tgid = task->tgid;
        c->key.process.exec_id = (__u32)leader->self_exec_id;
        c->key.process.start_boot_ns = leader->start_boottime;
        c->key.flags = SAMPLE_OFF_CPU;
        __builtin_memset(c->key.comm, 0, sizeof c->key.comm);
        bpf_probe_read_kernel_str(c->key.comm, sizeof c->key.comm, task->comm);
        if (bpf_probe_read_kernel(&c->saved, sizeof c->saved, (const void *)bpf_task_pt_regs(task)))
                __builtin_memset(&c->saved, 0, sizeof c->saved);
        c->task = (__u64)task;
        classify_wait(c, task, c->state);
        n = bpf_get_task_stack(task, c->kernel, sizeof c->kernel, 0);
        c->kernel_count = n > 0 ? (__u32)n / sizeof *c->kernel : 0;
        c->tid = task->pid;
        bpf_perf_event_output(ctx, &off_cpu_interrupts, BPF_F_CURRENT_CPU, &nothing, sizeof nothing);
}

static __always_inline void begin_stretch(struct off_cpu_clock *c)
{
        c->point_ns = ((__u64)bpf_get_prandom_u32() * (c->stretch_ns >> 8)) >> 24;
        c->next_ns = c->point_ns;
}

/* Lengthen or shorten the next stretches by the number of samples in the last second. */
static __always_inline void adapt_stretch(struct off_cpu_clock *c, __u64 now_ns)
{
        if (c->samples >= off_cpu_samples_max) {
                if (c->stretch_ns < OFF_CPU_STRETCH_MAX_NS)
                        c->stretch_ns *= 2;
        } else if (now_ns - c->second_ns < OFF_CPU_SECOND_NS) {
                return;
        } else if (c->samples < off_cpu_samples_max / 4 && c->stretch_ns / 2 >= off_cpu_stretch_ns) {
                c->stretch_ns /= 2;
        }
        c->samples = 0;
        c->second_ns = now_ns;
}

/* Advance the clock of this CPU by a wait that reaches c->next_ns. Returns its weight, 0: it is not sampled. */
static __always_inline __u64 weigh_wait(struct off_cpu_clock *c, __u64 waited_ns, __u64 now_ns)
{
        __u64 at = c->at_ns + waited_ns, weight = 0, whole;

        if (at > c->point_ns && c->at_ns <= c->point_ns)
                weight = c->stretch_ns;
        c->next_ns = c->stretch_ns;
        if (at >= c->stretch_ns) {
                at -= c->stretch_ns;
                adapt_stretch(c, now_ns);
                whole = at - at % c->stretch_ns;
                weight += whole;
                at -= whole;
                begin_stretch(c);
                if (at > c->point_ns) {
                        weight += c->stretch_ns;
                        c->next_ns = c->stretch_ns;
                }
        }
        c->at_ns = at;
        return weight;
}

static __always_inline void end_wait(void *ctx, struct task_struct *task, struct waiting_thread *t, __u64 now_ns)
{
        __u64 waited_ns = now_ns - t->since_ns, run_delay_ns = t->run_delay_ns, weight;
        __u32 state = t->state;
        struct off_cpu_clock *c;
        __u32 zero = 0;

        t->tid = 0;
        c = bpf_map_lookup_elem(&off_cpu_clocks, &zero);
        if (!c || (__s64)waited_ns <= 0)
                return;
        if (likely(c->at_ns + waited_ns <= c->next_ns)) {
                c->at_ns += waited_ns;
                return;
        }
        if (!c->stretch_ns) {
                c->stretch_ns = off_cpu_stretch_ns;
                begin_stretch(c);
        }
        weight = weigh_wait(c, waited_ns, now_ns);
        if (!weight)
                return;
        if (c->tid)
                submit_wait(c, 0);
        c->samples++;
        count_stat(STAT_OFF_CPU);
        c->weight_ns = weight;
        c->waited_ns = waited_ns;
        c->run_delay_ns = run_delay_ns;
        c->state = state;
        begin_wait_sample(ctx, c, task);
}

static __always_inline struct waiting_set *find_waiting_set(__u32 tid)
{
        __u32 number = tid & (OFF_CPU_SETS - 1);

        return bpf_map_lookup_elem(&waiting, &number);
}

static __always_inline int is_waiting_measured(const struct task_struct *task)
{
        return !(task->flags & (PF_KTHREAD | PF_IO_WORKER | PF_USER_WORKER));
}

static __always_inline void begin_wait(const struct task_struct *task, int is_preempted, __u64 now_ns)
{
        __u32 tid = task->pid, tgid = task->tgid, state = is_preempted ? 0 : task->__state;
        struct waiting_set *set = find_waiting_set(tid);
        struct waiting_thread *t;

        if (!set || (state & TASK_DEAD) || (filter_tgids && !bpf_map_lookup_elem(&sampled_tgids, &tgid)))
                return;
        t = &set->threads[1];
        if (t->tid != tid && (!set->threads[0].tid || set->threads[0].tid == tid))
                t = &set->threads[0];
        if (unlikely(t->tid)) {
                count_stat(STAT_OFF_CPU_UNTRACKED); /* this one; or the last one, whose end was not traced */
                if (t->tid != tid)
                        return;
        }
        t->since_ns = now_ns;
        t->run_delay_ns = task->sched_info.run_delay;
        t->state = state;
        t->tid = tid;
}

static __always_inline struct waiting_thread *find_waiting_thread(__u32 tid)
{
        struct waiting_set *set = find_waiting_set(tid);

        if (!set)
                return NULL;
        if (likely(set->threads[0].tid == tid))
                return &set->threads[0];
        return set->threads[1].tid == tid ? &set->threads[1] : NULL;
}

/* The time of this switch, that of the run queue of this CPU if the kernel has groups of threads. */
static __always_inline __u64 read_switch_clock(const struct task_struct *next)
{
        if (bpf_core_field_exists(next->se.cfs_rq))
                return next->se.cfs_rq->rq->clock;
        return bpf_ktime_get_ns();
}

/* Arguments: whether the thread before was preempted, that thread, the next one. The fourth is newer than 5.15. */
SEC("tp_btf/sched_switch")
int measure_wait(__u64 *ctx)
{
        struct task_struct *before = (struct task_struct *)ctx[1], *next = (struct task_struct *)ctx[2];
        __u64 now_ns = read_switch_clock(next);
        struct waiting_thread *t;

        if (latency_cpus)
                note_running_process(next->tgid);
        if (before->pid && is_waiting_measured(before))
                begin_wait(before, (int)ctx[0], now_ns);
        if (next->pid && is_waiting_measured(next)) {
                t = find_waiting_thread(next->pid);
                if (t)
                        end_wait(ctx, next, t, now_ns);
        }
        return 0;
}

#if defined(__TARGET_ARCH_x86)
#define OFF_CPU_INTERRUPT "tp_btf/irq_work_entry"
#else
#define OFF_CPU_INTERRUPT "tp_btf/ipi_entry" /* of any kind */
#endif

/* At an interrupt of this CPU: take the user half of the thread that has just ended its wait. */
SEC(OFF_CPU_INTERRUPT)
int sample_wait(__u64 *ctx)
{
        __u32 zero = 0, tid = (__u32)bpf_get_current_pid_tgid();
        struct off_cpu_clock *c = bpf_map_lookup_elem(&off_cpu_clocks, &zero);

        (void)ctx;
        if (c && c->tid)
                submit_wait(c, c->tid == tid);
        return 0;
}

#endif
