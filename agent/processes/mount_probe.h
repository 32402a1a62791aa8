/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_AGENT_PROCESSES_MOUNT_PROBE_H
#define CAIRN_AGENT_PROCESSES_MOUNT_PROBE_H

/**
 * @file
 * Probes whether a mount responds before the sampling thread accesses a
 * file on it.
 *
 * Access to a file on FUSE or a network file system whose server does not
 * respond blocks in an uninterruptible sleep that even SIGKILL does not end,
 * and a process with such a thread cannot exit. So a child process makes the
 * first access: it looks up, opens and reads a page of the file as the caller
 * would. If it does not finish within LIMIT_AGENT_FILE_WAIT_MS it is
 * abandoned, and its mount is not accessed for LIMIT_AGENT_MOUNT_RETRY_S. The
 * next probe starts another child; at most LIMIT_AGENT_PROBES_STUCK are left
 * behind, and while there are that many only mounts that responded before are
 * accessed.
 *
 * Results are cached per mount, not per file, for MOUNT_PROBE_ANSWER_MS: a
 * mount that stops responding between probe and access, or that responds for
 * some files only, still blocks the caller.
 *
 * Threads: one at a time.
 */
#include <stdbool.h>
#include <stdint.h>

#define MOUNT_PROBE_ANSWER_MS 2000

enum mount_probe_kind {
        MOUNT_PROBE_MAPPING, /* name in a process's directory, else path in its root, else the same path on the host */
        MOUNT_PROBE_IN_ROOT, /* path in the root of a process */
};

/**
 * Does the mount of a file respond?
 * @param key      identifies the mount: a device, or mount_probe_make_key().
 * @param proc_fd  directory /proc/PID.
 * @param name     in that directory; "" none.
 * @param path     as the process sees it.
 * @return false when it did not respond now or in the last LIMIT_AGENT_MOUNT_RETRY_S. True also
 *         when no probe can be made for lack of processes or descriptors.
 */
bool mount_probe_is_responsive(uint64_t key, enum mount_probe_kind kind, int proc_fd, const char *name,
                               const char *path);

/** Key for files of a process whose mount is unknown. @param proc_fd  directory /proc/PID. */
uint64_t mount_probe_make_key(int proc_fd);

/** Stop the child that waits for probes, if any. Stuck children are left to the kernel. */
void mount_probe_end(void);

struct mount_probe_stats {
        uint64_t timeouts; /* probes that timed out */
        uint64_t skipped;  /* accesses skipped because the mount does not respond */
        uint64_t stuck;    /* abandoned children that still exist */
};
void mount_probe_get_stats(struct mount_probe_stats *ret);

#endif
