/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_AGENT_REPORT_H
#define CAIRN_AGENT_REPORT_H

/**
 * @file
 * The agent's own counters: as metrics, one for each way to lose something.
 * Threads: one thread at a time.
 */
#include <stdbool.h>
#include <stdint.h>

#include "agent/profile_build.h"
#include "agent/sampler.h"
#include "agent/sender.h"
#include "agent/unwinder.h"
#include "agent/uploads.h"

struct report {
        enum sampler_kind sampler_kind;
        uint64_t sampler[SAMPLER_STAT_COUNT]; /* totals, as the rest */
        struct profile_build_stats build;
        struct sender_stats sender;
        struct uploads_stats uploads;
        struct unwinder_stats unwinder; /* zero without unwinding */
        uint64_t unreadable_processes, excluded_processes;
        uint64_t jit_left_out, jit_bytes;
        bool kernel_shift_known;
};

void report_update(const struct report *r);

/** Replace path with all metrics in the Prometheus text format. */
enum status report_write(const char *path, struct error *err) MUST_CHECK;

/** One line of what was counted, lost and sent. */
void report_log(bool with_sender);

#endif
