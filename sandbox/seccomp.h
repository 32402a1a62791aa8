/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SANDBOX_SECCOMP_H
#define CAIRN_SANDBOX_SECCOMP_H

/**
 * @file
 * The system call filter of a worker. Source: seccomp(2), seccomp_rule_add(3).
 */
#include <stdbool.h>

#include "common/error.h"
#include "sandbox/worker.h"

/**
 * Restrict the calling process to the system calls that its needs allow. Call it after the last fork.
 * @param with_files  the worker may change files (worker_confine_with_files()).
 */
enum status seccomp_restrict(enum worker_needs needs, bool with_files, struct error *err) MUST_CHECK;

#endif
