/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_SAMPLERS_TRACEPOINT_CHECK_H
#define CAIRN_SAMPLING_SAMPLERS_TRACEPOINT_CHECK_H

/**
 * @file
 * Whether the running kernel has what off-CPU samples and latency need beside the requirements of the BPF sampler:
 * tracepoints, and the time that threads spent in run queues.
 *
 * @return ST_OK; ST_UNSUPPORTED names what the kernel lacks; ST_OS: its types are unreadable.
 * Threads: any.
 */
#include "common/error.h"

enum status off_cpu_check_kernel(struct error *err) MUST_CHECK;
enum status latency_check_kernel(struct error *err) MUST_CHECK;

#endif
