/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_CONTAINERS_CGROUP_H
#define CAIRN_SAMPLING_CONTAINERS_CGROUP_H

/**
 * @file
 * Container, pod and systemd unit of a process, parsed from
 * /proc/PID/cgroup.
 *
 * - Container id: the last 64 hexadecimal digits that form a word in a path
 *   element: "docker-ID.scope", "cri-containerd-ID.scope", "crio-ID",
 *   "libpod-ID.scope", "...slice:cri-containerd:ID" or the digits alone.
 *   On Fargate the element below "ecs/TASK" that has 32 digits, a dash and a
 *   number; of Cloud Foundry's Garden the element below "garden" that has
 *   groups of 8, 4, 4, 4 and 4 digits.
 *   "crio-conmon-ID" and "libpod-conmon-ID" are the container monitors, which
 *   run outside the container. systemd-nspawn and LXC containers have no id;
 *   their machine name is used.
 * - Pod UID: the text after "pod": with dashes (cgroupfs driver), with
 *   underscores in a slice name (systemd driver), or 32 digits, the hash of a
 *   static pod's manifest.
 * - Unit and slice: the last systemd unit that is not a container scope, and
 *   the last slice that is not a pod's.
 *
 * Of several hierarchies, the path of cgroup v2 is used, else that of
 * systemd's own hierarchy, else the longest path.
 *
 * Source: cgroups(7); systemd CGROUP_DELEGATION.md; runc, Podman, the
 * kubelet's cgroup managers; Amazon ECS, task metadata version 4; Garden, Guardian.
 */
#include <stddef.h>

#define CGROUP_PATH_SIZE 1024
#define CGROUP_CONTAINER_SIZE 65
#define CGROUP_POD_SIZE 37
#define CGROUP_UNIT_SIZE 256

/** Each "" when absent or longer than its buffer: a truncated name could equal another one. */
struct cgroup_names {
        char path[CGROUP_PATH_SIZE]; /* without a leading "/.."; "" for the root */
        char container[CGROUP_CONTAINER_SIZE];
        char pod[CGROUP_POD_SIZE]; /* with dashes, except for a static pod */
        char unit[CGROUP_UNIT_SIZE];
        char slice[CGROUP_UNIT_SIZE];
};

void cgroup_parse(const char *text, size_t n, struct cgroup_names *ret);

#endif
