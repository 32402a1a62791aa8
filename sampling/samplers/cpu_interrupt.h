/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_SAMPLERS_CPU_INTERRUPT_H
#define CAIRN_SAMPLING_SAMPLERS_CPU_INTERRUPT_H

/**
 * @file
 * A perf event of one CPU that interrupts this CPU when a BPF program writes
 * to it: its buffer has no reader and overwrites itself, and each record
 * requests the notification of readers, which is an interrupt (bpf/off_cpu.h).
 *
 * Threads: one thread at a time.
 * Source: perf_event_open(2), wakeup_events, mapping read-only;
 * kernel/events/ring_buffer.c, perf_output_put_handle().
 */
#include "common/error.h"

struct cpu_interrupt {
        int event;     /* -1: none */
        void *mapping; /* owned */
};

/**
 * Open the event of a CPU and store it in a map of perf events.
 * @param ret  cpu_interrupt_close(); untouched on failure.
 * @return ST_OK; ST_NOT_FOUND when the CPU is offline; ST_OS.
 */
enum status cpu_interrupt_open(int cpu, int map_fd, struct cpu_interrupt *ret, struct error *err) MUST_CHECK;
void cpu_interrupt_close(struct cpu_interrupt *i);

#endif
