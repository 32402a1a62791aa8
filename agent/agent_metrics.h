/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_AGENT_AGENT_METRICS_H
#define CAIRN_AGENT_AGENT_METRICS_H

/**
 * @file
 * The agent's counters as Prometheus metrics, with a counter for each way to
 * lose data, and their HTTP server: /metrics has the counters as of the last
 * drain, /healthz fails after three intervals without a drain. The server is
 * read-only and has no other routes.
 *
 * Threads: one thread at a time.
 */
#include <stdbool.h>
#include <stdint.h>

#include "agent/uploads/uploads.h"
#include "common/error.h"
#include "sampling/profile_build.h"
#include "sampling/samplers/sampler.h"
#include "sampling/unwinding/unwinder.h"
#include "sending/sender.h"

struct agent_counters {
        enum sampler_kind sampler_kind;
        uint64_t sampler[SAMPLER_STAT_COUNT]; /* totals, like the rest */
        struct profile_build_stats build;
        struct sender_stats sender;
        struct uploads_stats uploads;
        struct pod_cache_stats pods;    /* zero without Kubernetes */
        struct unwinder_stats unwinder; /* zero without unwinding */
        uint64_t unreadable_processes, excluded_processes, too_many_mappings;
        uint64_t jit_dropped, jit_bytes;
        uint64_t python_read, python_bytes;     /* processes; memory of names */
        uint64_t python_refused[REFUSAL_COUNT]; /* processes */
        uint64_t v8_read, v8_bytes;             /* as above */
        uint64_t v8_refused[REFUSAL_COUNT];
        uint64_t hotspot_read, hotspot_bytes;
        uint64_t hotspot_refused[REFUSAL_COUNT];
        uint64_t process_contexts_read, thread_contexts_read, go_labels_read, context_bytes;
        uint64_t contexts_refused[REFUSAL_COUNT];
        bool kernel_shift_known;
};

void agent_metrics_update(const struct agent_counters *r);

/** Replace the file at path with all metrics in the Prometheus text format. */
enum status agent_metrics_write(const char *path, struct error *err) MUST_CHECK;

/** Log one line of samples counted, lost and sent. */
void agent_metrics_log(bool with_sender);

struct metrics_server;

/** @param address  "HOST:PORT"; port 0 is any free one. The address is logged. */
enum status metrics_server_start(const char *address, uint64_t interval_s, struct metrics_server **ret,
                                 struct error *err) MUST_CHECK;
void metrics_server_stop(struct metrics_server *s); /* takes NULL */

/** Restart the health timeout: a drain is done. NULL is allowed. */
void metrics_server_note_drain(struct metrics_server *s);

#endif
