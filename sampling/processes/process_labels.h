/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_PROCESSES_PROCESS_LABELS_H
#define CAIRN_SAMPLING_PROCESSES_PROCESS_LABELS_H

/**
 * @file
 * Labels of a sample: those of the host, the process and the thread, and
 * the user's own, which take precedence.
 *
 * Keys follow OpenTelemetry's semantic conventions where these define one.
 * Labels of Kubernetes come from sampling/containers/. In a pod the default of
 * service.name is the name of the app, else of the workload, else of the pod,
 * as in OpenTelemetry's specification for Kubernetes.
 *
 * Threads: read-only after labels_init().
 * Source: OpenTelemetry semantic conventions 1.44.0: container, host, k8s, os,
 * process, service, thread.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/config/options.h"
#include "common/error.h"
#include "common/limits.h"
#include "sampling/processes/process.h"

/* In output order. */
enum label_key {
        LABEL_HOST_NAME,
        LABEL_HOST_ID,
        LABEL_HOST_ARCH,
        LABEL_OS_VERSION,
        LABEL_PROCESS_NAME,
        LABEL_PROCESS_PATH,
        LABEL_PROCESS_BUILD,
        LABEL_SERVICE_NAME,
        LABEL_THREAD_NAME,
        LABEL_CONTAINER_ID,
        LABEL_ENGINE_NAME, /* of the container, in its engine */
        LABEL_IMAGE_NAME,
        LABEL_IMAGE_TAG,
        LABEL_COMPOSE_SERVICE,
        LABEL_COMPOSE_PROJECT,
        LABEL_NAMESPACE,
        LABEL_POD_NAME,
        LABEL_POD_UID,
        LABEL_CONTAINER_NAME,
        LABEL_NODE_NAME,
        LABEL_DEPLOYMENT,
        LABEL_STATEFUL_SET,
        LABEL_DAEMON_SET,
        LABEL_JOB,
        LABEL_CRON_JOB,
        LABEL_APP,
        LABEL_UNIT,
        LABEL_SLICE,
        LABEL_CGROUP,
        LABEL_WAIT_REASON,
        LABEL_WAIT_FUTEX,
        LABEL_PID,
        LABEL_STACK_END,
        LABEL_KEY_COUNT,
};

struct labels {
        bool enabled[LABEL_KEY_COUNT];
        struct option_list keep, drop; /* patterns of keys, for labels of contexts; borrowed */
        char host_name[256];
        char host_id[64]; /* "" when unknown */
        const char *host_arch;
        char os_version[96];           /* kernel release */
        const char *service_name;      /* NULL: the default */
        const char *node_name;         /* of the Kubernetes node; NULL: none */
        const struct option_list *own; /* "KEY=VALUE", checked; borrowed */
};

struct label_options {                 /* borrowed */
        struct option_list keep, drop; /* patterns of keys */
        bool with_pid, with_stack_end;
        const char *service_name;
        struct option_list own;
};

/**
 * Read the host's labels and select the keys: those that match a keep pattern, or all but
 * process.pid and cairn.stack.end without keep patterns; minus those that match a drop pattern.
 * The user's own labels always stay.
 * @param o  its lists are borrowed by ret.
 * @return ST_USAGE when a keep or drop pattern matches no key, ST_OS.
 */
enum status labels_init(struct labels *ret, const struct label_options *o, struct error *err) MUST_CHECK;

/** Whether each pattern matches a key. ST_USAGE names the one that does not. */
enum status label_options_check(const struct label_options *o, struct error *err) MUST_CHECK;

struct label_pair {
        const char *key;
        size_t key_size;
        const char *value;
};

struct sample_label_set {
        struct label_pair items[LIMIT_LABELS_PER_SAMPLE]; /* keys are unique */
        size_t count;
        bool has_context_service; /* a context has named the service */
        /* storage of some values */
        char process_name[SAMPLE_COMM_SIZE], thread_name[SAMPLE_COMM_SIZE + 1], pid[16], cron_job[256], futex[24];
        char process_build[BUILD_ID_HEX_MAX];
};

/**
 * Collect the labels of a sample. Values are borrowed from the process, l and ret itself.
 * @param stack_end  how its user stack ends (sampling/samplers/sample_end.h), "" when it has none.
 * Without the user's own, which labels_add_own() adds.
 */
void labels_collect(const struct labels *l, const struct process *process, const struct sample_key *key,
                    const char *stack_end, struct sample_label_set *ret);

/**
 * Add a label from a context that the process itself published, borrowed. It replaces none that the agent found, since
 * any program may claim anything, except for the name of the service, which the program knows best: that of the context
 * which is added first.
 */
void labels_add_context(const struct labels *l, const struct context_label *label, struct sample_label_set *ret);

/** Add the user's own labels, which replace all others. */
void labels_add_own(const struct labels *l, struct sample_label_set *ret);

#endif
