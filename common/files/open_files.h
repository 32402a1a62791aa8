/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_FILES_OPEN_FILES_H
#define CAIRN_COMMON_FILES_OPEN_FILES_H

/**
 * @file
 * Limit of open files, for programs that need more than the usual soft limit of 1024, which exists for programs that
 * use select().
 *
 * Threads: raise_open_files_limit() one, before other threads depend on the limit; else any.
 */
#include <stdbool.h>
#include <stdint.h>

/**
 * Raise the soft limit of RLIMIT_NOFILE to `wanted`, or to the hard limit if that is less; it is never lowered.
 * @return the soft limit afterwards; 0 with errno if it cannot be read.
 */
uint64_t raise_open_files_limit(uint64_t wanted);

/**
 * Whether a system call failed since the process or the host has no descriptor or process left. That passes, and says
 * nothing about the request that needed one.
 */
bool open_files_is_shortage(int os_errno);

#endif
