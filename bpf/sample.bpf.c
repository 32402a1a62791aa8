/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Runs at every tick of the CPU clock of every CPU: takes both halves of the
 * stack that was interrupted and counts it.
 *
 * Double buffer. Each of `counts` and `chunks` holds two maps. The program
 * reads `active` once and works in that half only. The agent turns `active`
 * over, then replaces an entry of a map in a map, which returns only after
 * every program that ran before has ended (maybe_wait_bpf_programs() in
 * kernel/bpf/syscall.c); from then on nobody writes the old half and it is
 * drained at leisure. Nothing is lost or counted twice in between.
 *
 * The per-CPU scratch needs no lock: the kernel runs no second program of a
 * perf event on a CPU while one is running there (bpf_prog_active).
 */
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

#include "bpf/arch.h"
#include "bpf/sample.h"
#include "bpf/kernel_types.h"
#include "bpf/late.h"
#include "bpf/unwind_user.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile __u64 hash_seed = 1;
const volatile __u32 filter_tgids = 0; /* when set, only the processes of `wanted` */
const volatile __u32 filter_excluded = 0; /* when set, not those of `excluded` */
__u32 active = 0;

/* Both are sized by the agent before loading. */
struct counts_map {
        __uint(type, BPF_MAP_TYPE_HASH);
        __uint(max_entries, 1024);
        __uint(key_size, sizeof(struct sample_key));
        __uint(value_size, sizeof(__u64));
};

struct chunks_map {
        __uint(type, BPF_MAP_TYPE_HASH);
        __uint(max_entries, 1024);
        __uint(key_size, sizeof(__u64));
        __uint(value_size, sizeof(struct sample_chunk));
};

struct {
        __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
        __uint(max_entries, 2);
        __type(key, __u32);
        __array(values, struct counts_map);
} counts SEC(".maps");

struct {
        __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
        __uint(max_entries, 2);
        __type(key, __u32);
        __array(values, struct chunks_map);
} chunks SEC(".maps");

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
} wanted SEC(".maps");

/* Processes that are left out; another life of the same number is not. */
struct {
        __uint(type, BPF_MAP_TYPE_LRU_HASH);
        __uint(max_entries, 16384);
        __type(key, __u32);
        __type(value, struct sample_process);
} excluded SEC(".maps");

/* What the agent has been told of each process last. */
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

static __always_inline void count(__u32 stat)
{
        __u64 *n = bpf_map_lookup_elem(&sample_stats, &stat);

        if (n)
                *n += 1;
}

static __always_inline __u64 chunk_hash(const struct sample_chunk *c)
{
        __u64 h = hash_seed ^ c->next ^ c->frame_count ^ ((__u64)c->end << 32);

        for (__u32 i = 0; i < SAMPLE_CHUNK_FRAMES; i++) {
                if (i >= c->frame_count)
                        break;
                h = (h ^ c->frames[i]) * 0x9e3779b97f4a7c15ull;
                h ^= h >> 29;
        }
        return h ? h : 1;
}

/*
 * Store a chunk of the scratch that has all but its hash. The hash, or 0 when
 * there is no room. The chunk is not passed in: before Linux 6.2 what a global
 * function was given could be neither key nor value of a map.
 */
__noinline __u64 store_chunk(__u32 number, __u32 half)
{
        void *map = bpf_map_lookup_elem(&chunks, &half);
        __u32 zero = 0;
        struct unwind_walk *w = bpf_map_lookup_elem(&scratch, &zero);
        struct sample_chunk *c;
        __u64 hash;

        if (!w || !map)
                return 0;
        c = &w->chunks[number & (SAMPLE_CHUNKS_MAX - 1)];
        hash = chunk_hash(c);
        return !bpf_map_lookup_elem(map, &hash) && bpf_map_update_elem(map, &hash, c, BPF_ANY) < 0 ? 0 : hash;
}

/* Store the frames of w, last chunk first. *ret: 0 without frames. -1: no room. */
static __always_inline int store_frames(struct unwind_walk *w, __u32 half, __u64 *ret)
{
        __u64 next = 0;

        *ret = 0;
        for (__u32 i = SAMPLE_CHUNKS_MAX; i > 0; i--) {
                __u32 first = (i - 1) * SAMPLE_CHUNK_FRAMES;
                struct sample_chunk *c = &w->chunks[i - 1];

                if (w->frame_count <= first)
                        continue;
                c->frame_count = w->frame_count - first < SAMPLE_CHUNK_FRAMES ? w->frame_count - first :
                                                                                SAMPLE_CHUNK_FRAMES;
                c->end = i == 1 ? w->end : 0;
                c->next = next;
                next = store_chunk(i - 1, half);
                if (!next)
                        return -1;
        }
        *ret = next;
        return 0;
}

/*
 * The kernel half: the kernel walks itself, in one go, since each call walks
 * from the leaf. A user address was interrupted: there is no such half.
 */
static __always_inline void walk_kernel(struct bpf_perf_event_data *ctx, struct unwind_walk *w)
{
        long n = 0;

        if ((__s64)PT_REGS_IP(&ctx->regs) < 0)
                n = bpf_get_stack(ctx, w->kernel, SAMPLE_KERNEL_STACK_MAX * sizeof *w->kernel, 0);
        w->frame_count = n > 0 ? (__u32)n / sizeof *w->kernel : 0;
        w->end = SAMPLE_END_UNKNOWN;
        for (__u32 i = 0; i < SAMPLE_KERNEL_CHUNKS && i * SAMPLE_CHUNK_FRAMES < w->frame_count; i++)
                __builtin_memcpy(w->chunks[i].frames, w->kernel + i * SAMPLE_CHUNK_FRAMES, sizeof w->chunks[i].frames);
}

/*
 * Is the interrupted pc in a mapping that is known? Code that was made at run
 * time in pages that can be written counts in no number of executable pages.
 */
static __always_inline int covers(struct unwind_walk *w)
{
        __u32 n = unwind_find_mapping(w->process.first_mapping, w->process.mapping_count, w->regs.pc);
        struct unwind_mapping *m = bpf_map_lookup_elem(&mappings, &n);

        if (!m || m->generation != w->process.generation)
                return 0;
        w->mapping = *m;
        return 1;
}

/* Does the agent's view of the process hold? */
static __always_inline int knows(struct unwind_walk *w, const struct sample_process *process, __u64 executable_pages)
{
        struct unwind_process *p = bpf_map_lookup_elem(&processes, &process->tgid);

        w->mapping.start = w->mapping.end = 0;
        if (p)
                w->process = *p;
        else
                w->process.mapping_count = 0;
        if (!p || w->process.exec_id != process->exec_id || w->process.start_boot_ns != process->start_boot_ns) {
                w->process.mapping_count = 0;
                w->process.generation = 0;
                return 0;
        }
        return w->process.executable_pages == executable_pages;
}

static __always_inline void walk_user(struct unwind_walk *w)
{
        w->frame_count = 0;
        w->end = SAMPLE_END_TOO_DEEP;
        if (!arch_is_64_bit(&w->saved)) {
                w->chunks[0].frames[0] = w->regs.pc;
                w->frame_count = 1;
                w->end = SAMPLE_END_OTHER_WIDTH;
                return;
        }
        for (__u32 i = 0; i <= SAMPLE_STACK_MAX; i++) {
                if (unwind_frame(w))
                        break;
        }
}

static __always_inline int is_excluded(const struct sample_process *process)
{
        struct sample_process *life = bpf_map_lookup_elem(&excluded, &process->tgid);

        return life && life->exec_id == process->exec_id && life->start_boot_ns == process->start_boot_ns;
}

static __always_inline void notify(const struct sample_process *process, struct task_struct *leader,
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
                count(STAT_NOTICES_LOST);
                return;
        }
        bpf_map_update_elem(&known, &process->tgid, &now, BPF_ANY);
}

/* Loaded only to follow children: a new process of a wanted one is wanted, and a pid that comes again is not. */
SEC("raw_tp/sched_process_fork")
int follow_fork(struct bpf_raw_tracepoint_args *ctx)
{
        const struct task_struct *parent = (const void *)ctx->args[0], *child = (const void *)ctx->args[1];
        __u32 from = BPF_CORE_READ(parent, tgid), to = BPF_CORE_READ(child, tgid), one = 1;

        if (from == to)
                return 0; /* a thread */
        if (bpf_map_lookup_elem(&wanted, &from))
                bpf_map_update_elem(&wanted, &to, &one, BPF_ANY);
        else
                bpf_map_delete_elem(&wanted, &to);
        return 0;
}

SEC("perf_event")
int sample_cpu(struct bpf_perf_event_data *ctx)
{
        __u64 pid_tgid = bpf_get_current_pid_tgid();
        __u32 half = *(volatile __u32 *)&active & 1;
        __u32 zero = 0;
        struct sample_key key = {};
        struct unwind_walk *w;
        struct task_struct *task, *leader;
        void *counts_half;
        struct mm_struct *mm;
        __u64 *n, one = 1, executable_pages = 0;
        int is_known;

        if (pid_tgid == 0)
                return 0;
        key.process.tgid = pid_tgid >> 32;
        if (filter_tgids && !bpf_map_lookup_elem(&wanted, &key.process.tgid))
                return 0;
        w = bpf_map_lookup_elem(&scratch, &zero);
        counts_half = bpf_map_lookup_elem(&counts, &half);
        if (!w || !counts_half) {
                count(STAT_LOST_NO_BUFFER);
                return 0;
        }
        task = bpf_get_current_task_btf();
        leader = task->group_leader;
        key.process.exec_id = (__u32)leader->self_exec_id;
        key.process.start_boot_ns = leader->start_boottime;
        if (filter_excluded && is_excluded(&key.process)) {
                count(STAT_EXCLUDED);
                return 0;
        }
        bpf_get_current_comm(key.comm, sizeof key.comm);
        mm = task->mm;
        if (mm)
                executable_pages = mm->exec_vm;
        is_known = knows(w, &key.process, executable_pages);
        if (!is_known)
                notify(&key.process, leader, executable_pages);

        walk_kernel(ctx, w);
        if (w->frame_count >= SAMPLE_KERNEL_STACK_MAX)
                count(STAT_TRUNCATED);
        if (store_frames(w, half, &key.kernel_stack) < 0) {
                count(STAT_LOST_STACKS_FULL);
                return 0;
        }
        if (task->flags & PF_KTHREAD) {
                key.flags |= SAMPLE_KERNEL_THREAD;
        } else if (mm) { /* else it is ending */
                if (bpf_probe_read_kernel(&w->saved, sizeof w->saved, (const void *)bpf_task_pt_regs(task))) {
                        count(STAT_NO_USER_STACK);
                } else {
                        arch_unwind_regs(&w->saved, &w->regs);
                        if (key.kernel_stack && arch_in_syscall(&w->saved))
                                key.flags |= SAMPLE_IN_SYSCALL;
                        if (!is_known || !covers(w)) {
                                if (arch_is_64_bit(&w->saved) && postpone(&key, half, w, mm->start_stack, is_known)) {
                                        count(STAT_LATE);
                                        count(STAT_SAMPLES);
                                        return 0;
                                }
                                count(STAT_LATE_FULL);
                        }
                        walk_user(w);
                        if (store_frames(w, half, &key.user_stack) < 0) {
                                count(STAT_LOST_STACKS_FULL);
                                return 0;
                        }
                        if (w->frame_count >= SAMPLE_STACK_MAX)
                                count(STAT_TRUNCATED);
                        if (w->end < SAMPLE_END_COUNT)
                                count(STAT_ENDS + w->end);
                }
        }

        n = bpf_map_lookup_elem(counts_half, &key);
        if (n) {
                __sync_fetch_and_add(n, 1);
        } else if (bpf_map_update_elem(counts_half, &key, &one, BPF_NOEXIST) < 0) {
                /* Another CPU came first, or the map is full. */
                n = bpf_map_lookup_elem(counts_half, &key);
                if (!n) {
                        count(STAT_LOST_COUNTS_FULL);
                        return 0;
                }
                __sync_fetch_and_add(n, 1);
        }
        count(STAT_SAMPLES);
        return 0;
}
