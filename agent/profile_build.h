/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_AGENT_PROFILE_BUILD_H
#define CAIRN_AGENT_PROFILE_BUILD_H

/**
 * @file
 * From counted stacks to a profile that means the same on every host.
 *
 * - User addresses become (object, ELF virtual address), kernel addresses
 *   (object, link-time address) with their kallsyms name. Callers are taken
 *   back by one here and nowhere after (profile-formats/return_address.h).
 * - The user leaf is the interrupted instruction itself, unless the thread was
 *   in a system call: then its saved pc is the address after the system call
 *   instruction and is taken back like a caller's.
 * - A user stack ends at the first caller that lies in no executable mapping:
 *   code without frame pointers leaves such values behind.
 * - Frames that have no object become names: "[jit]" for code that nobody
 *   names, "[exited]" for a process that ended before its mappings were read.
 *
 * - Samples with equal stacks and labels are one.
 *
 * Values are CPU time: ticks times period.
 * Threads: one thread at a time.
 */
#include "agent/kernel.h"
#include "agent/labels.h"
#include "agent/process.h"
#include "agent/sampler.h"
#include "profile-formats/profile.h"

struct profile_context {
        struct process_table *processes; /* borrowed */
        struct kernel *kernel;           /* borrowed */
        const struct labels *labels;     /* borrowed */
        int64_t period_ns;               /* CPU time that one tick stands for */
        int64_t time_unix_ns;            /* start of the interval */
        int64_t duration_ns;
};

/** How user stacks ended, for whoever asks how good they are. */
struct profile_build_stats {
        uint64_t stacks;           /* user stacks, each counted once an interval */
        uint64_t no_code_frames;   /* stacks cut at a value that is no code */
        uint64_t exited;           /* stacks of processes that ended too early */
        uint64_t jit_frames;       /* frames of code that nobody names */
        uint64_t no_build_id;      /* frames in files without a build-id or that could not be read */
        uint64_t excluded_samples; /* of processes that are left out, taken before the sampler knew */
        uint64_t kernel_name_only; /* kernel frames sent without an address */
};

/**
 * @param ret        initialised here; profile_deinit() it on success only.
 * @param stats_ret  added to.
 * @return ST_OK; ST_TOO_BIG or ST_NO_MEMORY.
 */
enum status profile_build(const struct profile_context *c, const struct sample_batch *batch, struct profile *ret,
                          struct profile_build_stats *stats_ret, struct error *err) MUST_CHECK;

#endif
