/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_TABLES_LOCATION_CACHE_H
#define CAIRN_PROFILE_STORE_TABLES_LOCATION_CACHE_H

/*
 * Cache of decoded row groups of the locations table: decoding the frames of the same locations took a fifth of each
 * short query. A row group is cached when a second query reads it, or at the start, and as long as its part is live.
 * There is no eviction: beyond the limit, queries decode the rows that they need.
 *
 * Memory: in the process, up to LIMIT_LOCATION_CACHE_BYTES and a quarter of the caches' share of the budget. Threads:
 * any.
 */
#include "profile-store/tables/part_read.h"
#include "profile-store/tables/tables.h"

/* The cached rows of a row group, all of them; NULL when it is not cached. Valid as long as the part. */
const struct location_rows *location_cache_find(const struct table_part *part, uint32_t group);

/*
 * Cache a row group if this is its second query. *ret is as of location_cache_find(): NULL also when there is no room.
 * Fails if the file cannot be read.
 */
enum status location_cache_offer(struct table_part *part, const struct part_file *f, uint32_t group,
                                 const struct location_rows **ret, struct error *err) MUST_CHECK;

/* Free the cached rows of a part. */
void location_cache_drop(struct part_locations *cached); /* NULL is allowed */

/*
 * Cache row groups until no room is left or stop is set, so that the first queries after a start find them. Unreadable
 * parts are skipped: queries report them.
 */
void location_cache_fill(struct tables *t, const atomic_bool *stop);

void location_cache_register_metrics(void);

#endif
