/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_WORK_METER_H
#define CAIRN_COMMON_WORK_METER_H

/**
 * @file
 * Cooperative cancellation and step budgets of one query.
 *
 * Every loop over data reports what it did in units (a row, a node, a byte of a
 * name: a few nanoseconds each). After WORK_CHECK_UNITS of them the meter asks
 * whether the query may go on: its deadline, its client, the server's shutdown.
 * The first failure is kept: all later calls fail with it, so that a loop may
 * end early without an error of its own and the next check reports it.
 *
 * Threads: one meter belongs to one thread.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

#define WORK_CHECK_UNITS 65536

/** ST_OK while the work may go on; any other status ends it, with its error. */
typedef enum status work_interrupted(void *context, struct error *err);

struct work_meter {
        work_interrupted *interrupted; /* NULL: nothing ends the work but its budgets */
        void *context;
        uint64_t units;            /* since the last check */
        uint64_t checks;           /* how often `interrupted` was asked */
        uint64_t regex_steps_left; /* of all regular expressions together */
        enum status failed;        /* ST_OK: go on */
        struct error error;        /* of `failed` */
};

/** A meter with the whole budget of regular expressions. */
void work_meter_init(struct work_meter *m, work_interrupted *interrupted, void *context);

/** Ask now, whatever was done since the last time. The status is that of the meter. */
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

/** Report steps of a regular expression; they count as units too. False when the budget is used up or the work ended. */
bool work_meter_add_regex(struct work_meter *m, uint64_t steps);

/**
 * Sort as qsort_r() does, in pieces between which the meter is asked.
 * @return ST_NO_MEMORY, or the meter's failure: the items are then in any order, each still there once.
 */
enum status work_meter_sort(struct work_meter *m, void *items, size_t count, size_t size,
                            int (*compare)(const void *a, const void *b, void *context), void *context,
                            struct error *err) MUST_CHECK;

#endif
