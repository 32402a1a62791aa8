/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_AGENT_CGROUP_H
#define CAIRN_AGENT_CGROUP_H

/**
 * @file
 * Which container and which systemd unit a process belongs to, from the text
 * of /proc/PID/cgroup.
 *
 * A container's id is the last 64 hexadecimal digits that stand alone in a path
 * element, as Docker, containerd, CRI-O and Podman name their cgroups; the unit
 * is the last element that ends in ".service" or ".scope" and is not a
 * container's scope.
 * Source: cgroups(7); OCI runtimes' cgroup paths.
 */
#include <stddef.h>

#define CGROUP_CONTAINER_SIZE 65
#define CGROUP_UNIT_SIZE 256

struct cgroup_names {
        char container[CGROUP_CONTAINER_SIZE]; /* "" when none */
        char unit[CGROUP_UNIT_SIZE];           /* "" when none */
};

void cgroup_parse(const char *text, size_t n, struct cgroup_names *ret);

#endif
