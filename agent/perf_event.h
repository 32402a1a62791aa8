/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_AGENT_PERF_EVENT_H
#define CAIRN_AGENT_PERF_EVENT_H

/**
 * @file
 * Opening clock events of threads, and the ring buffer of each CPU that they
 * write to, with no more rights than the kernel asks for.
 *
 * A thread gets one event for each CPU, because only those may be inherited
 * and written to a shared buffer; all children and threads that it starts
 * later have them too. The buffers belong to events of the agent itself that
 * count nothing, so they outlive every process. Events of threads outlive a CPU
 * that goes away, and may be opened for one that is away: they count when it
 * is there.
 *
 * Threads: one thread at a time.
 * Source: perf_event_open(2); kernel/events/core.c.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/perf_ring.h"
#include "common/error.h"
#include "common/limits.h"

struct perf_cpu {
        int cpu, fd;          /* the event that owns the buffer */
        void *mapping;        /* owned */
        size_t mapping_bytes;
        struct perf_ring ring;
};

struct perf_events {
        uint64_t frequency_hz;
        bool stacks;          /* samples have a copy of the user stack and of the registers, and no user call chain */
        bool kernel;          /* time in the kernel is sampled too, with its stacks */
        struct perf_cpu *cpus; /* owned; also those that are offline now */
        size_t cpu_count;
        size_t open_max;      /* events that may be open at one time */
        size_t open_count;
};

#define PERF_EVENT_STACK_BYTES KiB(16) /* copied of a user stack */

/**
 * Find out what is allowed, and make the buffers.
 * @param ret  owned, free with perf_events_deinit(); untouched on failure.
 * @return ST_OK; ST_OS with what is missing and how to mend it.
 */
enum status perf_events_init(uint64_t frequency_hz, bool stacks, struct perf_events *ret, struct error *err) MUST_CHECK;
void perf_events_deinit(struct perf_events *e);

/**
 * Sample a thread and what it will start.
 * @param fds_ret  cpu_count descriptors, each the caller's, to close with perf_events_close().
 * @return ST_OK; ST_NOT_FOUND when it has ended; ST_BUSY when open_max is reached;
 *         ST_OS when it is not allowed.
 */
enum status perf_events_open(struct perf_events *e, pid_t tid, int *fds_ret, struct error *err) MUST_CHECK;
void perf_events_close(struct perf_events *e, int fd);

#endif
