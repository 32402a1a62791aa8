/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_AGENT_LABELS_H
#define CAIRN_AGENT_LABELS_H

/**
 * @file
 * The labels of a sample: of the host, of the process, of the thread, and the
 * user's own, which win.
 *
 * Keys are those of OpenTelemetry's semantic conventions where those have one.
 * Threads: a chosen struct labels is only read.
 * Source: OpenTelemetry semantic conventions 1.44.0: container, host, k8s, os,
 * process, service, thread.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/process.h"
#include "common/error.h"
#include "common/limits.h"
#include "common/options.h"

/* In the order in which they are written. */
enum label_key {
        LABEL_HOST_NAME,
        LABEL_HOST_ID,
        LABEL_HOST_ARCH,
        LABEL_OS_VERSION,
        LABEL_PROCESS_NAME,
        LABEL_PROCESS_PATH,
        LABEL_SERVICE_NAME,
        LABEL_THREAD_NAME,
        LABEL_CONTAINER_ID,
        LABEL_POD_UID,
        LABEL_UNIT,
        LABEL_SLICE,
        LABEL_CGROUP,
        LABEL_PID,
        LABEL_STACK_END,
        LABEL_KEY_COUNT,
};

struct labels {
        bool taken[LABEL_KEY_COUNT];
        char host_name[256];
        char host_id[64];       /* "" when unknown */
        const char *host_arch;
        char os_version[96];    /* the kernel's release */
        const char *service_name; /* NULL: the name of the executable */
        const struct option_list *own; /* "KEY=VALUE", checked; borrowed */
};

struct label_choice { /* borrowed */
        struct option_list keep, drop; /* patterns of keys */
        bool with_pid, with_stack_end;
        const char *service_name;
        struct option_list own;
};

/**
 * Read the host's labels and choose the keys: those that a keep pattern
 * matches, or all but process.pid and cairn.stack.end without one; less those that a drop pattern
 * matches. The user's own labels always stay.
 * @param o  its lists are used as long as ret is.
 * @return ST_USAGE when a keep or drop pattern matches no key, ST_OS.
 */
enum status labels_init(struct labels *ret, const struct label_choice *o, struct error *err) MUST_CHECK;

/** Do the patterns name keys? ST_USAGE names the one that does not. */
enum status labels_check(const struct label_choice *o, struct error *err) MUST_CHECK;

struct label_pair {
        const char *key;
        size_t key_size;
        const char *value;
};

struct label_list {
        struct label_pair items[LIMIT_LABELS_PER_SAMPLE]; /* keys are unique */
        size_t count;
        /* what some values point to */
        char process_name[SAMPLE_COMM_SIZE], thread_name[SAMPLE_COMM_SIZE + 1], pid[16];
};

/**
 * The labels of a sample of that process; values are borrowed from it, from l and from ret itself.
 * @param stack_end how its user stack ends (agent/sample_end.h), "" when it has none.
 */
void labels_collect(const struct labels *l, const struct process *process, const struct sample_key *key,
                    const char *stack_end, struct label_list *ret);

#endif
