/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_AGENT_BENEATH_H
#define CAIRN_AGENT_BENEATH_H

/**
 * Open path (an absolute one too) as a process sees it whose root directory is
 * root_fd: symbolic links are followed inside that root only, so nobody in a
 * container can name a file of the host. O_CLOEXEC and O_NOCTTY are added.
 * @return a descriptor, owned; -1 with errno.
 * Source: openat2(2), RESOLVE_IN_ROOT.
 */
int open_beneath(int root_fd, const char *path, int flags);

#endif
