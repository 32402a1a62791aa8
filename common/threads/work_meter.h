/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_THREADS_WORK_METER_H
#define CAIRN_COMMON_THREADS_WORK_METER_H

/**
 * @file
 * Cooperative cancellation and step budgets of one query.
 *
 * Every loop over data reports its work in units (a row, a node, a byte of a name: a few nanoseconds each). Every
 * WORK_CHECK_UNITS the meter checks for an interruption: deadline, disconnected client, shutdown of the server. The
 * first failure is kept and returned by all later calls, so a loop may end early without an error; the next check
 * reports it. While urgent tasks exist, each check also yields the CPU, so that ingest need not wait for the next
 * scheduler tick behind queries.
 *
 * Threads: one meter belongs to one thread; any thread may add urgent tasks.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

#define WORK_CHECK_UNITS 65536

/** ST_OK to continue; any other status ends the work, with its error. */
typedef enum status work_interrupted(void *context, struct error *err);

struct work_meter {
        work_interrupted *interrupted; /* NULL: only the budgets end the work */
        void *context;
        uint64_t units;            /* since the last check */
        uint64_t checks;           /* calls of `interrupted` */
        uint64_t rows, bytes;      /* selected rows of samples, and stored bytes of their columns; for reports */
        uint64_t regex_steps_left; /* shared by all regular expressions */
        enum status failed;        /* ST_OK: go on */
        struct error error;        /* details of `failed` */
};

/** Add to the number of urgent tasks of the process, to which metered work yields. */
void work_meter_add_urgent_tasks(int64_t change);

/** Initialize a meter with the full budget for regular expressions. */
void work_meter_init(struct work_meter *m, work_interrupted *interrupted, void *context);

/** Check now, regardless of the units since the last check. Returns the status of the meter. */
enum status work_meter_check(struct work_meter *m, struct error *err) MUST_CHECK;

/**
 * Report work. @param m  NULL: unlimited.
 * @return ST_OK: go on; otherwise the first failure, also in err.
 */
static inline enum status work_meter_add(struct work_meter *m, uint64_t units, struct error *err)
{
        if (!m)
                return ST_OK;
        m->units += units;
        return m->units < WORK_CHECK_UNITS && !m->failed ? ST_OK : work_meter_check(m, err);
}

/**
 * Report steps of a regular expression; they also count as units. False when the budget is used up or the work ended.
 */
bool work_meter_add_regex(struct work_meter *m, uint64_t steps);

/**
 * Like qsort_r(), interrupted by checks of the meter.
 * @return ST_NO_MEMORY, or the failure of the meter: the items are then a permutation in unspecified order.
 */
enum status work_meter_sort(struct work_meter *m, void *items, size_t count, size_t size,
                            int (*compare)(const void *a, const void *b, void *context), void *context,
                            struct error *err) MUST_CHECK;

#endif
