/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PIPELINE_UNRESOLVED_COUNTS_H
#define CAIRN_PIPELINE_UNRESOLVED_COUNTS_H

/**
 * @file
 * The metric cairn_unresolved_samples: samples with an unresolved location by reason, as of the last count of each
 * store (`after`) and the one before it (`before`).
 *
 * A count reads all samples of a store. After an automatic re-symbolization it is done on a separate thread, so that
 * new names and the next round do not wait for it. Its cost is bounded: low priority, the memory of one query,
 * COUNT_TIMEOUT_S per store, and after each run of the thread a pause of COUNT_PAUSE_FACTOR times its duration; changes
 * during the pause share the next run. A count is retried after the pause if other work has the memory for queries.
 *
 * Threads: any, except start and stop.
 */
#include "common/threads/work_meter.h"
#include "profile-store/profile_store.h"

struct unresolved_counts;

/** @param stores  borrowed. */
enum status unresolved_counts_start(struct profile_store *const *stores, size_t store_count,
                                    struct unresolved_counts **ret, struct error *err) MUST_CHECK;
/** Cancels a running count. NULL is allowed, as below. */
void unresolved_counts_stop(struct unresolved_counts *u);

/** Locations of the stores were re-symbolized: count their samples soon. */
void unresolved_counts_request(struct unresolved_counts *u);

/** Set the counts of one of the stores, which the caller counted before and after a re-symbolization. */
void unresolved_counts_set(struct unresolved_counts *u, const struct profile_store *store,
                           const uint64_t before[static SYMBOL_STATE_COUNT],
                           const uint64_t after[static SYMBOL_STATE_COUNT]);

/** Count the samples of a store with an unresolved location, by reason. @param meter  NULL: no time limit. */
enum status count_unresolved_samples(struct profile_store *store, struct work_meter *meter,
                                     uint64_t ret[static SYMBOL_STATE_COUNT], struct error *err) MUST_CHECK;

#endif
