/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_COMPACTION_LOCATION_SWEEP_H
#define CAIRN_PROFILE_STORE_COMPACTION_LOCATION_SWEEP_H

/**
 * @file
 * Mark and sweep of the table `locations`: removes rows that no file of `stacks` refers to any more.
 *
 * Problem: locations are shared by all days, so retention, which removes whole days of samples and stacks, cannot tell
 * which locations became unused; and a flush writes no row for a location that the table has (known_rows.h).
 *
 * Model: the ids of a snapshot are marked in N passes, pass i handling the ids whose hash is i modulo N: the ids of
 * `locations` are put into a map, the references of `stacks` mark them, and one bit per row of `locations` records
 * whether it is used. Files with unused rows are then rewritten without them, one by one, and replaced in one commit
 * whose dataChange is true.
 *
 * Invariants, so that no sample loses a location:
 * 1. Only ids that no file of `stacks` of the snapshot refers to are removed. A file of `stacks` that cannot be read,
 *    and may be restored, ends the sweep; one that left the table meanwhile no longer counts.
 * 2. A file of `stacks` added after the snapshot refers to locations that the table had when it was flushed. Such files
 *    are read before the commit, the last ones under the writer lock; a reference to an id to be removed ends the
 *    sweep, which is retried later.
 * 3. A flush decides under the writer lock which locations to write, and keeps the lock until it has committed the
 *    stacks. Under the same lock the commit of the sweep clears the cache of known locations, so a later flush writes
 *    those that it needs. Queued batches that need an id to be removed end the sweep too; this is not required for
 *    correctness, but saves writing the row again.
 * 4. Merges and re-symbolizations of locations are excluded from the first file written to the commit; a
 *    re-symbolization that waits ends the sweep.
 * A crash leaves only files that no log names.
 *
 * Rejected: sweeping within compaction's merges of locations, which would have to mark before each merge; reference
 * counts, which every flush and retention would have to keep exact.
 *
 * Memory, of MEMORY_COMPACTION: a map of SWEEP_PASS_IDS ids, one bit per row, eight bytes per removed id, and one row
 * group. When memory for the map is refused, the marking starts again with passes of half the size.
 * Threads: any; one sweep at a time.
 */
#include "profile-store/core/expiry.h"

#define SWEEP_PASS_IDS (UINT64_C(1) << 20)
#define SWEEP_MOST_IDS (UINT64_C(1) << 22) /* removed at most at once; the rest is left to the next sweep */
#define SWEEP_INTERVAL_S 86400

struct sweep_request {
        uint64_t pass_ids, most_ids;    /* 0: the constants above */
        bool (*proceed)(void *context); /* false ends the sweep with ST_BUSY; NULL: runs until the store is closed */
        /*
         * Called between files during marking, without locks: lets other work run, merges of locations excepted. False
         * ends the sweep with ST_BUSY. NULL: never called.
         */
        bool (*pause)(void *context);
        void *context; /* for proceed and pause */
};

struct sweep_result {
        struct expired_day removed; /* of TABLE_LOCATIONS; files, rewritten and rows are 0 when all locations are in
                                       use */
        bool has_more;              /* most_ids were removed and more are unused */
};

/**
 * @param ret  set on success only.
 * @return ST_OK; ST_BUSY when it gave way to a flush, a re-symbolization or a merge, was interrupted, or memory was
 *         refused: retry later; ST_BAD_DATA, ST_UNSUPPORTED, ST_TOO_BIG or ST_OS when a file of stacks cannot be read,
 *         or one of locations not be written; ST_NO_MEMORY. Nothing is removed after a failure.
 */
enum status location_sweep_run(struct profile_store *s, const struct sweep_request *request, struct sweep_result *ret,
                               struct error *err) MUST_CHECK;

/**
 * Sweep when retention has removed stacks since the last sweep. Failures are logged and counted, and the compaction
 * thread retries them.
 * @param is_forced  do not wait for SWEEP_INTERVAL_S to pass.
 * @param removed  incremented by the removed rows; may be NULL.
 */
void location_sweep_run_if_due(struct profile_store *s, const struct sweep_request *request, bool is_forced,
                               struct expiry *removed);

void location_sweep_register_metrics(void);

#endif
