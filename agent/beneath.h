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

/**
 * Open a regular file below root_fd, as open_beneath() finds it, for reading.
 * The file is looked at before it is opened: to open a device or a pipe may do something, or wait.
 * @param flags  O_NOFOLLOW, so that the last name may not be a link; or 0.
 * @return a descriptor, owned; -1 with errno, EINVAL for what is not a regular file.
 */
int open_regular_beneath(int root_fd, const char *path, int flags);

/** Open for reading what path_fd, made with O_PATH and seen to be a regular file, is. @return as above. */
int reopen_for_reading(int path_fd);

#endif
