/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SANDBOX_NURSERY_H
#define CAIRN_SANDBOX_NURSERY_H

/**
 * @file
 * A small process that forks workers (sandbox/worker.h) for a large one.
 *
 * To start a program for each job costs more than many a job, mostly in the
 * dynamic linker, and to fork a process that has threads and much memory is
 * no way either. So a program that has short jobs all day forks a nursery while
 * it is small, knows no secret and has no thread. The nursery runs one job
 * after the other by worker_run(), each in a process of its own that confines
 * itself as every worker does; it reads nothing but the jobs that its parent
 * sends. What is lost against starting a program: the workers of one nursery
 * have the same layout of addresses.
 *
 * It ends with its parent, and is not told of signals that are meant for it.
 *
 * Threads: nursery_run() by one at a time.
 */
#include "sandbox/worker.h"

struct nursery;

/**
 * Fork it. Only while the program has no other thread.
 * @param prepare  called in the new process: gives up what no job needs. NULL none.
 * @param run      run("worker", NAME, ARGS...) in each worker.
 */
enum status nursery_create(enum status (*prepare)(struct error *err), int (*run)(int argc, char **argv), struct nursery **ret,
                           struct error *err) MUST_CHECK;
/** Ends a job that runs. NULL is fine. */
void nursery_destroy(struct nursery *n);

/**
 * As worker_run(); the job may not serve. Once the nursery is gone, or the job
 * was cancelled, and with NULL, programs are started.
 * @return also ST_BUSY, without a cancel, when the nursery went in the middle of
 *         the job. That may have written half of its output, may write for a
 *         moment yet, and shares the position in its files: try again with
 *         descriptors that are opened anew.
 */
enum status nursery_run(struct nursery *n, const struct worker_job *job, struct error *err) MUST_CHECK;

#endif
