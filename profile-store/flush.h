/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_FLUSH_H
#define CAIRN_PROFILE_STORE_FLUSH_H

/**
 * @file
 * Flush: writes the batches of the head to the tables.
 *
 * Batches are committed in groups, each bounded in memory and days
 * (LIMIT_FLUSH_BATCH_BYTES, LIMIT_FLUSH_DATES), oldest first. The three logs
 * cannot be committed together, so the order within a group makes it safe:
 *  1. locations that the table lacks: looked up in slices, one commit;
 *  2. stacks that their day lacks: one commit;
 *  3. samples: one commit that also records P, the last position of the group,
 *     as flushed;
 *  4. batch ids are remembered;
 *  5. under the lock: scans get the new tables, batches up to P leave the head;
 *  6. segments up to P are unlinked.
 * A crash before 3 leaves locations or stacks that no sample uses yet; the next
 * flush finds them and writes only missing ones. Part names derive from the
 * positions covered, so repeated work replaces its files. After 3, replay drops
 * the records up to P.
 *
 * Progress: a group that fails for a reason other than the environment (disk,
 * descriptors, another writer, the state of the tables) is halved until it
 * succeeds; a batch that fails alone is moved to the quarantine
 * (profile-store/queue/quarantine.h), and the others proceed. Halving n batches takes at
 * most log2(n) failures for each batch that is isolated, so every other batch
 * is in the tables when store_flush() returns ST_OK.
 *
 * Flushes of all stores of a process share memory. So a batch that lacked it alone is tried again while no other store
 * flushes, before it goes to the quarantine.
 *
 * Threads: the writer lock is taken inside.
 */
#include "profile-store/store_internal.h"

enum status store_flush(struct profile_store *s, struct error *err) MUST_CHECK;

/** End the claim of memory that a batch without it has left; when the store is closed. */
void store_end_memory_claim(struct profile_store *s);

/** Register the counters, so that they are shown as 0 before the first flush. */
void flush_register_metrics(void);

#endif
