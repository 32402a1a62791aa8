/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_COMPACTION_LOCATION_SWEEP_H
#define CAIRN_PROFILE_STORE_COMPACTION_LOCATION_SWEEP_H

/**
 * @file
 * Mark and sweep of the table `locations`: rows that no file of `stacks` refers to any more leave it.
 *
 * Problem: locations are shared by all days, so retention, which removes whole days of samples and stacks, cannot know
 * which locations went with them; and a flush writes no row for a location that the table has (known_rows.h).
 *
 * Model: a snapshot is marked, a share of the ids at a time (of N passes, pass i handles the ids whose hash is i modulo
 * N): the ids of `locations` go into a map, the references of `stacks` mark them, and for each row of `locations` one
 * bit says whether it is used. Then the files with unused rows are written again without them, one by one, and
 * replaced in one commit whose dataChange is true.
 *
 * Invariants, so that no sample loses a location:
 * 1. Only ids that no file of `stacks` of the snapshot refers to are removed. A file of `stacks` that cannot be read,
 *    and may be restored, ends the sweep; one that left the table meanwhile refers to nothing any more.
 * 2. A file of `stacks` that came after the snapshot refers to locations that the table had when it was flushed. Such
 *    files are looked at before the commit, the last ones under the writer lock; one that refers to an id that is to be
 *    removed ends the sweep, which is tried again later.
 * 3. A flush decides under the writer lock which locations to write, and keeps the lock until it has committed the
 *    stacks. The commit of the sweep makes the writer forget, under the same lock, which locations it knows, so a flush
 *    after it writes those that it needs. Queued batches that need an id that is to be removed end the sweep too, which
 *    is no condition: it saves writing the row again.
 * 4. Merges and re-symbolizations of locations are excluded from the first file that is written to the commit; a
 *    re-symbolization that waits ends the sweep.
 * What a crash leaves are files that no log names.
 *
 * Rejected: a sweep within compaction's merges of locations, which would have to mark before each of them; counting
 * references, which every flush and retention would have to keep exact.
 *
 * Memory, of MEMORY_COMPACTION: a map of SWEEP_PASS_IDS ids, a bit for each row, eight bytes for each id that is
 * removed, and a row group. The passes are halved when the map is refused memory.
 * Threads: any; one sweep at a time.
 */
#include "profile-store/retention.h"

#define SWEEP_PASS_IDS (UINT64_C(1) << 20)
#define SWEEP_MOST_IDS (UINT64_C(1) << 22) /* removed at once; the rest is left to the next sweep */
#define SWEEP_INTERVAL_S 86400

struct sweep_request {
        uint64_t pass_ids, most_ids;    /* 0: those above */
        bool (*proceed)(void *context); /* false ends the sweep with ST_BUSY; NULL: until the store is closed */
        /* Between files while they are marked, with no lock held: time for other work, but merges of locations. False
           ends the sweep with ST_BUSY. NULL: no other work. */
        bool (*pause)(void *context);
        void *context; /* of both */
};

struct sweep_result {
        struct expired_day removed; /* of TABLE_LOCATIONS; zero files, rewritten and rows: all are in use */
        bool has_more;              /* most_ids were removed, and others are left */
};

/**
 * @param ret  set on success only.
 * @return ST_OK; ST_BUSY when it gave way to a flush, a re-symbolization or a merge, was ended, or memory was refused:
 *         retry later; ST_BAD_DATA, ST_UNSUPPORTED, ST_TOO_BIG or ST_OS when a file of stacks cannot be read, or one of
 *         locations not be written; ST_NO_MEMORY. Nothing was removed then.
 */
enum status location_sweep_run(struct profile_store *s, const struct sweep_request *request, struct sweep_result *ret,
                               struct error *err) MUST_CHECK;

/**
 * Sweep when retention has removed stacks since the last sweep.
 * @param is_forced  not only once in SWEEP_INTERVAL_S.
 * @param removed  what went is added; NULL: nobody asks.
 * Failures are logged, counted, and tried again by the compaction's thread.
 */
void location_sweep_run_if_due(struct profile_store *s, const struct sweep_request *request, bool is_forced,
                               struct expiry *removed);

void location_sweep_register_metrics(void);

#endif
