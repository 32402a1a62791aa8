/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_CONTAINERS_CONTAINER_STATE_H
#define CAIRN_SAMPLING_CONTAINERS_CONTAINER_STATE_H

/**
 * @file
 * Name, image and compose service of a container, from the files in which container engines keep their state. No socket
 * of an engine is needed.
 *
 * - Docker: DATA-ROOT/containers/ID/config.v2.json. DATA-ROOT is that of /etc/docker/daemon.json, else /var/lib/docker.
 * - Podman, CRI-O: containers.json of containers/storage, in /var/lib/containers/storage or where conmon, the
 *   container's monitor, keeps it. It has no labels, hence no compose service.
 * - containerd (Kubernetes, nerdctl): annotations of config.json in
 *   /run/containerd/io.containerd.runtime.v2.task/NAMESPACE/ID.
 *
 * Files are read below the root directory of a process, which no symbolic link leaves, after a probe that their mount
 * responds (mount_probe.h); each is at most LIMIT_CONTAINER_STATE_BYTES.
 *
 * Threads: one at a time.
 * Source: Moby, container/container.go and daemon/config; containers/storage, containers.go; CRI-O,
 * internal/storage/runtime.go; containerd, pkg/cri/annotations; Docker Compose, pkg/api/labels.go.
 */
#include <stdbool.h>
#include <stddef.h>

#include "common/limits.h"

/** Each "" when absent or longer than its buffer: a truncated name could equal another one. */
struct container_names {
        char name[256];
        char image[256]; /* without tag and digest; "" when the container was started by an image's id */
        char tag[129];   /* the longest that a registry permits */
        char compose_service[128], compose_project[128];
};

/** Parse Docker's config.v2.json. False: not JSON, or without a name. */
bool container_parse_docker(const void *json, size_t n, struct container_names *ret);

/** Find a container in containers.json of containers/storage. False: not JSON, or not in it. */
bool container_parse_storage(const void *json, size_t n, const char *id, struct container_names *ret);

/** Parse the annotations of an OCI runtime's config.json. False: not JSON, or without a name. */
bool container_parse_bundle(const void *json, size_t n, struct container_names *ret);

/**
 * Read the state of a container.
 * @param proc_fd  /proc/PID of a process with the root directory of its engine.
 * @param bundle   the directory that its monitor names, below that root; "" unknown.
 */
bool container_state_read(int proc_fd, const char *id, const char *bundle, struct container_names *ret);

#endif
