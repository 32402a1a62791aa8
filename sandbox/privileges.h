/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SANDBOX_PRIVILEGES_H
#define CAIRN_SANDBOX_PRIVILEGES_H

/**
 * @file
 * Capabilities of the agent: those needed for start-up, and those kept
 * afterwards.
 *
 * Kept are: CAP_PERFMON (events on new CPUs or, without BPF, of new processes)
 * and with BPF CAP_BPF (draining the maps); CAP_SYS_PTRACE (mappings of other
 * users' processes), CAP_CHECKPOINT_RESTORE (/proc/PID/map_files),
 * CAP_DAC_READ_SEARCH (files of other users, for their build-id), CAP_SYSLOG
 * (kernel symbols after a module was loaded). As root also CAP_SETUID,
 * CAP_SETGID and CAP_KILL: without its fork_server the agent starts workers
 * itself, which run under their own uid (sandbox/worker_user.h) and are killed
 * on timeout. These grant nothing beyond CAP_SYS_PTRACE over root's processes.
 * All others are dropped for good, also across exec.
 *
 * Threads: call before the first thread is started; capabilities are per
 * thread.
 * Source: capabilities(7).
 */
#include <stdbool.h>
#include <stddef.h>
#include <sys/capability.h>

#include "common/error.h"

/** Whether the capability is effective now. */
bool privileges_have(cap_value_t cap);

/**
 * Drop the capabilities that are not needed after start-up.
 * @param with_bpf  keep CAP_BPF too.
 * @param kept_ret  names of those kept, "cap_bpf cap_syslog ...".
 */
enum status privileges_drop(bool with_bpf, char *kept_ret, size_t size, struct error *err) MUST_CHECK;

/** Drop all capabilities, in a process that reads untrusted files. */
enum status privileges_drop_all(struct error *err) MUST_CHECK;

#endif
