/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_HISTORY_HISTORY_ROWS_H
#define CAIRN_PROFILE_STORE_HISTORY_HISTORY_ROWS_H

/**
 * @file
 * The rows of function_history of one hour, derived from the committed samples.
 *
 * self and total of a function are those of a table of functions (query/engine/top.h): self counts stacks whose leaf's
 * innermost frame it is, total those that contain it, once each. A function that a stack has in several objects is
 * counted for the one nearest to the leaf, so that sums over objects count each stack once; the other objects have a
 * row without cost, so that every object of an hour is found by its build-id. Locations without symbols are summed by
 * object, in rows without a function. Gauges have no sums over time, and no rows.
 *
 * Threads: one derivation belongs to one thread.
 */
#include "profile-store/profile_store.h"
#include "profile-store/tables/history_part.h"

struct store_scan;

struct history_rows {
        struct history_row *items; /* sorted, distinct; owned. Texts live as long as the struct */
        size_t count;
        uint64_t self_samples;         /* of all rows */
        struct store_scan *owned_scan; /* NULL: the caller's */
        struct arena arena;
        struct memory_reservation memory;
};

/** @param hour  since 1970; from the committed samples of these tables. */
enum status history_rows_derive(struct profile_store *store, struct tables *tables, int64_t hour,
                                struct history_rows *ret, struct error *err) MUST_CHECK;
/** The same of the samples that a filter of a scan selects, within one hour; texts live as long as the scan, too. */
enum status history_rows_derive_selection(struct store_scan *scan, const struct scan_filter *filter,
                                          struct history_rows *ret, struct error *err) MUST_CHECK;

void history_rows_deinit(struct history_rows *r); /* also fine on a zeroed one */

#endif
