/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_QUERY_ENGINE_GAUGE_AVERAGE_H
#define CAIRN_QUERY_ENGINE_GAUGE_AVERAGE_H

/**
 * @file
 * Averages of gauges over time. Private to query/.
 *
 * The samples of a gauge, such as memory in use, are snapshots: the sum of several has no meaning. The value of a
 * selection is the average over the snapshots of each series, summed over the series:
 *
 *     value(stack) = sum over series of (sum of the stack's values in the series / number of the series' snapshots)
 *
 * A snapshot is all samples of a series with one time. A series is the samples of one process, so it is identified by
 * the labels that are equal in each snapshot, not by all: Go's heap profiles have a label with the size of objects, and
 * goroutines have labels of their own. Such labels are found by comparing the samples of snapshots. Labels that
 * describe a process by convention (service_name, instance, pod, ...) always identify, so that processes whose
 * snapshots have the same time remain separate.
 *
 * Snapshots are counted without the selector's other matchers, so that the parts of a selection add up to the whole.
 * Quotients are rounded so that the sum of all stacks of a series is the rounded average of its sum.
 *
 * Rejected: the last snapshot, which depends on the moment (garbage collection); averages over the snapshots that
 * contain a stack, whose sum is greater than any snapshot.
 *
 * Threads: belongs to one thread.
 */
#include "profile-store/scan_groups.h"
#include "query/engine/request.h"

struct gauge_snapshot {
        uint64_t series; /* hash of the identifying labels */
        int64_t time_us;
};

/** The snapshots of one type in the time range of a selection. */
struct gauge_snapshots {
        const char *type;    /* borrowed from the caller */
        const char **labels; /* that identify a series, in column spelling; owned, the texts by the scan */
        size_t label_count;
        struct gauge_snapshot *items; /* sorted by series and time, distinct; owned */
        size_t count;
        struct memory_reservation memory; /* of items */
};

/** @param s  its time range and its matchers of processes apply. @param type  a full id. */
enum status gauge_snapshots_load(struct store_scan *scan, const struct query_selection *s, const char *type,
                                 struct gauge_snapshots *ret, struct error *err) MUST_CHECK;
void gauge_snapshots_deinit(struct gauge_snapshots *g); /* also fine on a zeroed one */
#define _cleanup_gauge_snapshots_ _cleanup_(gauge_snapshots_deinit)

/** The series of a group, whose labels include the identifying ones. */
uint64_t gauge_snapshots_find_series(const struct gauge_snapshots *g, const struct scan_group *group);

/** Count the snapshots of a series with times in [from, to), in microseconds. */
uint64_t gauge_snapshots_count(const struct gauge_snapshots *g, uint64_t series, int64_t from_us, int64_t to_us);

/** The averages of the parts of a series, one part after another. */
struct gauge_average {
        __int128 sum;       /* of the parts so far */
        uint64_t snapshots; /* of the series */
};
/** Add a part. @return its average; all averages so far add up to the rounded average of the sum so far. */
int64_t gauge_average_add(struct gauge_average *a, int64_t value);

#endif
