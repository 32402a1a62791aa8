/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SANDBOX_LANDLOCK_H
#define CAIRN_SANDBOX_LANDLOCK_H

/**
 * @file
 * Landlock: a second lock on files, TCP, abstract sockets and signals, under
 * the seccomp filter, as far as the kernel has it. It looks at paths and
 * ports, where a filter sees only numbers of calls.
 *
 * Threads: restricts the one that calls, and those that it starts.
 * Source: Linux, Documentation/userspace-api/landlock.rst.
 */
#include "common/error.h"
#include "sandbox/worker.h"

/** What the running kernel has: 0 nothing, 1 (Linux 5.13) files, ..., 4 TCP, 6 sockets and signals. */
int landlock_version(void);

/**
 * Without a network: no file can be opened, no TCP port used. With one: the
 * files that name resolution and certificates take can be read, nothing can be
 * written, no port can be bound. Needs no_new_privs. ST_OK where there is no Landlock.
 * @param abi_max  use what this version has, at most.
 */
enum status landlock_restrict(enum worker_needs needs, int abi_max, struct error *err) MUST_CHECK;

#endif
