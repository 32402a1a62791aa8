/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SANDBOX_WORKER_H
#define CAIRN_SANDBOX_WORKER_H

/**
 * @file
 * Running a job on hostile input in a process of its own.
 *
 * The parent re-executes its own program as `PROGRAM worker NAME ARGS...` with
 * only the given descriptors open (3, 4, ... in order), limits on memory, CPU
 * and files set, stdin and stdout on /dev/null, and stderr a pipe of which the
 * last line becomes the reason of a failure. A worker of root runs as a user of
 * its own (sandbox/worker_user.h). The child calls worker_confine()
 * before it reads a byte: no new files, no network, no exec. A program may have
 * its workers forked instead (worker_set_entry()).
 *
 * A crash, a hang or a bomb costs one worker and is reported as ST_BAD_DATA
 * with the reason ("killed by signal 11", "took more than 600 s", ...).
 *
 * Threads: worker_run() may be called from any thread.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

struct worker_job {
        const char *const *args;  /* NULL-terminated: worker name and its arguments */
        const int *fds;           /* become 3, 4, ...; -1 leaves that number closed */
        size_t fd_count;
        uint64_t memory_bytes;    /* of address space; 0: LIMIT_WORKER_MEMORY_BYTES. None in a sanitizer's build */
        uint64_t data_bytes;      /* of memory of its own (RLIMIT_DATA): files that it maps are not in it; 0: no further limit.
                                     Of both it gets no more than the caller's own limits */
        uint64_t file_bytes;      /* longest file that it may write; 0: LIMIT_OBJECT_BYTES */
        uint64_t cpu_s;           /* 0: LIMIT_WORKER_CPU_S */
        uint64_t wall_s;          /* 0: twice cpu_s */
        const atomic_bool *cancel; /* polled; true kills the worker and gives ST_BUSY. NULL: never */
        /**
         * Called whenever serve_fd can be read, in the thread that waits: where
         * the worker asks for something. What it asks is as hostile as its input. NULL: never.
         */
        void (*serve)(void *context, int serve_fd);
        void *serve_context;
        int serve_fd;
};

/**
 * Run and wait. ST_OK when the worker exits with 0. A worker that reports a
 * failure itself, worker_exit_code() and a line on stderr, hands its status and
 * that line on; memory it cannot get within its limit is ST_TOO_BIG. Whatever
 * kills it is ST_BAD_DATA. ST_OS when no process can be started.
 */
enum status worker_run(const struct worker_job *job, struct error *err) MUST_CHECK;

/** In the child: the exit code that worker_run() turns back into this status. */
int worker_exit_code(enum status st);

/** The program that workers are started from; /proc/self/exe unless set (tests set it). */
void worker_set_program(const char *path);

/**
 * From now on fork a worker and call run("worker", NAME, ARGS...) in it, in place of starting a program, which takes
 * longer than many a job. For a program that has nothing in its memory that a worker may not see; what a worker can do is
 * the same. Once the program has had threads, workers are programs again.
 */
void worker_set_entry(int (*run)(int argc, char **argv));

enum worker_needs {
        WORKER_NEEDS_NOTHING = 0,
        WORKER_NEEDS_NETWORK = 1, /* Internet sockets, and files to read for name resolution and TLS (federation) */
        WORKER_NEEDS_DESCRIPTORS = 2, /* nothing, but the parent may hand it open files over a socket */
};

/**
 * In the child: restrict it. From here on only read, write, mmap without
 * code, threads and exit work: opening a file fails with EPERM, a socket or a
 * program to start kills the process. With a network, see confine.c and
 * landlock_restrict(). Cannot be undone; call in the process that does the job, not before a fork.
 */
enum status worker_confine(enum worker_needs needs, struct error *err) MUST_CHECK;

#endif
