/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_COMPACTION_COMPACTION_H
#define CAIRN_PROFILE_STORE_COMPACTION_COMPACTION_H

/**
 * @file
 * Background compaction: merges small files of each partition (a day of samples or stacks, all locations) into larger
 * ones, while flushes, queries and re-symbolizations go on.
 *
 * A merge reads live parts of a snapshot, writes new parts, and commits them with one "remove the old, add the new"
 * under the writer lock. When another commit removed one of its inputs meanwhile, its outputs are deleted and the
 * next round plans anew. A merge of locations excludes re-symbolizations and ends when one waits, so that no old frame
 * comes back.
 *
 * Failures: a part that cannot be read, or that does not fit into the memory, is left alone until its file is replaced
 * or a restart. Any other failure postpones its partition for a minute, then two, up to an hour; other partitions go
 * on.
 *
 * Threads: a thread of low priority (cairn-compact), limited to COMPACTION_BYTES_PER_S read and written. Those of
 * several stores take turns.
 */
#include "profile-store/store_internal.h"

#define COMPACTION_BYTES_PER_S MiB(64)

/** Prepare a writable store, and start the thread unless options.compact_interval_ms is UINT64_MAX. */
enum status compaction_start(struct profile_store *s, struct error *err) MUST_CHECK;

/** After s->stopping is set. NULL is allowed. */
void compaction_stop(struct compaction *c);

/** Files of a snapshot, and their bytes, that are to be merged now. */
void compaction_measure_backlog(const struct tables *t, uint64_t *files_ret, uint64_t *bytes_ret);

#endif
