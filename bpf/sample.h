/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CAIRN_BPF_SAMPLE_H
#define CAIRN_BPF_SAMPLE_H

/**
 * @file
 * What the sampling program and the agent tell each other.
 *
 * Each sample is a record of a ring buffer; the agent counts them, under keys.
 * All structs have no padding: keys are compared byte by byte.
 */
#include <linux/types.h>

#include "bpf/arch.h"

#define SAMPLE_STACK_MAX 512 /* frames of the user half */
#define SAMPLE_KERNEL_STACK_MAX 127 /* kernel.perf_event_max_stack allows as many */
#define SAMPLE_FRAMES_MAX (SAMPLE_STACK_MAX + SAMPLE_KERNEL_STACK_MAX)
#define SAMPLE_COMM_SIZE 16

/** One life of a process: a pid may come again, and exec replaces the mappings. */
struct sample_process {
        __u32 tgid;
        __u32 exec_id;        /* low half of task_struct.self_exec_id of the group leader */
        __u64 start_boot_ns;  /* task_struct.start_boottime of the group leader */
};

enum sample_flags {
        SAMPLE_IN_SYSCALL = 1 << 0,    /* the user leaf is the address after a system call instruction */
        SAMPLE_KERNEL_THREAD = 1 << 1, /* there is no user half */
};

struct sample_key {
        struct sample_process process;
        __u64 kernel_stack; /* its number, which the agent gives; 0: none */
        __u64 user_stack;   /* the same */
        char comm[SAMPLE_COMM_SIZE]; /* of the thread */
        __u32 flags;
        __u32 reserved;
};

/** Where the user half of a stack ends. Public as labels of a metric. */
enum sample_end {
        SAMPLE_END_COMPLETE,      /* at a frame that has no caller */
        SAMPLE_END_UNKNOWN,       /* nobody looked: kernel stacks, and chains that the kernel walked */
        SAMPLE_END_TOO_DEEP,      /* SAMPLE_STACK_MAX frames */
        SAMPLE_END_NEW_PROCESS,   /* frame pointers: the agent has not told of its mappings yet */
        SAMPLE_END_NO_MAPPING,    /* the caller's pc is in no executable mapping */
        SAMPLE_END_NO_TABLE,      /* frame pointers ended: there is no table for this code */
        SAMPLE_END_NO_RULE,       /* the table has nothing for this pc */
        SAMPLE_END_UNKNOWN_RULE,  /* the rule is one that tables cannot say */
        SAMPLE_END_NO_MEMORY_AT,  /* stack memory could not be read: paged out, or not a stack */
        SAMPLE_END_NO_REGISTER,   /* the rule needs a register that is not known there */
        SAMPLE_END_NO_PROGRESS,   /* the caller's frame would not lie above */
        SAMPLE_END_OTHER_WIDTH,   /* a 32-bit process */
        SAMPLE_END_NOT_COPIED,    /* a late sample, the copy of whose stack does not go there */
        SAMPLE_END_COUNT,
};

/** What stopped a step of the walk. */
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

/** Set in a frame's address: it was interrupted there, or a signal's handler returns there, so no call lies before it. */
#define SAMPLE_FRAME_EXACT (1ull << 63)

/** A sample with both halves of its stack. A record of the ring buffer ends behind the last frame. */
struct sample_record {
        struct sample_key key; /* without its stacks */
        __u32 kernel_count;
        __u32 user_count;
        __u32 user_end; /* enum sample_end */
        __u32 reserved;
        __u64 frames[SAMPLE_FRAMES_MAX]; /* the kernel's, then the user's; leaf first: the interrupted pc, then return addresses */
};

#define SAMPLE_LATE_STACK_BYTES 65536
#define SAMPLE_LATE_SHORT_BYTES 8192  /* of room for a stack that ends before; most do */
#define SAMPLE_LATE_MIDDLE_BYTES 20480
#define SAMPLE_LATE_BELOW_BYTES 128   /* the red zone of x86-64: OpenSSL's CFA is read from there */
#define SAMPLE_LATE_PIECE_BYTES 2048 /* divides a page and all of these */

/** What a user stack can be walked by later, by the same rules. */
struct sample_late {
        __u64 stack_start; /* address of stack[0]: a little below the stack pointer, where rules may read too */
        __u32 stack_bytes;
        __u32 reserved;
        struct arch_regs regs;
        __u8 stack[SAMPLE_LATE_STACK_BYTES];
};

/**
 * A sample of a process whose mappings are not known, or not any more.
 * A record of the ring buffer may end within `late.stack`, behind what is copied.
 */
struct sample_late_record {
        struct sample_key key; /* without its stacks */
        __u32 kernel_count;
        __u32 reserved;
        __u64 kernel[SAMPLE_KERNEL_STACK_MAX];
        struct sample_late late;
};

/**
 * Said at the first sample of each life of a process, and again at the first
 * one after its executable mappings grew or shrank: a library was loaded.
 */
struct sample_notice {
        struct sample_process process;
        __u64 executable_pages;
        char leader_comm[SAMPLE_COMM_SIZE];
};

/* Rows of the per-CPU array `sample_stats`, ever increasing. The agent counts those of what it got. */
enum sample_stat {
        STAT_SAMPLES,          /* counted; by the agent */
        STAT_LOST_COUNTS_FULL, /* dropped: no room for another key; by the agent */
        STAT_LOST_STACKS_FULL, /* dropped: no room for another stack; by the agent */
        STAT_LOST_RING_FULL,   /* dropped: no room in the ring buffer */
        STAT_NO_USER_STACK,    /* counted, but the user half could not be read */
        STAT_TRUNCATED,        /* counted, but a half is as deep as it can be; by the agent */
        STAT_NOTICES_LOST,     /* the agent was not told of a new process in time */
        STAT_LATE,             /* counted; the agent walks the user half; by the agent */
        STAT_LATE_FULL,        /* counted, walked by what is known: no room for a copy of the stack */
        STAT_EXCLUDED,         /* ticks of processes that the agent left out */
        STAT_ENDS,             /* user stacks by their end: SAMPLE_END_COUNT rows; by the agent */
        STAT_COUNT = STAT_ENDS + SAMPLE_END_COUNT,
};

#endif
