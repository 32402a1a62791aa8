/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_PROCESSES_PROCESS_PYTHON_H
#define CAIRN_SAMPLING_PROCESSES_PROCESS_PYTHON_H

/**
 * @file
 * The CPython interpreter of a process of the table: finds or refuses it, and names its frames.
 *
 * Threads: one thread at a time.
 */
#include "sampling/processes/process.h"

/** Find the interpreter of a process that maps one, unless that was done before. True: the kernel has to know it. */
bool process_python_attach(struct process_table *t, struct process *p);

/** Name a frame of the interpreter. @param ret  borrowed until the process is used again. */
enum python_frame_state process_python_locate(struct process_table *t, struct process *p, uint64_t code,
                                              uint64_t detail, struct python_location *ret);

/** Close the process's memory; free names past their limit. */
void process_python_end_drain(struct process_table *t, struct process *p);

void process_python_deinit(struct process_table *t, struct process *p);

#endif
