/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_AGENT_OBJECT_CACHE_H
#define CAIRN_AGENT_OBJECT_CACHE_H

/**
 * @file
 * ELF files that processes have mapped, each read once for all processes.
 *
 * A file is known by device, inode, size and time of last change, so one that
 * was overwritten is read again. Past LIMIT_AGENT_OBJECTS all are forgotten
 * between two intervals and read anew as they are met.
 * Threads: one thread at a time.
 */
#include <sys/types.h>

#include "agent/id_table.h"
#include "agent/object.h"
#include "agent/proc_maps.h"

/**
 * Told of each ELF file when it is first read, while a process has it mapped.
 * @param proc_fd  directory /proc/PID of that process.
 * @param fd       the file for reading; may be taken by leaving -1.
 */
typedef void object_observer(void *ctx, const struct object *object, int proc_fd, const struct proc_mapping *mapping,
                             int *fd);

struct object_cache {
        struct id_table by_file;    /* the file itself */
        struct id_table by_mapping; /* what /proc/PID/maps says of it, for processes that end meanwhile */
        struct object **objects; /* owned; never moved until object_cache_forget() */
        size_t count, capacity;
        struct object *vdso;     /* owned; the one all 64-bit processes share */
        bool vdso_tried;
        uint64_t last_serial;
        object_observer *observer; /* NULL none */
        void *observer_ctx;
};

void object_cache_deinit(struct object_cache *c);

/**
 * The object behind a mapping of a process.
 *
 * The very file that is mapped is opened through /proc/PID/map_files, also when
 * its name is gone or another file has it; without the right to that, by its
 * path inside the process's root when the inode agrees. When the process has
 * ended meanwhile, what another process's mapping of the same device, inode and
 * path was serves, or the agent's own file of that path, device and inode. The
 * vDSO is read from the agent's own memory.
 * A file on a mount that does not answer (agent/mount_probe.h) is not touched.
 * @param proc_fd  directory /proc/PID of the process.
 * @return borrowed until object_cache_forget(); NULL when it is no ELF file,
 *         cannot be read any more, or its mount does not answer now.
 */
const struct object *object_cache_get(struct object_cache *c, int proc_fd, const struct proc_mapping *mapping);

/** Open the file behind a mapping for reading, as object_cache_get() finds it; -1 when it cannot be had any more. */
int object_cache_open(int proc_fd, const struct proc_mapping *mapping);

/** Too many objects? Then the caller drops what it borrowed and calls object_cache_forget(). */
bool object_cache_is_full(const struct object_cache *c);
void object_cache_forget(struct object_cache *c);

#endif
