/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_PROCESSES_PROCESS_V8_H
#define CAIRN_SAMPLING_PROCESSES_PROCESS_V8_H

/**
 * @file
 * V8 of a process of the table: finds or refuses it, and names the frames of JavaScript functions.
 *
 * Threads: one thread at a time.
 */
#include "sampling/processes/process.h"

/** Find V8 of a process that maps it, unless that was done before. True: the kernel has to know it. */
bool process_v8_attach(struct process_table *t, struct process *p);

/** Name a frame. @param ret, count_ret  as v8_name_cache_locate(). */
enum v8_frame_state process_v8_locate(struct process_table *t, struct process *p, uint64_t shared, uint64_t position,
                                      struct v8_location *ret, uint32_t *count_ret);

/** Close the process's memory; free names past their limit. */
void process_v8_end_drain(struct process_table *t, struct process *p);

void process_v8_deinit(struct process_table *t, struct process *p);

#endif
