/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SANDBOX_WORKER_USER_H
#define CAIRN_SANDBOX_WORKER_USER_H

/**
 * @file
 * User of the workers of a root process.
 *
 * A worker that shares its uid with other processes could signal and trace them wherever neither the seccomp filter nor
 * Landlock prevents it. So a worker started by root drops its groups, uid and capabilities before it runs: its uid owns
 * no file and no other process. A process that is not root cannot change its uid; its workers only drop capabilities.
 *
 * The default uid needs no account. It lies in 60706 to 61183, which neither Debian nor systemd assigns, and below
 * 65536, so it also exists in containers whose user namespace maps only these.
 *
 * Threads: worker_user_choose() before the first worker; other functions any.
 * Source: credentials(7); systemd, docs/UIDS-GIDS.md; Debian policy, 9.2.2.
 */
#include <stdbool.h>
#include <sys/types.h>

#include "common/error.h"

#define WORKER_USER_DEFAULT 61111

/**
 * Choose the user of this process's workers, and test in a child whether they can switch to it.
 *
 * @param user  account name or uid; NULL: WORKER_USER_DEFAULT, without effect if not root.
 * @return ST_OK; ST_USAGE if user is unknown or 0, or this process is not root; ST_UNSUPPORTED if the process cannot
 *         change its uid (no CAP_SETUID, or a user namespace without that uid): with a configured user every worker
 *         then fails, with the default they keep this process's uid.
 * Threads: forks; call while there is only one.
 */
enum status worker_user_choose(const char *user, struct error *err) MUST_CHECK;

/**
 * In the child: switch to that user, without groups and capabilities. Makes system calls only. Clears the parent-death
 * signal when the uid changes.
 * @return false if a configured user is not available.
 */
bool worker_user_become(void);

/** Drop all capabilities, including those inherited by exec. Makes system calls only. */
void worker_user_drop_capabilities(void);

/** The uid of this process's workers, if known. */
uid_t worker_user_uid(void);

#endif
