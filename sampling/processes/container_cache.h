/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_PROCESSES_CONTAINER_CACHE_H
#define CAIRN_SAMPLING_PROCESSES_CONTAINER_CACHE_H

/**
 * @file
 * Names of the containers of this host, read once for each container id.
 *
 * The state of a container lies in the file system of its engine: below the root directory of the nearest ancestor of
 * the process that is outside of the container, which is its monitor (containerd-shim, conmon), else below the host's
 * root directory, /proc/1/root. So the engine may itself run in a container.
 *
 * Containers without readable state are remembered too. At most LIMIT_CONTAINER_READS states are read in a drain; a
 * process of a further container is looked up again when it is next read.
 *
 * Memory: LIMIT_CONTAINERS entries of about 900 bytes; the least recently used one makes room.
 * Threads: one at a time.
 */
#include "common/hash/lru_table.h"
#include "sampling/containers/container_state.h"

struct container_cache {
        struct lru_table entries;
        unsigned reads_left; /* in this drain */
};

enum status container_cache_init(struct container_cache *c, struct error *err) MUST_CHECK;
void container_cache_deinit(struct container_cache *c); /* also after a failed or no init */

/** A new drain. */
void container_cache_begin_drain(struct container_cache *c);

/**
 * The names of a container.
 * @param proc_fd  /proc/PID of a process in it.
 * @return false: it is a machine (systemd-nspawn, LXC), it has no readable state, or no more states may be read in this
 * drain.
 */
bool container_cache_find(struct container_cache *c, int proc_fd, const char *id, struct container_names *ret);

#endif
