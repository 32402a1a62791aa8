/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_SCAN_TABLE_SCAN_H
#define CAIRN_PROFILE_STORE_SCAN_TABLE_SCAN_H

/** @file The snapshot of a scan, and scans of the committed rows of one, for the history of functions. */
#include "profile-store/scan.h"
#include "profile-store/tables/tables.h"

/** As store_scan_begin(), of these tables and without the head. @param t  a reference is taken. */
enum status store_scan_begin_tables(struct profile_store *store, struct tables *t, struct store_scan **ret,
                                    struct error *err) MUST_CHECK;

/** The snapshot of a scan, borrowed. */
const struct tables *store_scan_get_tables(const struct store_scan *scan);
/** Whether samples that are only in the head may have times in [from_us, to_us). */
bool store_scan_has_head_between(const struct store_scan *scan, int64_t from_us, int64_t to_us);
/** The store that is scanned; NULL: none. */
struct profile_store *store_scan_get_store(const struct store_scan *scan);

#endif
