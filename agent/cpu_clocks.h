/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_AGENT_CPU_CLOCKS_H
#define CAIRN_AGENT_CPU_CLOCKS_H

/**
 * @file
 * A clock event on every CPU that runs, with a BPF program attached.
 *
 * CPUs come and go: a clock ends with its CPU and does not come back with it.
 * Threads: one thread at a time.
 */
#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"

struct bpf_link;
struct bpf_program;

struct cpu_clock {
        struct bpf_link *link; /* NULL: not running */
        int event;             /* the link's; borrowed */
        uint64_t count_ns;     /* that the event had counted when it was looked at last */
};

struct cpu_clocks {
        struct bpf_program *program; /* borrowed */
        uint64_t period_ns;
        struct cpu_clock *items;     /* one for each possible CPU; owned */
        bool *online;                /* the same; scratch */
        int count;
        unsigned running;
};

/**
 * Start the clocks of all CPUs that run.
 * @param c  cpu_clocks_deinit() in any case.
 * @return ST_OK; ST_OS with the step that the kernel refused.
 */
enum status cpu_clocks_start(struct cpu_clocks *c, struct bpf_program *program, int possible_cpus, uint64_t period_ns,
                             struct error *err) MUST_CHECK;
/** Also fine on a zeroed one. */
void cpu_clocks_deinit(struct cpu_clocks *c);

/** Start the clocks of CPUs that came since, forget those that went; does nothing before the start or after the end. */
void cpu_clocks_follow(struct cpu_clocks *c);

#endif
