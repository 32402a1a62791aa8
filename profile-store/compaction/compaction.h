/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_COMPACTION_COMPACTION_H
#define CAIRN_PROFILE_STORE_COMPACTION_COMPACTION_H

/**
 * @file
 * Background compaction: merges small files of each partition (a day of samples or stacks, all locations) into larger
 * ones while flushes, queries and re-symbolizations continue.
 *
 * A merge reads live parts of a snapshot, writes new parts, and commits "remove the old, add the new" as one change
 * under the writer lock. When another commit removed one of its inputs meanwhile, its outputs are deleted and the next
 * round plans again. A merge of locations excludes re-symbolizations and ends when one is waiting: otherwise it could
 * restore old frames.
 *
 * Failures: a part that cannot be read, or that needs too much memory, is skipped until its file changes or the process
 * restarts. Any other failure postpones its partition for one minute, then two, up to an hour; other partitions
 * continue.
 *
 * Threads: one thread of low priority (cairn-compact) for each store, limited to COMPACTION_BYTES_PER_S read and
 * written. The threads of several stores take turns.
 */
#include "profile-store/core/profile_store_internal.h"

#define COMPACTION_BYTES_PER_S MiB(64)

/** Prepare a writable store, and start the thread unless options.compact_interval_ms is UINT64_MAX. */
enum status compaction_start(struct profile_store *s, struct error *err) MUST_CHECK;

/** Call after setting s->stopping. NULL is allowed. */
void compaction_stop(struct compaction *c);

/** Count the files of a snapshot that are due to be merged, and their bytes. */
void compaction_measure_backlog(const struct tables *t, uint64_t *files_ret, uint64_t *bytes_ret);

#endif
