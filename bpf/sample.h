/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CAIRN_BPF_SAMPLE_H
#define CAIRN_BPF_SAMPLE_H

/**
 * @file
 * What the sampling program and the agent tell each other.
 *
 * A sample is counted under a key; its two stacks are stored once under their
 * 64-bit hash, seeded by the agent so that nobody can prepare a collision.
 * Key and stacks of one sample always land in the same half of the double
 * buffer. All structs have no padding: the kernel compares keys byte by byte.
 */
#include <linux/types.h>

#define SAMPLE_STACK_MAX 127 /* kernel.perf_event_max_stack allows as many */
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
        __u64 kernel_stack; /* hash, 0: none */
        __u64 user_stack;   /* hash, 0: none */
        char comm[SAMPLE_COMM_SIZE]; /* of the thread */
        __u32 flags;
        __u32 reserved;
};

/** How the user half of a stack was walked. */
enum sample_walk { SAMPLE_WALK_FRAME_POINTERS = 0, SAMPLE_WALK_TABLES = 1 };

struct sample_stack {
        __u32 frame_count;
        __u32 walk;
        __u64 frames[SAMPLE_STACK_MAX]; /* leaf first; [0] the interrupted pc, the others return addresses */
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
        STAT_TRUNCATED,        /* counted, but a half has SAMPLE_STACK_MAX frames or more */
        STAT_NOTICES_LOST,     /* the agent was not told of a new process in time */
        STAT_COUNT,
};

#endif
