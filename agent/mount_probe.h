/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_AGENT_MOUNT_PROBE_H
#define CAIRN_AGENT_MOUNT_PROBE_H

/**
 * @file
 * Tells whether a mount answers, before the sampling thread touches a file on it.
 *
 * A file on FUSE or a network file system whose server does not answer blocks
 * each access, in a sleep that not even SIGKILL ends. A process with such a
 * thread cannot end. So another process makes the first access: a child that
 * looks up, opens and reads a page of the file as the caller would. When it
 * does not answer in LIMIT_AGENT_FILE_WAIT_MS it is abandoned, and its mount
 * is not touched for LIMIT_AGENT_MOUNT_RETRY_S. The next probe gets another
 * child; at most LIMIT_AGENT_PROBES_STUCK are left behind, and while there are
 * so many only mounts that answered before are touched.
 *
 * Answers are kept per mount, not per file, for MOUNT_PROBE_ANSWER_MS: a mount
 * that stops answering between a probe and the access, or that answers for some
 * files only, still blocks the caller.
 *
 * Threads: one at a time.
 */
#include <stdbool.h>
#include <stdint.h>

#define MOUNT_PROBE_ANSWER_MS 2000

enum mount_probe_kind {
        MOUNT_PROBE_MAPPING, /* name in the directory of a process, else path in its root, else our own path */
        MOUNT_PROBE_IN_ROOT, /* path in the root of a process */
};

/**
 * Does the mount that a file lies on answer?
 * @param key      what has one answer: a device, or mount_probe_process_key().
 * @param proc_fd  directory /proc/PID.
 * @param name     in it; "" none.
 * @param path     as the process sees it.
 * @return false when it did not answer now or in the last LIMIT_AGENT_MOUNT_RETRY_S.
 *         True also when no probe can be made for want of processes or descriptors.
 */
bool mount_probe_answers(uint64_t key, enum mount_probe_kind kind, int proc_fd, const char *name, const char *path);

/** For files of a process, whose mount is not known. @param proc_fd directory /proc/PID. */
uint64_t mount_probe_process_key(int proc_fd);

/** End the child that waits for probes, if there is one. Children that are stuck are left to the kernel. */
void mount_probe_end(void);

struct mount_probe_stats {
        uint64_t timeouts; /* probes without an answer */
        uint64_t skipped;  /* accesses that were not made, for a mount without an answer */
        uint64_t stuck;    /* children left behind that have not ended */
};
void mount_probe_get_stats(struct mount_probe_stats *ret);

#endif
