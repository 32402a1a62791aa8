/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SANDBOX_MOUNT_NAMESPACE_H
#define CAIRN_SANDBOX_MOUNT_NAMESPACE_H

/**
 * @file
 * A minimal file system for a worker with network, for kernels without Landlock: a user namespace and a mount namespace
 * whose root contains only the files of the resolver and certificates. The user namespace also prevents the worker from
 * tracing processes of its uid and from reading their memory under /proc.
 *
 * Threads: call while the process has only one.
 * Source: user_namespaces(7), mount_namespaces(7), pivot_root(2).
 */
#include <stdbool.h>

struct worker_files;

/**
 * Enter the namespaces. Irreversible.
 * @param files  additional files (sandbox/worker.h), with one writable directory; everything else is then mounted
 *          read-only. May be NULL.
 * @return false if the kernel or its configuration forbids it; access to files is then unchanged.
 */
bool mount_namespace_enter(const struct worker_files *files);

/** Paths that libcurl, GnuTLS and glibc's resolver read; ends with NULL. */
extern const char *const network_worker_paths[];

#endif
