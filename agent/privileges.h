/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_AGENT_PRIVILEGES_H
#define CAIRN_AGENT_PRIVILEGES_H

/**
 * @file
 * The agent's capabilities: what set-up needs, and what is kept afterwards.
 *
 * Kept are: CAP_PERFMON (events of new CPUs or, without BPF, of new processes)
 * and with BPF CAP_BPF (drain the maps); CAP_SYS_PTRACE (mappings of others),
 * CAP_CHECKPOINT_RESTORE (/proc/PID/map_files), CAP_DAC_READ_SEARCH (files of
 * others, for their build-id), CAP_SYSLOG (kernel symbols after a module was
 * loaded). As root also CAP_SETUID, CAP_SETGID and CAP_KILL: without its nursery
 * the agent starts workers itself, which run as a user of their own
 * (sandbox/worker_user.h) and are killed when they take too long. They give
 * nothing that CAP_SYS_PTRACE over root's processes does not.
 * All others are given up for good, also across exec.
 * Threads: call before the first thread is started; rights are each thread's own.
 * Source: capabilities(7).
 */
#include <stdbool.h>
#include <stddef.h>
#include <sys/capability.h>

#include "common/error.h"

/** Has this process the capability now? */
bool privileges_have(cap_value_t cap);

/**
 * Give up what is not needed after set-up.
 * @param with_bpf  keep CAP_BPF too.
 * @param kept_ret  names of what is kept, "cap_bpf cap_syslog ...".
 */
enum status privileges_drop(bool with_bpf, char *kept_ret, size_t size, struct error *err) MUST_CHECK;

/** Give up all of them, in a process that reads a stranger's file. */
enum status privileges_drop_all(struct error *err) MUST_CHECK;

#endif
