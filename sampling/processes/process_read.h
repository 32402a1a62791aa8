/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_PROCESSES_PROCESS_READ_H
#define CAIRN_SAMPLING_PROCESSES_PROCESS_READ_H

/**
 * @file
 * Readers of /proc/PID files.
 *
 * A directory of /proc stays bound to its process: once opened and verified, a
 * reused pid cannot interfere.
 * Source: proc(5).
 */
#include <stdint.h>
#include <sys/types.h>

#include "bpf/sample.h"
#include "sampling/containers/cgroup.h"
#include "sampling/objects/proc_maps.h"

struct process_stat {
        uint64_t start_ticks; /* clock ticks since boot */
        uint32_t parent;
        bool kernel_thread;
        char state; /* 'Z': exited, but not yet reaped */
};

/** Whether this process is in the host's pid namespace, so that its pids are those that BPF programs see. */
bool process_in_host_pid_namespace(void);

/** Start time, with the precision of /proc. */
uint64_t process_start_ticks(const struct sample_process *id);

/** The process that has the pid now, in its current life; false, ret untouched, when there is none. */
bool process_find_pid(uint32_t tgid, struct sample_process *ret) MUST_CHECK;

/** Open /proc/PID of that process; -1 when it has exited. The caller owns the descriptor. */
int process_open(const struct sample_process *id);

enum status process_read_maps(int proc_fd, struct proc_maps *ret, struct error *err) MUST_CHECK;

/** False, ret untouched, when it cannot be read. */
bool process_read_name(int proc_fd, char ret[static SAMPLE_COMM_SIZE]) MUST_CHECK;
bool process_read_cgroup(int proc_fd, struct cgroup_names *ret) MUST_CHECK;

/** Path of the executable in the root of the process; NULL for a kernel thread. The caller frees it. */
char *process_read_executable(int proc_fd) MUST_CHECK;

bool process_read_stat(int proc_fd, struct process_stat *ret) MUST_CHECK;

/** Start time in nanoseconds, with the precision of clock ticks. */
uint64_t process_start_ns(const struct process_stat *stat);

/** Parse the text of /proc/PID/stat. For tests. */
bool process_parse_stat(const char *text, size_t n, struct process_stat *ret) MUST_CHECK;

/** The effective uid, and the pid in its innermost pid namespace. */
bool process_read_identity(int proc_fd, uid_t *uid_ret, pid_t *ns_pid_ret) MUST_CHECK;

#endif
