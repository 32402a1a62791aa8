/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_OBJECTS_OPEN_IN_ROOT_H
#define CAIRN_SAMPLING_OBJECTS_OPEN_IN_ROOT_H

#include <stdbool.h>

/**
 * Open a path (absolute or relative) as seen by a process whose root directory is root_fd.
 * Symbolic links are resolved inside that root, so a container cannot name a file of the host.
 * O_CLOEXEC and O_NOCTTY are added.
 * @return a descriptor, owned; -1 with errno.
 * Source: openat2(2), RESOLVE_IN_ROOT.
 */
int open_in_root(int root_fd, const char *path, int flags);

/**
 * Open a regular file below root_fd for reading. The file type is checked before the file is
 * opened: opening a device or a FIFO may have side effects or block.
 * @param flags  O_NOFOLLOW: the last component must not be a symbolic link; or 0.
 * @return a descriptor, owned; -1 with errno, EINVAL for anything but a regular file.
 */
int open_regular_in_root(int root_fd, const char *path, int flags);

/**
 * Whether the file system has no server that may stop responding. Unknown file systems may have one. Async-signal-safe,
 * but blocks if the server does not respond.
 */
bool is_on_local_filesystem(int fd);

/** Open the regular file of an O_PATH descriptor for reading. @return as above. */
int reopen_for_reading(int path_fd);

#endif
