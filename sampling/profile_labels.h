/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_PROFILE_LABELS_H
#define CAIRN_SAMPLING_PROFILE_LABELS_H

/**
 * @file
 * The labels of samples in a profile: collected, relabelled, interned, and
 * cached by process and thread name.
 *
 * Relabel rules see the labels of sampling/processes/process_labels.h, and for processes
 * of pods those that Prometheus' discovery of pods has: __meta_kubernetes_
 * followed by namespace, pod_name, pod_uid, pod_node_name, pod_container_name,
 * pod_controller_kind, pod_controller_name, and pod_label_ and the name of each
 * label of the pod, other characters than letters and digits replaced by "_".
 * Labels whose names begin with "__" are not sent.
 *
 * Threads: one thread at a time.
 */
#include "sampling/profile_build.h"
#include "sampling/runtimes/thread_context.h"

struct labeled_sample {
        uint32_t first_label, label_count; /* of profile.labels */
        bool is_dropped;                   /* by a relabel rule */
};

/** Labels of one profile. Zeroed except for the first three. */
struct profile_labels {
        const struct profile_context *c; /* borrowed */
        struct profile *p;               /* borrowed */
        struct profile_build_stats *stats;
        struct id_table known;
        struct id_table context_keys; /* as far as they are sent */
        uint32_t context_key_count;
        struct labeled_sample *items; /* owned */
        size_t count, capacity;
};

void profile_labels_deinit(struct profile_labels *l);

/**
 * Labels of a sample.
 * @param context  of its thread.
 * @param stack_end  how its user stack ends (sampling/samplers/sample_end.h), "" when it has none.
 * @return ST_OK; ST_TOO_BIG or ST_NO_MEMORY of the profile.
 */
enum status profile_labels_get(struct profile_labels *l, const struct sample_key *key, struct process *process,
                               const struct thread_context *context, const char *stack_end, struct labeled_sample *ret,
                               struct error *err) MUST_CHECK;

#endif
