/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_QUERY_ENGINE_TYPE_PLAN_H
#define CAIRN_QUERY_ENGINE_TYPE_PLAN_H

/**
 * @file
 * Which profile types a query sums, and which it omits. Private to query/.
 *
 * A query for one type sums that type. Otherwise it sums CPU time; senders that count samples instead of CPU time are
 * included as count * period, unless the same series (set of labels) has CPU time as well, as Go's profiles do. The
 * same rules choose among several types that match a request. Omitted types are listed in the answer.
 *
 * Threads: one plan belongs to one thread.
 */
#include "common/json/json_out.h"
#include "profile-formats/profile_type.h"
#include "profile-formats/sample_count.h"
#include "profile-store/scan_groups.h"
#include "query/engine/request.h"

enum omission_reason {
        OMITTED_OTHER_TYPE, /* not the chosen type */
        OMITTED_NO_PERIOD,  /* a count that cannot be converted */
        OMITTED_DUPLICATE,  /* the series has CPU time as well */
};

/* The type to which CPU time and counts of samples are converted. */
#define CPU_TIME_TYPE "process_cpu:cpu:nanoseconds:cpu:nanoseconds"

struct type_omission {
        const char *type; /* borrowed from the scan */
        enum omission_reason reason;
        uint64_t samples; /* 0: not counted */
};

struct type_plan {
        const char *type;   /* full id of the answer's type; NULL: no samples */
        const char **types; /* types that are summed; owned */
        size_t type_count;
        bool converts;                   /* values of `types` are converted to `type`, CPU time in nanoseconds */
        bool by_series;                  /* counts are omitted from series that have CPU time as well */
        struct type_omission *omissions; /* owned */
        size_t omission_count, omissions_capacity;
};

/**
 * Plan for one selection, or for both sides of a diff.
 *
 * `asked` is a type id, its first parts ("process_cpu", "process_cpu:cpu"), or a sample type ("cpu"). NULL prefers CPU
 * time, then CPU samples, then the first type; so does `asked` when several types match it. A type that only
 * unselected series of the time ranges have is accepted and selects nothing.
 * @return ST_USAGE when `asked` matches no type, or several without CPU time or samples; the message lists types.
 */
enum status type_plan_make(struct store_scan *scan, const struct query_selection *const *sides, size_t side_count,
                           const char *asked, struct type_plan *ret, struct error *err) MUST_CHECK;
/** Plan for the type of a request, which may be exact. */
enum status type_plan_make_for_request(struct store_scan *scan, const struct query_selection *const *sides,
                                       size_t side_count, const struct query_request *r, struct type_plan *ret,
                                       struct error *err) MUST_CHECK;
void type_plan_deinit(struct type_plan *p);
#define _cleanup_type_plan_ _cleanup_(type_plan_deinit)

/**
 * Find the types that `asked` matches: the id itself, else those that begin with its parts, else those of this sample
 * type.
 * @param ret  room for types->count; borrowed from types.
 * @return their number.
 */
size_t find_matching_types(const struct scan_names *types, const char *asked, const char **ret);
/** Whether a request for `asked` may mean this type. */
bool is_matching_type(const char *id, const char *asked);

/** ST_USAGE: "type 'ASKED' matches WHAT: ", and as many of the types as fit. */
enum status refuse_type(const struct scan_names *types, const char *asked, const char *what, struct error *err);

/**
 * Convert a sum of a group to the type of the answer; saturates.
 * @param with_time  the series that have CPU time.
 * @return false: the group is omitted.
 */
bool type_plan_convert(const struct type_plan *p, const struct scan_group *g, const struct scan_series_set *with_time,
                       int64_t *value);

/**
 * Restrict a plan that converts to CPU time of any unit, or to one type of counts if there is none; the others become
 * omissions. For values whose periods are not known.
 */
enum status type_plan_omit_counts(struct type_plan *p, struct error *err) MUST_CHECK;

/** Whether values of the type are CPU time. */
bool is_cpu_time_type(const char *type);
/** Whether values count samples taken once per period of CPU time. */
bool is_cpu_count_type(const char *type);

/** Copy the unit of the plan's type, "" if it has none; truncated to the size. */
void type_plan_copy_unit(const struct type_plan *p, char *ret, size_t size);

/** Write the members converted_types and left_out_types if they are not empty. */
void type_plan_put_json(const struct type_plan *p, struct json_out *j);

/** Append the omissions as one line without line end; "" if none. */
void type_plan_put_note(const struct type_plan *p, struct buf *ret);

#endif
