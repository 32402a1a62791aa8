/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_OBJECTS_MOUNT_PROBE_H
#define CAIRN_SAMPLING_OBJECTS_MOUNT_PROBE_H

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
 * abandoned, and its file is not accessed for MOUNT_PROBE_FILE_RETRY_S. Unless
 * another file of the mount responded before, or when a second one does not,
 * no file of the mount is accessed for LIMIT_AGENT_MOUNT_RETRY_S. The next
 * probe starts another child. At most LIMIT_AGENT_PROBES_STUCK abandoned
 * children may exist; at that limit only local mounts that responded before
 * are accessed.
 *
 * A file is probed itself when it is opened for the first time, and before each
 * access when its file system is not known to be local. Otherwise a response
 * of the mount within the last MOUNT_PROBE_ANSWER_MS is enough. Limitations:
 * a mount that stops responding between a probe and the access right after it
 * blocks the caller, and so does an overlay of a network file system within
 * MOUNT_PROBE_ANSWER_MS.
 *
 * Threads: one at a time.
 */
#include <stdbool.h>
#include <stdint.h>

#define MOUNT_PROBE_ANSWER_MS 2000
#define MOUNT_PROBE_FILE_RETRY_S 600

enum mount_probe_kind {
        MOUNT_PROBE_MAPPING, /* name in a process's directory, else path in its root, else the same path on the host */
        MOUNT_PROBE_IN_ROOT, /* path in the root of a process */
};

struct mount_probe_file {
        uint64_t mount; /* identifies the mount: a device, or mount_probe_make_key() */
        uint64_t file;  /* identifies the file on the mount; 0: the key in mount identifies the file already */
        enum mount_probe_kind kind;
        int proc_fd;      /* directory /proc/PID */
        const char *name; /* in that directory; "": none */
        const char *path; /* as the process sees it */
        bool opens;       /* the caller opens the file next, so a response of the mount is not enough */
};

/**
 * Whether the file can be accessed without blocking.
 * @return false when the mount does not respond, or did not within the last LIMIT_AGENT_MOUNT_RETRY_S; likewise for
 *         the file within the last MOUNT_PROBE_FILE_RETRY_S. True also when no probe can be made for lack of processes
 *         or descriptors.
 */
bool mount_probe_is_responsive(const struct mount_probe_file *file);

/** Whether the mount is known to have no server; false also when it was not probed lately. */
bool mount_probe_is_local(uint64_t mount);

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
