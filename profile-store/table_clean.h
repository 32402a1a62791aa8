/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_TABLE_CLEAN_H
#define CAIRN_PROFILE_STORE_TABLE_CLEAN_H

/**
 * @file
 * Unlinks the files of the tables that no reader needs.
 *
 * - A removed file goes once its removal, as the log dates it, is older than the
 *   grace period (struct table_logs). Then the log forgets it: its next
 *   checkpoint does not name it. A crash between the two repeats the unlink.
 * - A file that the log names neither as live nor as removed is an orphan: of a
 *   writer that was interrupted, or removed by a version that kept no record
 *   of removed files (it set the file's mtime at the removal). It goes once its mtime is
 *   older than the grace period and ORPHAN_LEAST_S; when it is younger than the
 *   opening of the store, a writer of this process may still be about to commit it, and it
 *   stays for ORPHAN_OPEN_S.
 *
 * Times are of the stable clock (common/stable_clock.h). A removal that the log dates in the future was made while a
 * clock was wrong: its file stays for the grace period from when this process first sees that.
 *
 * Call with the store's writer lock, and not while commits may be in the log that are not durable: after
 * store_reconcile() or file_sync_filesystem().
 */
#include "profile-store/tables.h"

#define ORPHAN_LEAST_S 900
#define ORPHAN_OPEN_S 86400

struct table_cleaning {
        uint64_t removed_files, removed_bytes; /* unlinked after their grace period */
        uint64_t orphans;                      /* unlinked */
};

/** Files that cannot be unlinked stay for the next call; the first failure is returned. ret may be NULL. */
enum status tables_unlink_removed(struct table_logs *l, struct table_cleaning *ret, struct error *err) MUST_CHECK;

/**
 * Delete the commits and checkpoints of the logs that are older than the grace period and the midnight (UTC) before it,
 * but for what a reader of today's versions needs (delta_table_clean_log()).
 */
enum status tables_clean_logs(struct table_logs *l, struct delta_log_cleaning *ret, struct error *err) MUST_CHECK;

/** Lists every folder of the tables. Looks for commits of others first. ret may be NULL. */
enum status tables_unlink_orphans(struct table_logs *l, struct table_cleaning *ret, struct error *err) MUST_CHECK;

#endif
