/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SANDBOX_LANDLOCK_H
#define CAIRN_SANDBOX_LANDLOCK_H

/**
 * @file
 * Landlock, a second layer in addition to the seccomp filter: files, TCP ports, abstract sockets and signals, as far as
 * the kernel supports it. It restricts paths and ports, where a seccomp filter sees only system call numbers and
 * register values.
 *
 * Threads: restricts the calling thread and threads that it starts.
 * Source: Linux, Documentation/userspace-api/landlock.rst.
 */
#include "common/error.h"
#include "sandbox/worker.h"

/** The Landlock ABI of the running kernel: 0 none, 1 (Linux 5.13) files, ..., 4 TCP, 6 sockets and signals. */
int landlock_version(void);

/**
 * Without network: no file can be opened and no TCP port used. With network: the files for name resolution and
 * certificates can be read, nothing can be written, no port can be bound. Requires no_new_privs. ST_OK on a kernel
 * without Landlock.
 * @param files    further files of a worker with network; NULL: none.
 * @param abi_max  the highest ABI version to use.
 */
enum status landlock_restrict(enum worker_needs needs, const struct worker_files *files, int abi_max,
                              struct error *err) MUST_CHECK;

#endif
