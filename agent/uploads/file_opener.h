/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_AGENT_UPLOADS_FILE_OPENER_H
#define CAIRN_AGENT_UPLOADS_FILE_OPENER_H

/**
 * @file
 * Opens files below the root of a process, in a child process with a deadline.
 *
 * A lookup, read or even close on a mount whose server does not respond (FUSE, NFS) blocks in an uninterruptible sleep,
 * and a process with such a thread cannot exit (sampling/objects/mount_probe.h). So the upload thread never accesses a
 * file on a mount that may have a server: the child opens it; if its file system is local, the descriptor is passed
 * back, else the child copies the content to a temporary file. A child that makes no progress for
 * LIMIT_AGENT_FILE_WAIT_MS is abandoned, and no file of that directory is opened for FILE_OPENER_RETRY_S. At most
 * LIMIT_AGENT_PROBES_STUCK abandoned children may exist; at that limit no file is opened.
 *
 * Threads: one at a time.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/limits.h"

#define FILE_OPENER_RETRY_S 600
#define FILE_OPENER_SILENT 32 /* directories that are remembered */

struct file_opener {
        const char *temporary;   /* directory for copies; NULL: $TMPDIR, /var/tmp or /tmp. Borrowed */
        const atomic_bool *stop; /* true: give up. Borrowed */
        pid_t child;             /* 0: none */
        int socket;
        pid_t stuck[LIMIT_AGENT_PROBES_STUCK];
        size_t stuck_count;
        struct silent_directory {
                uint64_t key;
                int64_t until_ns; /* 0: free */
        } silent[FILE_OPENER_SILENT];
};

enum open_end {
        OPEN_DONE,
        OPEN_MISSING, /* it does not exist, is not a regular file, is too large to be copied, execute-only, or cannot be
                       read */
        OPEN_SKIPPED, /* it does not respond, or cannot be opened now for another reason */
};

/**
 * Whether somebody may execute the file and not read it, such as an executable of mode 711: whoever can see symbols at
 * the service would learn what its owner hides from its users. Async-signal-safe.
 */
bool file_is_execute_only(int fd);

/**
 * Open a regular file for reading, unless it is execute-only.
 * @param root_fd    root directory; links are resolved inside of it.
 * @param max_bytes  of a copy.
 * @param fd_ret     owned; a local file, so accesses return.
 */
enum open_end file_opener_open(struct file_opener *o, int root_fd, const char *path, uint64_t max_bytes, int *fd_ret);

/** Open a temporary file as for a copy; -1: errno. */
int file_opener_create_temporary(const struct file_opener *o);

/** End the child. Stuck children are left to the kernel. */
void file_opener_end(struct file_opener *o);

#endif
