/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_SAMPLERS_OFF_CPU_CHECK_H
#define CAIRN_SAMPLING_SAMPLERS_OFF_CPU_CHECK_H

/**
 * @file
 * Whether the running kernel has what off-CPU samples need beside the
 * requirements of the BPF sampler.
 *
 * Threads: any.
 */
#include "common/error.h"

/** @return ST_OK; ST_UNSUPPORTED names the tracepoint that the kernel lacks; ST_OS: its types are unreadable. */
enum status off_cpu_check_kernel(struct error *err) MUST_CHECK;

#endif
