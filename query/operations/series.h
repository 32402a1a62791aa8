/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_QUERY_OPERATIONS_SERIES_H
#define CAIRN_QUERY_OPERATIONS_SERIES_H

/**
 * @file
 * Sums of a selection per time step, for each shown group. Steps begin at multiples of the step. Private to query/.
 *
 * Threads: belongs to one thread.
 */
#include "query/engine/label_groups.h"
#include "query/engine/query_call.h"
#include "query/engine/type_plan.h"

struct series {
        struct query_call *q; /* borrowed */
        struct type_plan plan;
        struct label_groups groups;
        int64_t first_ns, step_ns;
        size_t count;    /* steps */
        int64_t *values; /* `count` values for each shown group; owned */
        struct counted_samples
                *samples; /* likewise; for averages profiles instead: one per series and second with samples */
        value_magnitude magnitude;
        char unit[32];
        bool is_average;    /* values and totals are averages of snapshots (query/engine/gauge_average.h) */
        uint64_t snapshots; /* of an average: of all its series */
};

/**
 * Sum the request's selection by its labels and step.
 * @param base  the types are those of a comparison with it; NULL: those of the selection alone
 * @return ST_USAGE for too many points; ST_TOO_BIG.
 */
enum status series_load(struct query_call *q, const struct query_selection *base, struct series *ret) MUST_CHECK;
void series_deinit(struct series *s); /* also fine on a zeroed one */
#define _cleanup_series_ _cleanup_(series_deinit)

#endif
