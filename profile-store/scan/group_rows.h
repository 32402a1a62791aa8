/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_SCAN_GROUP_ROWS_H
#define CAIRN_PROFILE_STORE_SCAN_GROUP_ROWS_H

/*
 * Sums the rows of a row group by group. Values of consecutive rows of a group are summed by step or stack code, and
 * each of these sums is added to the table of groups once.
 */
#include "profile-store/scan/group_keys.h"

struct group_rows;

/* Sums into a table; names and all as in group_keys_init(). All are borrowed. NULL when memory runs out. */
struct group_rows *group_rows_create(struct group_table *t, const char *const *names, const struct label_columns *all);
void group_rows_destroy(struct group_rows *g); /* NULL is allowed */

/* chunk must be of a file. */
enum status group_rows_sum(struct group_rows *g, const struct scan_chunk *chunk, struct error *err) MUST_CHECK;

/* Number of the step that contains a time; false outside of all steps. */
bool find_time_step(const struct scan_group_by *by, int64_t time_us, uint32_t *ret);

#endif
