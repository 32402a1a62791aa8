/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_AGENT_CGROUP_H
#define CAIRN_AGENT_CGROUP_H

/**
 * @file
 * Which container, pod and systemd unit a process belongs to, from the text of
 * /proc/PID/cgroup.
 *
 * - A container's id is the last 64 hexadecimal digits that stand alone in an
 *   element of the path: "docker-ID.scope", "cri-containerd-ID.scope",
 *   "crio-ID", "libpod-ID.scope", "...slice:cri-containerd:ID" or the bare
 *   digits. "crio-conmon-ID" and "libpod-conmon-ID" are the containers'
 *   keepers, which run outside. Machines of systemd-nspawn and LXC have no such
 *   number; their name is taken.
 * - A pod's UID follows "pod": with dashes (cgroupfs driver), with underscores
 *   in a slice's name (systemd driver), or as 32 digits, which is the hash of a
 *   static pod's manifest.
 * - Unit and slice are systemd's: the last unit that is no container's scope,
 *   and the last slice that is no pod's.
 *
 * The path that stands for all is that of cgroup v2 or else of systemd's own
 * hierarchy, or else the longest.
 * Source: cgroups(7); systemd's CGROUP_DELEGATION.md; runc, Podman, the
 * kubelet's cgroup managers.
 */
#include <stddef.h>

#define CGROUP_PATH_SIZE 1024
#define CGROUP_CONTAINER_SIZE 65
#define CGROUP_POD_SIZE 37
#define CGROUP_UNIT_SIZE 256

/** Each "" when there is none, or when it is longer than its room: half a name would be another's. */
struct cgroup_names {
        char path[CGROUP_PATH_SIZE];           /* without a leading "/.."; "" for the root */
        char container[CGROUP_CONTAINER_SIZE];
        char pod[CGROUP_POD_SIZE];             /* with dashes, but for a static pod's */
        char unit[CGROUP_UNIT_SIZE];
        char slice[CGROUP_UNIT_SIZE];
};

void cgroup_parse(const char *text, size_t n, struct cgroup_names *ret);

#endif
