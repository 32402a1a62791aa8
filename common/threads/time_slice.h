/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_THREADS_TIME_SLICE_H
#define CAIRN_COMMON_THREADS_TIME_SLICE_H

/**
 * @file
 * Scheduling latency of a thread that answers short requests.
 */

/** Length of a short time slice; the minimum of Linux. */
#define SHORT_TIME_SLICE_NS 100000

/**
 * Request short time slices for the calling thread. On wakeup, Linux 6.12 and later then let it preempt a thread with
 * longer slices at once, instead of at the next tick (4 ms at 250 Hz). Its share of the CPU stays the same. Earlier
 * kernels ignore the request; it needs no privilege, and a failure has no effect. Source: sched_setattr(2);
 * Documentation/scheduler/sched-eevdf.rst.
 */
void shorten_time_slice(void);

#endif
