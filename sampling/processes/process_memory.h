/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_PROCESSES_PROCESS_MEMORY_H
#define CAIRN_SAMPLING_PROCESSES_PROCESS_MEMORY_H

/** @file Reads the memory of a process. Threads: any. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/sample.h"

/** Open /proc/PID/mem. -1 with errno: the process exited, or may not be read. */
int process_memory_open(const struct sample_process *id);

/** Whether the process has ended, so that memory opened before has no contents. */
bool process_memory_is_gone(const struct sample_process *id);

/** A process_memory_fn. @param fd  an int: of process_memory_open(). */
bool process_memory_read(void *fd, uint64_t addr, void *to, size_t n);

#endif
