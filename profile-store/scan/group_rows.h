/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_SCAN_GROUP_ROWS_H
#define CAIRN_PROFILE_STORE_SCAN_GROUP_ROWS_H

/*
 * Sums the rows of a row group by group. The values of rows that follow each
 * other in one group are summed by step or by code of the stack, and each of
 * these reaches the table of groups once.
 */
#include "profile-store/scan/group_keys.h"

struct group_rows;

/* Sums into a table; names and all as of group_keys_init(). All are borrowed. NULL without memory. */
struct group_rows *group_rows_create(struct group_table *t, const char *const *names, const struct label_columns *all);
void group_rows_destroy(struct group_rows *g); /* NULL is allowed */

/* chunk: of a file. */
enum status group_rows_sum(struct group_rows *g, const struct scan_chunk *chunk, struct error *err) MUST_CHECK;

/* The number of the step that a time is in; false outside of all. */
bool find_time_step(const struct scan_group_by *by, int64_t time_us, uint32_t *ret);

#endif
