/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_TIME_SLICE_H
#define CAIRN_COMMON_TIME_SLICE_H

/**
 * @file
 * Scheduling latency of a thread that answers short requests.
 */

/** The length of a short time slice; the least that Linux takes. */
#define SHORT_TIME_SLICE_NS 100000

/**
 * Ask for short time slices for the calling thread. When it wakes, Linux 6.12 and later let it preempt a thread with
 * longer slices at once; without them that thread may run on until the next tick (4 ms at 250 Hz). The thread's share
 * of the CPU stays the same. Earlier kernels ignore it; it needs no privilege, and a failure changes nothing. Source:
 * sched_setattr(2); Documentation/scheduler/sched-eevdf.rst.
 */
void shorten_time_slice(void);

#endif
