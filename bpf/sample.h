/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CAIRN_BPF_SAMPLE_H
#define CAIRN_BPF_SAMPLE_H

/**
 * @file
 * Records and counters exchanged by the sampling program and the agent.
 *
 * Each sample is one ring buffer record; the agent counts samples by key.
 * Structs have no padding: keys are compared byte by byte.
 */
#include <linux/types.h>

#include "bpf/arch.h"
#include "bpf/context_walk.h"
#include "bpf/wait.h"

#define SAMPLE_STACK_MAX 512        /* words of the user half: see enum sample_frame_kind */
#define SAMPLE_KERNEL_STACK_MAX 127 /* default of kernel.perf_event_max_stack */
#define SAMPLE_FRAMES_MAX (SAMPLE_STACK_MAX + SAMPLE_KERNEL_STACK_MAX)
#define SAMPLE_COMM_SIZE 16

/** One life of a process: pids are reused, and exec replaces the mappings. */
struct sample_process {
        __u32 tgid;
        __u32 exec_id;       /* low half of task_struct.self_exec_id of the group leader */
        __u64 start_boot_ns; /* task_struct.start_boottime of the group leader */
};

enum sample_flags {
        SAMPLE_IN_SYSCALL = 1 << 0,    /* the user leaf is the address after a system call instruction */
        SAMPLE_KERNEL_THREAD = 1 << 1, /* there is no user half */
        SAMPLE_OFF_CPU = 1 << 2,       /* of the time a thread waited, not of CPU time */
};

struct sample_key {
        struct sample_process process;
        __u64 kernel_stack;          /* its number, assigned by the agent; 0: none */
        __u64 user_stack;            /* likewise */
        __u64 context;               /* likewise: of the request that the thread works on */
        char comm[SAMPLE_COMM_SIZE]; /* of the thread */
        __u32 flags;
        __u32 wait_reason; /* enum wait_reason */
        __u64 futex;       /* address of the futex waited for; 0: none */
};

/** What a sample stands for. */
struct sample_weight {
        /* With SAMPLE_OFF_CPU, else 0; estimated (bpf/off_cpu.h): a wait, and the run queue after it. */
        __u64 blocked_ns; /* for the reason of the key */
        __u64 queued_ns;  /* runnable, without a CPU */
        /* Else: threads of the process that ran at that moment (bpf/latency.h), 1 or more; 0: not counted. */
        __u64 running;
};

/** Where the user half of a stack ends. Public as labels of a metric. */
enum sample_end {
        SAMPLE_END_COMPLETE,     /* at a frame that has no caller */
        SAMPLE_END_UNKNOWN,      /* not examined: kernel stacks, and chains that the kernel walked */
        SAMPLE_END_TOO_DEEP,     /* SAMPLE_STACK_MAX frames */
        SAMPLE_END_NEW_PROCESS,  /* frame pointers: the agent has not written its mappings yet */
        SAMPLE_END_NO_MAPPING,   /* the caller's pc is in no executable mapping */
        SAMPLE_END_NO_TABLE,     /* frame pointers ended: this code has no table */
        SAMPLE_END_NO_RULE,      /* the table does not cover this pc */
        SAMPLE_END_UNKNOWN_RULE, /* tables cannot express the rule */
        SAMPLE_END_NO_MEMORY_AT, /* unreadable stack memory: paged out, or not a stack */
        SAMPLE_END_NO_REGISTER,  /* the rule needs an unknown register */
        SAMPLE_END_NO_PROGRESS,  /* the caller's frame would not be above */
        SAMPLE_END_OTHER_WIDTH,  /* a 32-bit process */
        SAMPLE_END_NOT_COPIED,   /* a deferred sample whose stack copy does not reach there */
        SAMPLE_END_COUNT,
};

/**
 * Whether the end of a chain of frame pointers proves nothing: while the code of the process is unknown, and at an
 * interrupted pc without unwind information, whose frame pointer may be any value, also 0.
 * @param callees  user frames that were recorded before: 0 at an interrupted pc.
 */
static inline __attribute__((always_inline)) int sample_end_is_guess(enum sample_end end, __u32 callees)
{
        return end == SAMPLE_END_NEW_PROCESS || !callees;
}

/** The end for a step that failed. */
static inline __attribute__((always_inline)) enum sample_end sample_end_of(enum unwind_status st)
{
        switch (st) {
        case UNWIND_DONE:
                return SAMPLE_END_COMPLETE;
        case UNWIND_UNKNOWN_RULE:
                return SAMPLE_END_UNKNOWN_RULE;
        case UNWIND_NO_MEMORY_AT:
                return SAMPLE_END_NO_MEMORY_AT;
        case UNWIND_NO_REGISTER:
                return SAMPLE_END_NO_REGISTER;
        case UNWIND_NO_PROGRESS:
                return SAMPLE_END_NO_PROGRESS;
        default:
                return SAMPLE_END_NO_RULE;
        }
}

/**
 * Kind of a frame. A native or kernel frame is one word, its address. A frame of a runtime is two: an address in the
 * runtime's memory, and a second word whose meaning depends on the kind, such as a position in the code at that
 * address. Bits 57 to 62 of the first word hold the kind, so that stacks are copied, compared and hashed as words.
 * User addresses end below bit 57, also with five levels of page tables, and kernel addresses have all of these bits
 * set, so the words of native and kernel frames are plain addresses. Runtimes are numbered from 1.
 */
enum sample_frame_kind {
        SAMPLE_FRAME_NATIVE = 0,
        SAMPLE_FRAME_CPYTHON = 1, /* a code object and PYTHON_DETAIL_...: bpf/python_walk.h */
        SAMPLE_FRAME_V8 = 2,      /* a SharedFunctionInfo and a position: bpf/v8_walk.h */
        SAMPLE_FRAME_HOTSPOT = 3, /* code or a Method of HotSpot and a position: bpf/hotspot_walk.h */
        SAMPLE_FRAME_KERNEL = 63,
};

#define SAMPLE_FRAME_KIND_SHIFT 57
#define SAMPLE_FRAME_ADDRESS_MAX ((1ull << SAMPLE_FRAME_KIND_SHIFT) - 1) /* user addresses end below: never mapped */

/** Set in a native frame that is not a return address: interrupted there, or returned to by a signal handler. */
#define SAMPLE_FRAME_EXACT (1ull << 63)

/** The word of a native frame. A pc that is not a user address becomes one that is in no mapping. */
static inline __attribute__((always_inline)) __u64 sample_frame_pack_native(__u64 pc, int is_exact)
{
        return (pc < SAMPLE_FRAME_ADDRESS_MAX ? pc : SAMPLE_FRAME_ADDRESS_MAX) | (is_exact ? SAMPLE_FRAME_EXACT : 0);
}

/** The first word of a runtime's frame. */
static inline __attribute__((always_inline)) __u64 sample_frame_pack(enum sample_frame_kind kind, __u64 address)
{
        return (address & SAMPLE_FRAME_ADDRESS_MAX) | (__u64)kind << SAMPLE_FRAME_KIND_SHIFT;
}

/** A sample with both halves of its stack. The ring buffer record ends after the last word. */
struct sample_record {
        struct sample_key key; /* without its stacks and its context */
        __u32 kernel_count;    /* words */
        __u32 user_count;
        __u32 user_end; /* enum sample_end */
        __u32 context_count;
        struct sample_weight weight;
        /* Words of the kernel's frames, then of the user's, then of the context (bpf/context_read.h). Frames are leaf
           first: the interrupted pc, then return addresses and frames of runtimes. */
        __u64 frames[SAMPLE_FRAMES_MAX + CONTEXT_WORDS_MAX];
};

#define STACK_COPY_MAX_BYTES 65536
#define STACK_COPY_SHORT_BYTES 8192 /* for short stacks, which are the majority */
#define STACK_COPY_MIDDLE_BYTES 20480
#define STACK_COPY_RED_ZONE_BYTES 128 /* red zone of x86-64: the CFA of OpenSSL code is read from there */
#define STACK_COPY_CHUNK_BYTES 2048   /* divides the page size and all of these */

/** Registers and a copy of the stack, to walk a user stack later. */
struct stack_copy {
        __u64 stack_start; /* address of stack[0]: slightly below the stack pointer, where rules may read */
        __u32 stack_bytes;
        __u32 reserved;
        struct arch_regs regs;
        __u8 stack[STACK_COPY_MAX_BYTES];
};

/**
 * A sample of a process whose mappings are unknown or outdated. The ring buffer record may end within
 * `copy.stack`, after the copied bytes.
 */
struct deferred_sample_record {
        struct sample_key key; /* without its stacks and its context */
        __u32 kernel_count;
        __u32 context_count;
        struct sample_weight weight;
        __u64 kernel[SAMPLE_KERNEL_STACK_MAX];
        __u64 context[CONTEXT_WORDS_MAX];
        struct stack_copy copy;
};

/**
 * Sent at the first sample of each life of a process, and at the first one after its executable mappings grew or
 * shrank, as when a library is loaded.
 */
struct sample_notice {
        struct sample_process process;
        __u64 executable_pages;
        char leader_comm[SAMPLE_COMM_SIZE];
};

/* Entries of the per-CPU array `sample_stats`, monotonic. Some are counted by the agent. */
enum sample_stat {
        STAT_SAMPLES,           /* counted; by the agent */
        STAT_LOST_COUNTS_FULL,  /* dropped: no space for another key; by the agent */
        STAT_LOST_STACKS_FULL,  /* dropped: no space for another stack; by the agent */
        STAT_LOST_RING_FULL,    /* dropped: the ring buffer is full */
        STAT_NO_USER_STACK,     /* counted, without its user half, which is unreadable */
        STAT_TRUNCATED,         /* counted, a half reached its depth limit; by the agent */
        STAT_NOTICES_LOST,      /* a notice of a process was lost */
        STAT_DEFERRED,          /* counted, the agent walks the user half; by the agent */
        STAT_DEFERRED_FULL,     /* counted, walked in the kernel: no space for a stack copy */
        STAT_EXCLUDED,          /* ticks of excluded processes */
        STAT_PYTHON_UNREADABLE, /* counted, without some or all Python frames, which are unreadable */
        STAT_OFF_CPU,           /* samples of waiting threads, before any is lost */
        STAT_OFF_CPU_NO_USER,   /* counted, without its user half: the thread ran on before it was read */
        STAT_OFF_CPU_UNTRACKED, /* waits not measured: no space for another waiting thread */
        STAT_ENDS,              /* user stacks by their end: SAMPLE_END_COUNT rows; by the agent */
        STAT_COUNT = STAT_ENDS + SAMPLE_END_COUNT,
};

_Static_assert(sizeof(struct sample_process) == 16, "no padding");
_Static_assert(sizeof(struct sample_key) == 72, "no padding");
_Static_assert(sizeof(struct sample_notice) == 40, "no padding");
_Static_assert(STACK_COPY_MAX_BYTES % STACK_COPY_CHUNK_BYTES == 0 &&
                       STACK_COPY_MIDDLE_BYTES % STACK_COPY_CHUNK_BYTES == 0 &&
                       STACK_COPY_SHORT_BYTES % STACK_COPY_CHUNK_BYTES == 0,
               "copies are whole chunks");

#endif
