/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_AGENT_PROCESS_READ_H
#define CAIRN_AGENT_PROCESS_READ_H

/**
 * @file
 * Reading the files of one process under /proc.
 *
 * A directory of /proc stays with its process: once opened and found to be the
 * right life, no other process can get in between.
 * Source: proc(5).
 */
#include <stdint.h>
#include <sys/types.h>

#include "agent/cgroup.h"
#include "agent/proc_maps.h"
#include "bpf/sample.h"

struct process_stat {
        uint64_t start_ticks; /* clock ticks since boot */
        uint32_t parent;
        bool kernel_thread;
        char state;           /* 'Z': it ended and its parent has not looked */
};

/** Are processes numbered here as the kernel numbers them? Not in a pid namespace of a container. */
bool process_numbers_are_the_hosts(void);

/** Its start, as precisely as /proc tells it. */
uint64_t process_start_ticks(const struct sample_process *id);

/** The life that has the number now, whatever it has executed; false, ret untouched, when there is none. */
bool process_find(uint32_t tgid, struct sample_process *ret) MUST_CHECK;

/** Open /proc/PID of that life; -1 when it has ended. The descriptor is the caller's. */
int process_open(const struct sample_process *id);

enum status process_read_maps(int proc_fd, struct proc_maps *ret, struct error *err) MUST_CHECK;

/** False, ret untouched, when it cannot be read. */
bool process_read_name(int proc_fd, char ret[static SAMPLE_COMM_SIZE]) MUST_CHECK;
bool process_read_cgroup(int proc_fd, struct cgroup_names *ret) MUST_CHECK;

/** The path of its program, in its own root; NULL when it has none, as a kernel thread. The caller frees it. */
char *process_read_executable(int proc_fd) MUST_CHECK;

bool process_read_stat(int proc_fd, struct process_stat *ret) MUST_CHECK;

/** When it started, as precisely as the ticks tell. */
uint64_t process_start_ns(const struct process_stat *stat);

/** From the text of /proc/PID/stat. For tests. */
bool process_parse_stat(const char *text, size_t n, struct process_stat *ret) MUST_CHECK;

/** The effective user and the process's number in its innermost pid namespace. */
bool process_read_identity(int proc_fd, uid_t *uid_ret, pid_t *ns_pid_ret) MUST_CHECK;

#endif
