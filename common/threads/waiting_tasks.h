/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_THREADS_WAITING_TASKS_H
#define CAIRN_COMMON_THREADS_WAITING_TASKS_H

/**
 * @file
 * Tasks that wait for a network, done at once: they need threads, not CPUs (common/threads/work_threads.h).
 */
#include <stddef.h>

#define WAITING_THREADS_MAX 32  /* per call */
#define WAITING_HELPERS_MAX 128 /* helper threads in the process; with more calls, threads do several tasks each */

/** Do task number `index`. Any thread. */
typedef void waiting_task(void *context, size_t index);

/**
 * Do the tasks 0 to count - 1, each once, and wait for all. The calling thread does some of them, or all when no helper
 * can be started. Helpers reserve memory for the account of the calling thread.
 */
void do_waiting_tasks(size_t count, waiting_task *task, void *context);

#endif
