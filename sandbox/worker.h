/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SANDBOX_WORKER_H
#define CAIRN_SANDBOX_WORKER_H

/**
 * @file
 * Runs a job on untrusted input in a confined process.
 *
 * The parent re-executes its own program as `PROGRAM worker NAME ARGS...` with only the given descriptors open (3, 4,
 * ... in order), limits on memory, CPU and files set, stdin and stdout on /dev/null, and stderr a pipe whose last line
 * becomes the reason of a failure. A worker of root runs as a dedicated user (sandbox/worker_user.h). The child calls
 * worker_confine() before it reads a byte: no new files, no network, no exec. Workers can be forked instead of executed
 * (worker_set_entry()).
 *
 * A crash, a hang or a decompression bomb costs one worker and is reported as ST_BAD_DATA with the reason ("killed by
 * signal 11", "took more than 600 s", ...).
 *
 * Threads: worker_run() may be called from any thread.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

struct worker_job {
        const char *const *args; /* NULL-terminated: worker name and its arguments */
        const int *fds;          /* passed as 3, 4, ...; -1 leaves that number closed */
        size_t fd_count;
        uint64_t memory_bytes; /* address space; 0: LIMIT_WORKER_MEMORY_BYTES. Unlimited in a sanitizer's build */
        uint64_t data_bytes; /* RLIMIT_DATA: memory without mapped files; 0: no additional limit. Both are capped by the
                                caller's limits, and this one by sandbox/worker_budget.h */
        uint64_t file_bytes; /* maximum size of a file it writes; 0: LIMIT_OBJECT_BYTES */
        uint64_t cpu_s;      /* 0: worker_set_cpu_limit() */
        uint64_t wall_s;     /* 0: twice cpu_s */
        bool is_fetch;   /* it waits for other services, which may in turn wait for this one: exempt from the budget, so
                            the caller bounds the number of such workers; data_bytes must be set */
        bool keeps_user; /* a worker of root stays root, without capabilities: it writes the caller's files */
        const atomic_bool *cancel; /* polled; true kills the worker, result ST_BUSY. NULL: never */
        /**
         * Called in the waiting thread whenever serve_fd is readable, to serve requests of the worker. Requests are as
         * untrusted as the input. May be NULL.
         */
        void (*serve)(void *context, int serve_fd);
        void *serve_context;
        int serve_fd;
};

/* error.reason: no process was started, or it could not be confined, whatever the input is. */
#define WORKER_NOT_STARTED 1

/**
 * Run a worker and wait for it. ST_OK when it exits with 0. A worker that reports a failure with worker_exit_code() and
 * a line on stderr passes on its status and that line; memory beyond its limit is ST_TOO_BIG. Death by a signal is
 * ST_BAD_DATA. ST_OS with WORKER_NOT_STARTED if no process can be started, or worker_not_started() was called in it.
 */
enum status worker_run(const struct worker_job *job, struct error *err) MUST_CHECK;

/** Default CPU time of jobs that do not set one; their wall time limit is twice that. 0: LIMIT_WORKER_CPU_S. */
void worker_set_cpu_limit(uint64_t seconds);

/** In the child: the exit code that worker_run() converts back to this status. */
int worker_exit_code(enum status st);

/** In the child, when it cannot do its job whatever the input: the exit code for that. Its reason is printed. */
int worker_not_started(const struct error *err);

/** The program executed for workers; /proc/self/exe unless set (by tests). */
void worker_set_program(const char *path);

/**
 * From now on, fork workers and call run("worker", NAME, ARGS...) in them, instead of executing the program, which
 * takes longer than many jobs. The confinement is the same, but workers inherit a copy of the memory, so it must not
 * hold anything they may not see. In a program that has had several threads, workers are still executed.
 */
void worker_set_entry(int (*run)(int argc, char **argv));

enum worker_needs {
        WORKER_NEEDS_NOTHING = 0,
        WORKER_NEEDS_NETWORK = 1,     /* Internet sockets, and files to read for name resolution and TLS (federation) */
        WORKER_NEEDS_DESCRIPTORS = 2, /* none, but the parent may pass it open files over a socket */
};

/**
 * In the child: confine the process. Afterwards only read, write, mmap without PROT_EXEC, threads and exit work:
 * opening a file fails with EPERM, a socket or exec kills the process. With network, see seccomp.c and
 * landlock_restrict(). Irreversible; call in the process that does the job, not before a fork.
 */
enum status worker_confine(enum worker_needs needs, struct error *err) MUST_CHECK;

/** Files that a worker may use in addition to those of WORKER_NEEDS_NETWORK. Absolute paths. */
struct worker_files {
        const char *writable;        /* a directory: files below it may be created, changed and removed */
        const char *const *readable; /* ends with NULL */
};

/**
 * Like worker_confine(WORKER_NEEDS_NETWORK), with these files. Landlock, or a mount namespace without it, restricts the
 * writable paths; on a kernel that allows neither, the worker can write everything its user can.
 */
enum status worker_confine_with_files(const struct worker_files *files, struct error *err) MUST_CHECK;

#endif
