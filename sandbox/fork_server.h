/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SANDBOX_FORK_SERVER_H
#define CAIRN_SANDBOX_FORK_SERVER_H

/**
 * @file
 * Fork server: a small process that forks workers (sandbox/worker.h) for a large one.
 *
 * Executing a program for each job costs more than many jobs, mostly in the dynamic linker, and a process with threads
 * and much memory cannot fork cheaply or safely. So a program with many short jobs forks a fork server at its start,
 * while it is small, holds no secret and has one thread. The fork server runs one job at a time with worker_run(), each
 * in a separate process that confines itself like every worker; its only input are the jobs that its parent sends.
 * Drawback: all workers of one fork server have the same address space layout.
 *
 * It exits with its parent and ignores signals sent to the process group of the parent.
 *
 * Threads: fork_server_run() by one thread at a time.
 */
#include "sandbox/worker.h"

struct fork_server;

/**
 * Start it. The program must have a single thread.
 * @param prepare  called in the new process to drop resources that jobs do not need; may be NULL.
 * @param run      run("worker", NAME, ARGS...) in each worker.
 */
enum status fork_server_create(enum status (*prepare)(struct error *err), int (*run)(int argc, char **argv),
                               struct fork_server **ret, struct error *err) MUST_CHECK;
/** Kills a running job. NULL is allowed. */
void fork_server_destroy(struct fork_server *f);

/**
 * Like worker_run(), but without job->serve. Falls back to executing the program if n is NULL, once the fork server has
 * exited, or after a job was cancelled.
 * @return also ST_BUSY, without a cancel, if the fork server died during the job. Output may be partial, may still be
 *          written for a moment, and shares file offsets: retry with newly opened descriptors.
 */
enum status fork_server_run(struct fork_server *f, const struct worker_job *job, struct error *err) MUST_CHECK;

#endif
