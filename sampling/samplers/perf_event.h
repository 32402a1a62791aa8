/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_SAMPLERS_PERF_EVENT_H
#define CAIRN_SAMPLING_SAMPLERS_PERF_EVENT_H

/**
 * @file
 * Opens clock events of threads and the per-CPU ring buffers they write
 * to, with the least privileges that the kernel accepts.
 *
 * A thread gets one event per CPU, because only such events may be inherited
 * and write to a shared buffer; children and threads started later inherit
 * them. The buffers belong to dummy events of the agent itself, so they
 * outlive every process. Events of threads survive a CPU going offline and may
 * be opened for an offline CPU: they count once it is online.
 *
 * Threads: one thread at a time.
 * Source: perf_event_open(2); kernel/events/core.c.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/error.h"
#include "common/limits.h"
#include "sampling/samplers/perf_ring.h"

struct perf_cpu {
        int cpu, fd;   /* the event that owns the buffer */
        void *mapping; /* owned */
        size_t mapping_bytes;
        struct perf_ring ring;
};

struct perf_events {
        uint64_t frequency_hz;
        bool stacks;           /* samples carry a copy of the user stack and registers instead of a user call chain */
        bool kernel;           /* kernel time is sampled too, with kernel stacks */
        struct perf_cpu *cpus; /* owned; includes offline CPUs */
        size_t cpu_count;
        size_t open_max; /* limit on open events */
        size_t open_count;
};

#define PERF_EVENT_STACK_BYTES KiB(16) /* copied from a user stack */

/**
 * Determine what is permitted, and create the buffers.
 * @param ret  owned, free with perf_events_deinit(); untouched on failure.
 * @return ST_OK; ST_OS with the missing right and how to grant it.
 */
enum status perf_events_init(uint64_t frequency_hz, bool stacks, struct perf_events *ret, struct error *err) MUST_CHECK;
void perf_events_deinit(struct perf_events *e);

/**
 * Sample a thread and everything it starts.
 * @param fds_ret  cpu_count descriptors, to be closed with perf_events_close().
 * @return ST_OK; ST_NOT_FOUND when the thread has exited; ST_BUSY at open_max; ST_OS when not
 *         permitted.
 */
enum status perf_events_open(struct perf_events *e, pid_t tid, int *fds_ret, struct error *err) MUST_CHECK;
void perf_events_close(struct perf_events *e, int fd);

#endif
