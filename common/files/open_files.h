/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_FILES_OPEN_FILES_H
#define CAIRN_COMMON_FILES_OPEN_FILES_H

/**
 * @file
 * Limit of open files, for programs that need more than the usual soft limit of 1024, which exists for programs that
 * use select().
 *
 * Threads: one, before other threads depend on the limit.
 */
#include <stdint.h>

/**
 * Raise the soft limit of RLIMIT_NOFILE to `wanted`, or to the hard limit if that is less; it is never lowered.
 * @return the soft limit afterwards; 0 with errno if it cannot be read.
 */
uint64_t raise_open_files_limit(uint64_t wanted);

#endif
