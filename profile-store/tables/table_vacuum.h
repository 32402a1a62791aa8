/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_TABLES_TABLE_VACUUM_H
#define CAIRN_PROFILE_STORE_TABLES_TABLE_VACUUM_H

/**
 * @file
 * Vacuum of the tables: removes files that no reader needs.
 *
 * - A file that the log removed is removed from the storage once its removal, by the time in the log, is older than the
 * grace period (struct table_logs). Then the log forgets it: its next checkpoint omits it. A crash between the two
 * repeats the removal.
 * - A file that the log names neither as live nor as removed is an orphan: left by an interrupted writer, or removed by
 *   a version that kept no record of removed files (it set the file's mtime at the removal). It is removed once it was
 *   put longer ago than the grace period and ORPHAN_LEAST_S; if it is younger than the opening of the store, a writer
 *   of this process may still be about to commit it, and it is kept for ORPHAN_OPEN_S.
 *
 * Times are of the clock of the storage. A removal dated in the future was made while a clock was wrong: its file is
 * kept for the grace period from when this process first reads that date.
 *
 * Call with the store's writer lock, and only after store_reconcile() or file_sync_filesystem(): the log must have no
 * commits that are not durable.
 */
#include "profile-store/tables/tables.h"

#define ORPHAN_LEAST_S 900
#define ORPHAN_OPEN_S 86400

struct table_vacuum_counts {
        uint64_t removed_files, removed_bytes; /* unlinked after their grace period */
        uint64_t orphans;                      /* unlinked */
};

/** Files that cannot be unlinked are kept for the next call; returns the first failure. ret may be NULL. */
enum status tables_vacuum_removed(struct table_logs *l, struct table_vacuum_counts *ret, struct error *err) MUST_CHECK;

/**
 * Delete the commits and checkpoints of the logs that are older than the grace period and the midnight (UTC) before it,
 * except those needed by readers of the current versions (delta_table_clean_up_log()).
 */
enum status tables_clean_up_logs(struct table_logs *l, struct delta_log_cleanup *ret, struct error *err) MUST_CHECK;

/** Lists every folder of the tables, after loading commits of other writers. ret may be NULL. */
enum status tables_vacuum_orphans(struct table_logs *l, struct table_vacuum_counts *ret, struct error *err) MUST_CHECK;

#endif
