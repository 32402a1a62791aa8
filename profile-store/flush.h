/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_FLUSH_H
#define CAIRN_PROFILE_STORE_FLUSH_H

/**
 * @file
 * From the head to the tables.
 *
 * The three logs cannot be committed together, so the order makes it safe:
 *  1. seal the queue; take the synced batches, the last one at position P;
 *  2. locations that the table does not know: one lookup, one part, one commit;
 *  3. stacks that their date does not know: one part a date, one commit;
 *  4. samples: one part a date, one commit that also says "flushed up to P";
 *  5. batch ids are remembered;
 *  6. under the lock: new tables for scans, batches up to P out of the head;
 *  7. segments up to P are unlinked.
 * A crash before 4 leaves locations or stacks that no sample uses yet; the next
 * flush knows them and writes only what is missing. Parts are named by the
 * positions they cover, so the same work has the same name. After 4 the queue's
 * records up to P are known to be in the tables, and dropped at open.
 *
 * Threads: the writer lock is taken inside.
 */
#include "profile-store/store_internal.h"

enum status flush_once(struct profile_store *s, struct error *err) MUST_CHECK;

/** The counters of flushes stand at 0 before the first. */
void flush_register_metrics(void);

#endif
