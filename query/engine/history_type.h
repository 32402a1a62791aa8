/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_QUERY_ENGINE_HISTORY_TYPE_H
#define CAIRN_QUERY_ENGINE_HISTORY_TYPE_H

/**
 * @file
 * The profile types of a query that reads the history of functions.
 *
 * They are those of other operations, as far as rows can tell: CPU time of any unit is summed in nanoseconds. Counts of
 * samples are not converted, since rows have no period: they are named in the note. When no samples are left, it is CPU
 * time, or the type of the row with the most samples.
 *
 * Threads: as the call's scan.
 */
#include "profile-store/history_scan.h"
#include "query/engine/query_call.h"
#include "query/engine/type_plan.h"

#define HISTORY_TYPE_SIZE 256

struct history_type {
        char id[HISTORY_TYPE_SIZE]; /* of the answer, in full; "": nothing is selected */
        bool converts;              /* rows with CPU time of any unit are taken */
        const char *asked;          /* of these, only those that match; NULL: all */
        struct type_plan plan;      /* its omissions are those of the answer */
};
void history_type_deinit(struct history_type *t);

/** Choose the type, and append to the note of the call what it leaves out. */
enum status history_choose_type(struct query_call *q, struct history_type *ret) MUST_CHECK;

/** The filter for history_visit_selection(); not all of its rows are of the type. */
struct scan_filter history_type_make_filter(const struct history_type *t, const struct query_selection *s);

/** Convert the values of a row to the type. False: it is of another one. */
bool history_type_convert(const struct history_type *t, struct history_row *row);

#endif
