/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_FLUSH_H
#define CAIRN_PROFILE_STORE_FLUSH_H

/**
 * @file
 * From the head to the tables.
 *
 * The batches are committed in groups, each bounded in memory and days
 * (LIMIT_FLUSH_BATCH_BYTES, LIMIT_FLUSH_DATES), oldest first. The three logs
 * cannot be committed together, so the order within a group makes it safe:
 *  1. locations that the table does not know: one lookup, one commit;
 *  2. stacks that their date does not know: one commit;
 *  3. samples: one commit that also says "flushed up to P", the last position
 *     of the group;
 *  4. batch ids are remembered;
 *  5. under the lock: new tables for scans, batches up to P out of the head;
 *  6. segments up to P are unlinked.
 * A crash before 3 leaves locations or stacks that no sample uses yet; the next
 * flush knows them and writes only what is missing. Parts are named by the
 * positions they cover, so the same work has the same name. After 3 the queue's
 * records up to P are known to be in the tables, and dropped at open.
 *
 * Progress: a group that fails for a reason other than the environment (disk,
 * descriptors, another writer, the state of the tables) is halved until it
 * succeeds; a batch that fails alone goes to the quarantine
 * (profile-store/quarantine.h) and the others go on. Halving n batches takes at
 * most log2(n) failures for each batch that is isolated, so every other batch
 * is in the tables when flush_once() returns ST_OK.
 *
 * Threads: the writer lock is taken inside.
 */
#include "profile-store/store_internal.h"

enum status flush_once(struct profile_store *s, struct error *err) MUST_CHECK;

/** The counters of flushes stand at 0 before the first. */
void flush_register_metrics(void);

#endif
