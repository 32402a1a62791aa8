/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SANDBOX_WORKER_BUDGET_H
#define CAIRN_SANDBOX_WORKER_BUDGET_H

/**
 * @file
 * Memory budget of workers: the data limits (RLIMIT_DATA) of all concurrent workers add up to at most W, the limit of
 * the process's own memory budget (common/memory/memory_budget.h), which does not include workers. So the service and
 * its workers use at most 2 W. Without a limit (programs other than `cairn serve`) nothing is bounded here.
 *
 * A worker gets the limit of its job, at most W/2; W/4 if the job sets none or a client waits for it. A worker with
 * more than W/4 is large: only one large worker runs at a time, and while one runs or waits the others share W/2. So a
 * large worker cannot be starved by small ones, and a small one never waits for a large one.
 *
 * Workers that fetch from upstreams are exempt (worker_job.is_fetch): two services that are each other's upstream would
 * otherwise wait for each other's workers.
 *
 * Threads: any.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

/**
 * Wait until a worker may run.
 * @param wanted_bytes its data limit; 0: not set.  @param is_short a client waits for it: at most W/4.
 * @param cancel polled; true ends the wait. NULL: never.
 * @param ret    the data limit to set; return it with worker_budget_release(). 0 without a budget: wanted_bytes
 * applies.
 * @return ST_BUSY when cancelled.
 */
enum status worker_budget_acquire(uint64_t wanted_bytes, bool is_short, const atomic_bool *cancel, uint64_t *ret,
                                  struct error *err) MUST_CHECK;
void worker_budget_release(uint64_t bytes);

struct worker_job;
/** worker_run() without the budget; data_bytes replaces the limit of the job, 0: no additional limit. */
enum status worker_run_with_data(const struct worker_job *job, uint64_t data_bytes, struct error *err) MUST_CHECK;

#endif
