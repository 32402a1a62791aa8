/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_PROCESSES_PROCESS_HOTSPOT_H
#define CAIRN_SAMPLING_PROCESSES_PROCESS_HOTSPOT_H

/**
 * @file
 * HotSpot of a process of the table: finds or refuses it, and names the frames of Java methods.
 *
 * Threads: one thread at a time.
 */
#include "sampling/processes/process.h"

/** Find HotSpot of a process that maps it, unless that was done before. True: the kernel has to know it. */
bool process_hotspot_attach(struct process_table *t, struct process *p);

/** Name a frame. @param ret, count_ret  as hotspot_name_cache_locate(). */
enum hotspot_frame_state process_hotspot_locate(struct process_table *t, struct process *p, uint64_t address,
                                                uint64_t position, struct hotspot_location *ret, uint32_t *count_ret);

/** Close the process's memory; free names past their limit. */
void process_hotspot_end_drain(struct process_table *t, struct process *p);

void process_hotspot_deinit(struct process_table *t, struct process *p);

#endif
