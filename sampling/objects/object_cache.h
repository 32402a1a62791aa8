/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_OBJECTS_OBJECT_CACHE_H
#define CAIRN_SAMPLING_OBJECTS_OBJECT_CACHE_H

/**
 * @file
 * Cache of mapped ELF files: each is read once for all processes.
 *
 * A file is identified by device, inode, size and modification time, so an
 * overwritten file is read again. Past LIMIT_AGENT_OBJECTS the cache is
 * emptied between two intervals.
 *
 * Threads: one thread at a time.
 */
#include <sys/types.h>

#include "common/hash/id_table.h"
#include "sampling/objects/object.h"
#include "sampling/objects/proc_maps.h"

/**
 * Called for each ELF file when it is first read, while a process has it mapped.
 * @param proc_fd  directory /proc/PID of that process.
 * @param fd       the file, open for reading; the observer takes ownership by setting it to -1.
 */
typedef void object_observer(void *ctx, const struct object *object, int proc_fd, const struct proc_mapping *mapping,
                             int *fd);

struct object_cache {
        struct id_table by_file; /* by identity of the file */
        struct id_table
                by_mapping;      /* by its line in /proc/PID/maps, for processes that exit before the file is opened */
        struct object **objects; /* owned; stable until object_cache_forget() */
        size_t count, capacity;
        struct object *vdso; /* owned; shared by all 64-bit processes */
        bool vdso_tried;
        uint64_t last_serial;
        object_observer *observer; /* NULL: none */
        void *observer_ctx;
};

void object_cache_deinit(struct object_cache *c);

/**
 * The object that backs a mapping of a process.
 *
 * The mapped file itself is opened through /proc/PID/map_files, even when it was deleted or
 * replaced; without the right to that, by its path inside the root of the process if the inode
 * matches. When the process has exited, an earlier mapping of the same device, inode and path is
 * used, or the host's file of that path, device and inode. The vDSO is read from the agent's own
 * memory. Files on a mount that does not respond (sampling/objects/mount_probe.h) are not accessed.
 * @param proc_fd  directory /proc/PID of the process.
 * @return borrowed until object_cache_forget(); NULL when it is not an ELF file or cannot be
 *         read.
 */
const struct object *object_cache_get(struct object_cache *c, int proc_fd, const struct proc_mapping *mapping);

/** Open the file that backs a mapping for reading, as object_cache_get() does; -1 when it is unavailable. */
int object_cache_open(int proc_fd, const struct proc_mapping *mapping);

/** Past the limit: the caller must drop borrowed objects and call object_cache_forget(). */
bool object_cache_is_full(const struct object_cache *c);
void object_cache_forget(struct object_cache *c);

#endif
