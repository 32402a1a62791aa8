/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SANDBOX_PRIVATE_FILES_H
#define CAIRN_SANDBOX_PRIVATE_FILES_H

/**
 * @file
 * A file system for the worker with a network where Landlock is missing: a user
 * namespace and a mount namespace whose root has the resolver's files and
 * certificates, and nothing else. The user namespace also keeps the worker from
 * tracing processes of its uid and from reading their memory under /proc.
 *
 * Threads: call while there is one.
 * Source: user_namespaces(7), mount_namespaces(7), pivot_root(2).
 */
#include <stdbool.h>

/**
 * Enter it. Changes the process for good.
 * @return false where the kernel or its configuration forbids it: then files stay as they were.
 */
bool private_files_enter(void);

/** Paths that libcurl, GnuTLS and glibc's resolver read; ends with NULL. */
extern const char *const network_worker_paths[];

#endif
