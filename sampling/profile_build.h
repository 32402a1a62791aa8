/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_PROFILE_BUILD_H
#define CAIRN_SAMPLING_PROFILE_BUILD_H

/**
 * @file
 * Converts counted stacks to a profile that is valid on any host.
 *
 * - User addresses become (object, ELF virtual address), kernel addresses
 *   (object, link-time address) with their kallsyms name. Return addresses are
 *   decremented here and nowhere else (profile-formats/return_address.h).
 * - The user leaf is the interrupted instruction itself, unless the thread was
 *   in a system call: then its saved pc is the address after the system call
 *   instruction and is decremented like a return address.
 * - A user stack ends at the first return address outside executable mappings:
 *   code without frame pointers leaves such values behind.
 * - Frames without an object become names: "[jit]" for generated code without
 *   a name, "[exited]" for a process that exited before its mappings were
 *   read.
 * - Frames of runtimes become name, file and line. One that cannot be read stays
 *   in the stack, with a name in brackets that says why.
 * - Samples with equal stacks and labels are merged.
 *
 * Values are CPU time (ticks times period), latency (each tick over the running threads of its process) and time
 * waited, each of its own type.
 *
 * Threads: one thread at a time.
 */
#include "profile-formats/profile.h"
#include "relabel/relabel_rules.h"
#include "sampling/containers/pod_cache.h"
#include "sampling/processes/kernel.h"
#include "sampling/processes/process_labels.h"
#include "sampling/processes/process.h"
#include "sampling/samplers/sampler.h"

struct profile_context {
        struct process_table *processes;   /* borrowed */
        struct kernel *kernel;             /* borrowed */
        const struct labels *labels;       /* borrowed */
        struct pod_cache *pods;            /* borrowed; NULL: none */
        const struct relabel_rules *rules; /* borrowed; NULL: none */
        bool omits_files;                  /* paths of the source files of runtimes */
        int64_t period_ns;                 /* CPU time per tick */
        int64_t time_unix_ns;              /* start of the interval */
        int64_t duration_ns;
};

/** How user stacks ended. */
struct profile_build_stats {
        uint64_t stacks;                  /* user stacks, each counted once per interval */
        uint64_t no_code_frames;          /* stacks cut at an address that is not code */
        uint64_t exited;                  /* stacks of processes that exited before their mappings were read */
        uint64_t jit_frames;              /* frames of generated code without a name */
        uint64_t no_build_id;             /* frames in files that have no build-id or could not be read */
        uint64_t excluded_samples;        /* of excluded processes, taken before the sampler was notified */
        uint64_t relabel_dropped_samples; /* by a relabel rule */
        uint64_t relabel_failures;        /* label sets past a limit of relabelling */
        uint64_t kernel_name_only;        /* kernel frames sent without an address */
        uint64_t python_frames[PYTHON_FRAME_STATES]; /* each counted once per stack and interval, like the others */
        uint64_t v8_frames[V8_FRAME_STATES];
        uint64_t hotspot_frames[HOTSPOT_FRAME_STATES];
        uint64_t context_samples;     /* with the context of their thread */
        uint64_t context_labels_left; /* labels of contexts left out, past a limit of the profile */
};

/**
 * @param ret        initialized here; profile_deinit() it on success only.
 * @param stats_ret  incremented.
 * @return ST_OK; ST_TOO_BIG or ST_NO_MEMORY.
 */
enum status profile_build(const struct profile_context *c, const struct sample_batch *batch, struct profile *ret,
                          struct profile_build_stats *stats_ret, struct error *err) MUST_CHECK;

#endif
