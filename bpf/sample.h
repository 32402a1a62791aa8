/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CAIRN_BPF_SAMPLE_H
#define CAIRN_BPF_SAMPLE_H

/**
 * @file
 * What the sampling program and the agent tell each other.
 *
 * A sample is counted under a key. Each of its two stacks is a chain of chunks,
 * stored once under a 64-bit hash of it and of all behind it, seeded by the
 * agent so that nobody can prepare a collision. Key and chunks of one sample
 * always land in the same half of the double buffer. All structs have no
 * padding: the kernel compares keys byte by byte.
 */
#include <linux/types.h>

#include "bpf/arch.h"

#define SAMPLE_CHUNK_FRAMES 32
#define SAMPLE_CHUNKS_MAX 16
#define SAMPLE_STACK_MAX (SAMPLE_CHUNK_FRAMES * SAMPLE_CHUNKS_MAX) /* frames of the user half */
#define SAMPLE_KERNEL_STACK_MAX 127 /* kernel.perf_event_max_stack allows as many */
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
        __u64 kernel_stack; /* hash of its first chunk, 0: none */
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

struct sample_chunk {
        __u32 frame_count; /* 1 to SAMPLE_CHUNK_FRAMES; only the last chunk of a stack is not full */
        __u32 end;         /* enum sample_end, in the first chunk of a stack */
        __u64 next;        /* hash of the chunk that goes on, 0: none */
        __u64 frames[SAMPLE_CHUNK_FRAMES]; /* leaf first; [0] the interrupted pc, the others return addresses */
};

#define SAMPLE_LATE_STACK_BYTES 65536
#define SAMPLE_LATE_SHORT_BYTES 8192  /* of room for a stack that ends before; most do */
#define SAMPLE_LATE_MIDDLE_BYTES 20480
#define SAMPLE_LATE_BELOW_BYTES 128   /* the red zone of x86-64: OpenSSL's CFA is read from there */
#define SAMPLE_LATE_PIECE_BYTES 2048 /* divides a page and all of these */

/**
 * A sample of a process whose mappings are not known, or not any more: the agent
 * walks this copy of its stack later, by the same rules. It is counted in no map.
 * A record of the ring buffer may end within `stack`, behind what is copied.
 */
struct sample_late {
        struct sample_key key; /* without its user stack; the kernel stack is in the chunks of the half */
        __u32 half;
        __u32 stack_bytes;
        __u64 stack_start;     /* address of stack[0]: a little below the stack pointer, where rules may read too */
        struct arch_regs regs;
        __u8 stack[SAMPLE_LATE_STACK_BYTES];
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

/* Rows of the per-CPU array `sample_stats`, ever increasing. */
enum sample_stat {
        STAT_SAMPLES,          /* counted */
        STAT_LOST_COUNTS_FULL, /* dropped: no room for another key */
        STAT_LOST_STACKS_FULL, /* dropped: no room for another stack */
        STAT_LOST_NO_BUFFER,   /* dropped: a map of this half is missing */
        STAT_NO_USER_STACK,    /* counted, but the user half could not be read */
        STAT_TRUNCATED,        /* counted, but a half is as deep as it can be */
        STAT_NOTICES_LOST,     /* the agent was not told of a new process in time */
        STAT_LATE,             /* counted; the agent walks the user half */
        STAT_LATE_FULL,        /* counted, walked by what is known: no room for a copy of the stack */
        STAT_EXCLUDED,         /* ticks of processes that the agent left out */
        STAT_ENDS,             /* user stacks by their end: SAMPLE_END_COUNT rows */
        STAT_COUNT = STAT_ENDS + SAMPLE_END_COUNT,
};

#endif
