/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_CORE_FLUSH_H
#define CAIRN_PROFILE_STORE_CORE_FLUSH_H

/**
 * @file
 * Flush: writes the batches of the head to the tables.
 *
 * Batches are committed in groups, oldest first, each bounded in memory and days (LIMIT_FLUSH_BATCH_BYTES,
 * LIMIT_FLUSH_DATES). The three logs cannot be committed together; the order of the steps within a group makes it safe:
 *  1. locations that the table lacks: looked up in slices, one commit;
 *  2. stacks that their day lacks: one commit;
 *  3. samples: one commit that also records P, the last position of the group,
 *     as flushed;
 *  4. batch ids are remembered;
 *  5. under the lock: scans get the new tables, batches up to P are removed from the head;
 *  6. segments up to P are unlinked.
 * A crash before step 3 leaves locations or stacks that no sample uses yet; the next flush finds them and writes only
 * missing ones. Part names derive from the covered positions, so repeated work replaces its files. After step 3, replay
 * drops the records up to P.
 *
 * Progress: a group that fails for a reason other than the environment (disk, descriptors, another writer, the state of
 * the tables) is halved until it succeeds; a batch that fails alone is moved to the quarantine
 * (profile-store/queue/quarantine.h), and the others proceed. Halving n batches takes at most log2(n) failures for each
 * isolated batch, so every other batch is in the tables when store_flush() returns ST_OK.
 *
 * Flushes of all stores of a process share memory. A batch that alone ran out of memory is therefore retried while no
 * other store flushes, before it is quarantined.
 *
 * Threads: any; takes the writer lock.
 */
#include "profile-store/core/profile_store_internal.h"

enum status store_flush(struct profile_store *s, struct error *err) MUST_CHECK;

/**
 * Of a group that waits for another node: release the locks of the flush meanwhile, which holds its turn with others.
 * Other flushes of the store wait.
 */
void flush_release_locks(struct profile_store *s);
void flush_take_locks(struct profile_store *s);

/** Release the memory claim that a batch without memory left; called when the store is closed. */
void store_end_memory_claim(struct profile_store *s);

/** Register the counters, so that they are shown as 0 before the first flush. */
void flush_register_metrics(void);

#endif
