/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_PROCESSES_PROCESS_FILTER_H
#define CAIRN_SAMPLING_PROCESSES_PROCESS_FILTER_H

/**
 * @file
 * Selects processes to exclude from sampling, by name or cgroup.
 *
 * Patterns are shell patterns in which '*' also matches '/'. They are matched
 * against the name of a process; of its cgroup, against the whole path and
 * each path element, so that "cron.service" and "docker-*" work as expected. A
 * process is excluded when it matches an exclude pattern, or when there are
 * "only" patterns of a kind and it matches none of them.
 *
 * Threads: any number of readers.
 */
#include <stdbool.h>

#include "common/config/options.h"
#include "sampling/containers/cgroup.h"

struct process_filter { /* lists are borrowed */
        struct option_list exclude_process, only_process;
        struct option_list exclude_cgroup, only_cgroup;
};

/** Whether there are any patterns. */
bool process_filter_is_active(const struct process_filter *s);

/** @param cgroup  empty for a process that exited before it was read: it then matches no "only" pattern. */
bool process_filter_excludes(const struct process_filter *s, const char *name, const struct cgroup_names *cgroup);

#endif
