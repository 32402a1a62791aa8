/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_PROCESSES_PROCESS_REQUEST_H
#define CAIRN_SAMPLING_PROCESSES_PROCESS_REQUEST_H

/** @file The contexts that a process and its threads publish, and labels of Go: the agent's side. Threads: as
 * process.h. */
#include "sampling/processes/process.h"

/**
 * Read the context of the process, if it has one, once per drain; on later calls only if it was replaced. Its labels
 * are p->request.context.
 */
void process_request_refresh(struct process_table *t, struct process *p);

/**
 * If the threads of the process publish contexts, or it is a Go program, find where, and write that for the kernel.
 * @return whether the kernel must be told of the new p->unwind.context_number.
 */
bool process_request_attach(struct process_table *t, struct process *p);

/** Whether its threads may publish contexts, but where is not known yet: the mappings are reread until it is. */
bool process_request_waits(const struct process *p);

/** Count an attempt of a process that waits. */
void process_request_note_attempt(struct process *p);

void process_request_deinit(struct process_table *t, struct process *p);

#endif
