/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_AGENT_SELECTION_H
#define CAIRN_AGENT_SELECTION_H

/**
 * @file
 * Which processes are left out, by name or cgroup.
 *
 * Patterns are those of a shell's file names, in which '*' matches a '/' too. A
 * process's name is matched; of a cgroup its whole path and each element of it,
 * so that "cron.service" and "docker-*" mean what they seem to. A process is
 * left out when it matches one of the exclude patterns, or when there are only
 * patterns of a kind and it matches none of them.
 *
 * Threads: any number of readers.
 */
#include <stdbool.h>

#include "agent/cgroup.h"
#include "common/options.h"

struct selection { /* lists are borrowed */
        struct option_list exclude_process, only_process;
        struct option_list exclude_cgroup, only_cgroup;
};

/** Is there any pattern? */
bool selection_is_active(const struct selection *s);

/** @param cgroup  of a process that ended before it could be read: all empty, so none of the only patterns matches. */
bool selection_excludes(const struct selection *s, const char *name, const struct cgroup_names *cgroup);

#endif
