/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Runs on every CPU clock tick of every CPU: captures both halves of the interrupted stack and submits them to the
 * agent. Other programs evict our data from the caches between two ticks, so the cost of a tick is the memory it
 * touches: a sample is assembled in per-CPU memory and submitted as one ring buffer record. Counting in hash maps
 * was rejected: at 19 Hz nearly every sample is the first of its kind in an interval, and each map adds cache
 * misses.
 *
 * The per-CPU scratch needs no lock: the programs that use it run with interrupts disabled, in the interrupt of the
 * clock event, or right after a switch of threads (bpf/off_cpu.h).
 */
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

#include "bpf/arch.h"
#include "bpf/deferred_ring.h"
#include "bpf/kernel_types.h"
#include "bpf/latency.h"
#include "bpf/sample.h"
#include "bpf/unwind_user.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile __u64 wake_bytes = 0;      /* wake the agent when more bytes are queued */
const volatile __u32 filter_tgids = 0;    /* if set, sample only the processes in `sampled_tgids` */
const volatile __u32 filter_excluded = 0; /* if set, skip the processes in `excluded` */

/* Sized by the agent before loading. */
struct {
        __uint(type, BPF_MAP_TYPE_RINGBUF);
        __uint(max_entries, 1024 * 1024);
} samples SEC(".maps");

/*
 * Grace period: replacing an entry of a map in a map returns only after every program that ran before has ended
 * (maybe_wait_bpf_programs() in kernel/bpf/syscall.c). The agent replaces this entry before it reuses space that such
 * a program may read.
 */
struct fence_map {
        __uint(type, BPF_MAP_TYPE_ARRAY);
        __uint(max_entries, 1);
        __uint(key_size, sizeof(__u32));
        __uint(value_size, sizeof(__u32));
};

struct {
        __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
        __uint(max_entries, 1);
        __type(key, __u32);
        __array(values, struct fence_map);
} fence SEC(".maps");

struct {
        __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
        __uint(max_entries, 1);
        __type(key, __u32);
        __type(value, struct unwind_walk);
} scratch SEC(".maps");

struct {
        __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
        __uint(max_entries, STAT_COUNT);
        __type(key, __u32);
        __type(value, __u64);
} sample_stats SEC(".maps");

struct {
        __uint(type, BPF_MAP_TYPE_HASH);
        __uint(max_entries, 1024);
        __type(key, __u32);
        __type(value, __u32);
} sampled_tgids SEC(".maps");

/* Excluded processes; another life of the same pid is not excluded. */
struct {
        __uint(type, BPF_MAP_TYPE_LRU_HASH);
        __uint(max_entries, 16384);
        __type(key, __u32);
        __type(value, struct sample_process);
} excluded SEC(".maps");

/* The last notice sent for each process. */
struct known_process {
        struct sample_process process;
        __u64 executable_pages;
};

struct {
        __uint(type, BPF_MAP_TYPE_LRU_HASH);
        __uint(max_entries, 16384);
        __type(key, __u32);
        __type(value, struct known_process);
} known SEC(".maps");

struct {
        __uint(type, BPF_MAP_TYPE_RINGBUF);
        __uint(max_entries, 256 * 1024);
} notices SEC(".maps");

static __always_inline void count_stat(__u32 stat)
{
        __u64 *n = bpf_map_lookup_elem(&sample_stats, &stat);

        if (n)
                *n += 1;
}

/*
 * Capture the kernel half, in one call, since each call walks from the leaf. There is none when a user address was
 * interrupted.
 */
static __always_inline void walk_kernel(struct bpf_perf_event_data *ctx, struct sample_record *r)
{
        long n = 0;

        if ((__s64)PT_REGS_IP(&ctx->regs) < 0)
                n = bpf_get_stack(ctx, r->frames, SAMPLE_KERNEL_STACK_MAX * sizeof *r->frames, 0);
        r->kernel_count = n > 0 ? (__u32)n / sizeof *r->frames : 0;
}

/* The head entry of a process in `mappings`. */
static __always_inline const struct unwind_process *find_process_head(__u32 tgid, __u32 *first_mapping_ret)
{
        __u32 number = unwind_bucket_index(tgid), head;
        const volatile struct unwind_bucket *bucket = bpf_map_lookup_elem(&process_runs, &number);

        if (!bucket)
                return NULL;
        for (int i = 0; i < UNWIND_BUCKET_RUNS; i++) {
                __u64 run = bucket->runs[i];

                if ((__u32)run == tgid) {
                        head = run >> 32;
                        *first_mapping_ret = head + 1;
                        return bpf_map_lookup_elem(&mappings, &head);
                }
        }
        return NULL;
}

/* Whether the mappings that the agent wrote are those of this life and still current. */
static __always_inline int is_agent_view_current(struct unwind_walk *w, const struct sample_process *process,
                                                 __u64 executable_pages)
{
        const struct unwind_process *p = find_process_head(process->tgid, &w->first_mapping);

        w->mapping.start = w->mapping.end = 0;
        if (!p || p->exec_id != process->exec_id || p->start_boot_ns != process->start_boot_ns) {
                w->process = (struct unwind_process){ 0 };
                return 0;
        }
        w->process = *p;
        if (unlikely(w->process.hotspot))
                hotspot_begin_process(w);
        return p->executable_pages == (__u32)executable_pages;
}

static __always_inline void walk_user(struct unwind_walk *w, __u64 thread_pointer)
{
        struct sample_record *r = &w->record;

        if (!arch_is_64_bit(&w->saved)) {
                if (r->kernel_count < SAMPLE_FRAMES_MAX)
                        r->frames[r->kernel_count] = sample_frame_pack_native(w->regs.pc, 0);
                r->user_count = 1;
                r->user_end = SAMPLE_END_OTHER_WIDTH;
                return;
        }
        r->user_end = SAMPLE_END_TOO_DEEP;
        w->window_bytes = 0;
        w->python.anchor = 0;
        w->python.eval_bytes = 0;
        w->v8.shared_map = 0;
        if (unlikely(w->process.python)) {
                w->python.is_unreadable = 0;
                python_begin_process(w, thread_pointer);
        }
        w->recent = bpf_get_smp_processor_id() << UNWIND_RECENT_BITS;
        for (__u32 i = 0; i <= SAMPLE_STACK_MAX; i++) {
                if (unwind_walk_frame(w))
                        break;
        }
        if (unlikely(w->process.python) && w->python.is_unreadable)
                count_stat(STAT_PYTHON_UNREADABLE);
}

static __always_inline __u64 get_thread_pointer(const struct task_struct *task)
{
#if defined(__TARGET_ARCH_x86)
        return task->thread.fsbase;
#else
        (void)task;
        return 0;
#endif
}

/*
 * Append the context to the words of the record. A function of its own, and `at` in one register, so that the verifier
 * of 5.15 follows the check.
 */
__noinline int append_context(struct unwind_walk *w)
{
        __u64 at;
        __u32 count;

        if (!w)
                return 0;
        at = (__u64)w->record.kernel_count + w->record.user_count;
        count = w->context.word_count;
        __asm__ volatile("" : "+r"(at));
        if (at > SAMPLE_FRAMES_MAX || count > CONTEXT_WORDS_MAX)
                return 0;
        if (bpf_probe_read_kernel(w->record.frames + at, CONTEXT_WORDS_MAX * sizeof *w->record.frames,
                                  w->context.words))
                return 0;
        w->record.context_count = count;
        return 0;
}

/* The agent is woken only when much is queued; it empties this ring buffer once per interval anyway. */
static __always_inline void submit_sample(struct unwind_walk *w)
{
        struct sample_record *r = &w->record;
        int wake = bpf_ringbuf_query(&samples, BPF_RB_AVAIL_DATA) > wake_bytes;
        __u64 words;

        r->context_count = 0;
        if (unlikely(w->context.word_count))
                append_context(w);
        words = (__u64)r->kernel_count + r->user_count + r->context_count;
        if (words > SAMPLE_FRAMES_MAX + CONTEXT_WORDS_MAX)
                return;
        if (bpf_ringbuf_output(&samples, r, sizeof *r - sizeof r->frames + words * sizeof *r->frames,
                               wake ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP) < 0)
                count_stat(STAT_LOST_RING_FULL);
}

/* Read the context of the current thread, if its process publishes any. */
static __always_inline void read_context(struct unwind_walk *w, __u64 thread_pointer)
{
        __u32 number = w->process.context;
        struct context_process *p;

        if (likely(!number))
                return;
        p = bpf_map_lookup_elem(&context_processes, &number);
        if (!p)
                return;
        w->context.process = *p;
        context_read_thread(&w->context, thread_pointer);
}

static __always_inline int is_excluded(const struct sample_process *process)
{
        struct sample_process *life = bpf_map_lookup_elem(&excluded, &process->tgid);

        return life && life->exec_id == process->exec_id && life->start_boot_ns == process->start_boot_ns;
}

static __always_inline void notify_agent(const struct sample_process *process, struct task_struct *leader,
                                         __u64 executable_pages)
{
        struct known_process *last = bpf_map_lookup_elem(&known, &process->tgid);
        struct known_process now = { .process = *process, .executable_pages = executable_pages };
        struct sample_notice notice = { .process = *process, .executable_pages = executable_pages };

        if (last && last->process.exec_id == process->exec_id &&
            last->process.start_boot_ns == process->start_boot_ns && last->executable_pages == executable_pages)
                return;
        bpf_core_read_str(notice.leader_comm, sizeof notice.leader_comm, &leader->comm);
        if (bpf_ringbuf_output(&notices, &notice, sizeof notice, 0) < 0) {
                count_stat(STAT_NOTICES_LOST);
                return;
        }
        bpf_map_update_elem(&known, &process->tgid, &now, BPF_ANY);
}

/* Loaded only to follow children: a child of a sampled process is sampled, and a reused pid is not. */
SEC("raw_tp/sched_process_fork")
int follow_fork(struct bpf_raw_tracepoint_args *ctx)
{
        const struct task_struct *parent = (const void *)ctx->args[0], *child = (const void *)ctx->args[1];
        __u32 from = BPF_CORE_READ(parent, tgid), to = BPF_CORE_READ(child, tgid), one = 1;

        if (from == to)
                return 0; /* a thread */
        if (bpf_map_lookup_elem(&sampled_tgids, &from))
                bpf_map_update_elem(&sampled_tgids, &to, &one, BPF_ANY);
        else
                bpf_map_delete_elem(&sampled_tgids, &to);
        return 0;
}

/* Examine the process of the current thread, `task`. False: it is not sampled. */
static __always_inline int begin_sample(struct unwind_walk *w, struct task_struct *task)
{
        struct task_struct *leader = task->group_leader;
        struct sample_key *key = &w->record.key;
        struct sample_process *process = &key->process;
        struct mm_struct *mm = task->mm;
        __u64 executable_pages = 0;

        process->tgid = bpf_get_current_pid_tgid() >> 32;
        process->exec_id = (__u32)leader->self_exec_id;
        process->start_boot_ns = leader->start_boottime;
        if (filter_excluded && is_excluded(process)) {
                count_stat(STAT_EXCLUDED);
                return 0;
        }
        bpf_get_current_comm(key->comm, sizeof key->comm);
        if (mm)
                executable_pages = mm->exec_vm;
        w->is_known = is_agent_view_current(w, process, executable_pages);
        if (!w->is_known)
                notify_agent(process, leader, executable_pages);
        w->record.user_count = 0;
        w->record.user_end = SAMPLE_END_UNKNOWN;
        w->context.word_count = 0;
        return 1;
}

/* Walk the user half of the current thread, whose registers are in w->saved, and submit the sample. */
static __always_inline void finish_sample(struct unwind_walk *w, struct task_struct *task, struct mm_struct *mm)
{
        __u64 thread_pointer = get_thread_pointer(task);

        arch_unwind_regs(&w->saved, &w->regs);
        read_context(w, thread_pointer);
        if (w->record.kernel_count && arch_in_syscall(&w->saved))
                w->record.key.flags |= SAMPLE_IN_SYSCALL;
        /* Generated code in writable pages is not counted in the number of executable pages. */
        if (!w->is_known || !unwind_find_mapping(w, w->regs.pc)) {
                if (arch_is_64_bit(&w->saved) && defer_user_stack(w, mm->start_stack, w->is_known))
                        return;
                count_stat(STAT_DEFERRED_FULL);
        }
        walk_user(w, thread_pointer);
        submit_sample(w);
}

SEC("perf_event")
int sample_cpu(struct bpf_perf_event_data *ctx)
{
        __u64 pid_tgid = bpf_get_current_pid_tgid();
        __u32 tgid = pid_tgid >> 32, zero = 0;
        struct task_struct *task;
        struct unwind_walk *w;
        struct mm_struct *mm;

        if (latency_cpus)
                note_running_process(tgid);
        if (pid_tgid == 0)
                return 0;
        if (filter_tgids && !bpf_map_lookup_elem(&sampled_tgids, &tgid))
                return 0;
        w = bpf_map_lookup_elem(&scratch, &zero);
        if (!w)
                return 0;
        task = bpf_get_current_task_btf();
        if (!begin_sample(w, task))
                return 0;
        w->record.key.flags = 0;
        w->record.key.wait_reason = WAIT_NONE;
        w->record.key.futex = 0;
        w->record.weight = (struct sample_weight){ .running = latency_cpus ? count_running_threads(tgid) : 0 };
        walk_kernel(ctx, &w->record);
        mm = task->mm;
        if (task->flags & PF_KTHREAD) {
                w->record.key.flags = SAMPLE_KERNEL_THREAD;
        } else if (mm) { /* mm is NULL while a process exits */
                if (!bpf_probe_read_kernel(&w->saved, sizeof w->saved, (const void *)bpf_task_pt_regs(task))) {
                        finish_sample(w, task, mm);
                        return 0;
                }
                count_stat(STAT_NO_USER_STACK);
        }
        submit_sample(w);
        return 0;
}

#include "bpf/off_cpu.h"
