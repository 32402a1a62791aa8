/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_CONTAINERS_POD_LIST_H
#define CAIRN_SAMPLING_CONTAINERS_POD_LIST_H

/**
 * @file
 * A list of pods, parsed from the JSON of the Kubernetes API (a PodList), indexed by container id and pod UID.
 *
 * The text is scanned in one pass without a tree. Unknown members are skipped; a member of an unexpected type counts as
 * absent. A pod outlives its list while it is referenced: a process keeps the labels of a pod that was deleted.
 *
 * - Deployment: the name of the owning ReplicaSet without the hash of its pod template: the pod's label
 *   pod-template-hash, or else a suffix that looks like one.
 * - CronJob: the name of the owning Job without its suffix, the scheduled time in minutes.
 * - App: the pod's label app.kubernetes.io/name, else app, else k8s-app.
 * - A static pod has two UIDs: its mirror's, and the hash of its manifest, which its cgroups are named after. It is
 * found by both.
 * - The id of a container's previous run is indexed too.
 *
 * Threads: a list belongs to one thread at a time; references of pods may be taken and released by any.
 * Source: Kubernetes API reference 1.34: PodList, ObjectMeta, PodStatus; apimachinery, util/rand (hash alphabet).
 */
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "common/cleanup.h"
#include "common/error.h"

enum pod_text {
        POD_NAMESPACE,
        POD_NAME,
        POD_UID,
        POD_STATIC_HASH, /* of a static pod's manifest */
        POD_NODE,
        POD_OWNER_KIND, /* of the controller */
        POD_OWNER_NAME,
        POD_DEPLOYMENT,
        POD_APP,
        POD_TEXT_COUNT,
};

struct pod_label {
        uint32_t key, value; /* for pod_get_text() */
};

struct pod_container {
        uint32_t id, name;
};

/** Immutable while shared. */
struct pod {
        atomic_uint references;
        char *texts; /* owned; begins with "" */
        uint32_t fields[POD_TEXT_COUNT];
        struct pod_label *labels; /* owned */
        size_t label_count, label_capacity;
        struct pod_container *containers; /* owned */
        size_t container_count, container_capacity;
};

/** Borrowed until the pod is released; "" when absent. */
const char *pod_get_text(const struct pod *pod, uint32_t offset);
const char *pod_get_field(const struct pod *pod, enum pod_text field);

/**
 * The name of the workload that controls the pod, "" if it is not of that kind ("StatefulSet", "Job", "CronJob", ...).
 * @param buffer  storage of a name that is not a text of the pod.
 */
const char *pod_get_workload(const struct pod *pod, const char *kind, char *buffer, size_t size);

struct pod *pod_acquire(struct pod *pod); /* returns pod */
void pod_release(struct pod *pod);        /* takes NULL */

/** A pod and one of its containers. */
struct pod_match {
        struct pod *pod;       /* NULL: none */
        const char *container; /* its name, borrowed from the pod; "" unknown */
};

struct pod_key {
        const char *id;          /* of a container, or a UID; borrowed from the pod */
        uint32_t pod, container; /* container: number + 1; 0: the key is a UID */
};

struct pod_list {
        struct pod **pods; /* owned references */
        size_t count, capacity;
        struct pod_key *keys; /* owned, sorted by id */
        size_t key_count, key_capacity;
        size_t left_out; /* pods past LIMIT_KUBERNETES_PODS or LIMIT_KUBERNETES_POD_BYTES, or without a UID */
};

void pod_list_deinit(struct pod_list *l);
#define _cleanup_pod_list_ _cleanup_(pod_list_deinit)

/**
 * Parse the JSON of a PodList.
 * @param ret  untouched on failure.
 * @return ST_OK; ST_BAD_DATA: not JSON, or not a list of pods; ST_NO_MEMORY.
 */
enum status pod_list_parse(const void *json, size_t n, struct pod_list *ret, struct error *err) MUST_CHECK;

/** The pod of a container id, or else of a UID. Both may be "". @return borrowed from the list; pod NULL: unknown. */
struct pod_match pod_list_find(const struct pod_list *l, const char *container_id, const char *uid);

#endif
