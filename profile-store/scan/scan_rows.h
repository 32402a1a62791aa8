/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_SCAN_SCAN_ROWS_H
#define CAIRN_PROFILE_STORE_SCAN_SCAN_ROWS_H

/**
 * @file
 * Selects rows of a file of samples by a filter, for work other than queries: retention.
 *
 * Row groups whose statistics exclude the filter are not read; of the others only the columns of the filter's labels,
 * as runs of dictionary codes.
 *
 * Memory: reserved for MEMORY_COMPACTION.
 * Threads: one at a time, also for the matchers of the filter.
 */
#include "profile-store/tables/part_read.h"
#include "profile-store/scan.h"

struct row_selector;

/** @param filter  borrowed until row_selector_destroy(), with everything it points to. */
enum status row_selector_create(const struct scan_filter *filter, struct row_selector **ret,
                                struct error *err) MUST_CHECK;
void row_selector_destroy(struct row_selector *s); /* NULL is allowed */

/**
 * Set rows[i] to 1 for each selected row i of a row group; the others are not changed.
 * @param rows  one byte for each row of the group.
 * @return ST_OK; ST_BAD_DATA, ST_UNSUPPORTED or ST_TOO_BIG for a file that cannot be read; ST_BUSY or ST_NO_MEMORY.
 */
enum status row_selector_mark(struct row_selector *s, const struct part_file *f, uint32_t group, uint8_t *rows,
                              struct error *err) MUST_CHECK;

#endif
