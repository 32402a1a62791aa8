/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_HISTORY_SCAN_H
#define CAIRN_PROFILE_STORE_HISTORY_SCAN_H

/**
 * @file
 * Reads function_history within a scan. The history answers an hour exactly when it has all samples of the hour that
 * the scan has; samples of the other hours must be read.
 *
 * Threads: as profile-store/scan.h.
 */
#include "profile-store/scan.h"

#define HISTORY_HOUR_US INT64_C(3600000000)

/** Cost of a function in an hour. Texts are borrowed; "": null. */
struct history_row {
        int64_t hour_us; /* start of the hour, Unix microseconds */
        const char *type, *unit, *service, *version;
        const char *build_id;        /* hexadecimal; "" if unknown */
        const char *runtime;         /* without a build-id: last part of the mapping's path */
        const char *function, *file; /* "" function: of locations without symbols */
        int64_t self, total;
        uint64_t self_samples, samples; /* of self and total, rounded: profile-formats/sample_count.h */
        int64_t source_version;         /* of samples, from which the row was derived */
};

/** Any status but ST_OK ends the visit. The row's texts are valid during the call. */
typedef enum status visit_history_row(void *context, const struct history_row *row, struct error *err);

/* The labels that rows have, in column spelling. */
#define HISTORY_SERVICE "service_name"
#define HISTORY_VERSION "service_version"

/** The whole hours within a time range. */
struct history_hours {
        int64_t first; /* since 1970 */
        size_t count;
        bool *is_answered; /* of hour first + i: by the history; owned */
};
void history_hours_deinit(struct history_hours *h); /* also fine on a zeroed one */
#define _cleanup_history_hours_ _cleanup_(history_hours_deinit)

#define LIMIT_HISTORY_HOURS (24 * 366 * 20)

/**
 * Find the hours in [from_unix_ns, to_unix_ns) that the history answers.
 * @return ST_OK, also when it answers none; ST_TOO_BIG above LIMIT_HISTORY_HOURS.
 */
enum status history_find_hours(struct store_scan *scan, int64_t from_unix_ns, int64_t to_unix_ns,
                               struct history_hours *ret, struct error *err) MUST_CHECK;

/** Visit the rows of answered hours. */
enum status history_visit_rows(struct store_scan *scan, const struct history_hours *hours, visit_history_row *visit,
                               void *context, struct error *err) MUST_CHECK;

/** How many hours, or parts of them, history_visit_selection() read from the history and from samples. */
struct history_sources {
        uint64_t history_hours, sample_hours;
};

/**
 * Visit the rows of a selection: those of the history for the hours that it answers, and else rows derived from
 * samples, for each hour or part of one. With matchers of other labels than service and version all rows are derived.
 */
enum status history_visit_selection(struct store_scan *scan, const struct scan_filter *filter, visit_history_row *visit,
                                    void *context, struct history_sources *ret, struct error *err) MUST_CHECK;

#endif
