/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SANDBOX_WORKER_USER_H
#define CAIRN_SANDBOX_WORKER_USER_H

/**
 * @file
 * The user that workers of a root process run as.
 *
 * A worker that shares its uid with other processes could signal and trace them wherever neither the seccomp filter nor
 * Landlock prevents it. So a worker started by root drops its groups, uid and capabilities before it runs: its uid owns
 * no file and no other process. A process that is not root cannot change its uid; its workers only drop capabilities.
 *
 * The default uid needs no account. It lies in 60706 to 61183, which neither Debian nor systemd assigns, and below
 * 65536, so it also exists in containers whose user namespace maps no more than that.
 *
 * Threads: worker_user_choose() before the first worker; the others any.
 * Source: credentials(7); systemd, docs/UIDS-GIDS.md; Debian policy, 9.2.2.
 */
#include <stdbool.h>
#include <sys/types.h>

#include "common/error.h"

#define WORKER_USER_DEFAULT 61111

/**
 * Choose the user of this process's workers and try, in a child, whether they can become it.
 *
 * @param user  account name or uid; NULL: WORKER_USER_DEFAULT, without an effect when not root.
 * @return ST_OK; ST_USAGE when user is unknown or 0, or this process is not
 *         root; ST_UNSUPPORTED when the uid cannot be changed here (no
 *         CAP_SETUID, or a user namespace without that uid): a chosen user
 *         then makes every worker fail, the default leaves workers with
 *         this process's uid.
 * Threads: forks; call while there is one.
 */
enum status worker_user_choose(const char *user, struct error *err) MUST_CHECK;

/**
 * In the child: change to that user, without groups and capabilities. Makes system calls only. Clears the parent-death
 * signal when the uid changes.
 * @return false when a chosen user is not available.
 */
bool worker_user_become(void);

/** Drop all capabilities, including those inherited by exec. Makes system calls only. */
void worker_user_drop_capabilities(void);

/** The uid of this process's workers, as far as known. */
uid_t worker_user_uid(void);

#endif
