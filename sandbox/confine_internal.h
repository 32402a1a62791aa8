/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SANDBOX_CONFINE_INTERNAL_H
#define CAIRN_SANDBOX_CONFINE_INTERNAL_H

/** For worker_confine(), and for tests that emulate older kernels. */
#include "sandbox/worker.h"

#define LANDLOCK_ABI_NEWEST 7

/** worker_confine() with at most this Landlock ABI; 0: none. */
enum status confine_with_landlock_abi(enum worker_needs needs, int abi_max, struct error *err) MUST_CHECK;

/** The same for worker_confine_with_files(). */
enum status confine_files_with_landlock_abi(const struct worker_files *files, int abi_max,
                                            struct error *err) MUST_CHECK;

#endif
