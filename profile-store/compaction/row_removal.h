/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_COMPACTION_ROW_REMOVAL_H
#define CAIRN_PROFILE_STORE_COMPACTION_ROW_REMOVAL_H

/**
 * @file
 * Row removal for retention: rewrites files without some of their rows, with the merge machinery. It runs at the pace
 * of merges, never at the same time as one, and commits like a merge, but with dataChange true since rows were removed.
 *
 * Threads: any, between begin and end. Implemented in compaction.c.
 */
#include "profile-store/compaction/compaction.h"
#include "profile-store/compaction/merge.h"

struct row_removal {
        enum table table;          /* samples or locations */
        int64_t day;               /* of samples */
        struct table_part **parts; /* of one partition; borrowed */
        size_t part_count;
        uint32_t done_rules; /* rules that select no row of the outputs */
        /* As part_merge_request.select_dropped. NULL: the parts are removed whole, without being read. */
        enum status (*select)(void *context, const struct part_file *f, uint32_t group, uint8_t *rows,
                              struct error *err);
        bool (*proceed)(void *context); /* false ends the work with ST_BUSY; may be NULL */
        void *context;                  /* for select and proceed */
};

/**
 * Begin: no merge and no other removal runs until compaction_end_removal().
 * @param proceed  polled while another one runs; false ends the wait. NULL: waits until the store is closed.
 * @return ST_BUSY when the wait was ended.
 */
enum status compaction_begin_removal(struct compaction *c, bool (*proceed)(void *context), void *context,
                                     struct error *err) MUST_CHECK;
void compaction_end_removal(struct compaction *c);

/** Whether a part was found unreadable; it is skipped until its file changes. */
bool compaction_leaves_part(struct compaction *c, const struct table_part *part);

/**
 * Handle a part that could not be read.
 * @return ST_OK: compaction_leaves_part() is true from now on; ST_NOT_FOUND: another writer removed it; any other
 *         failure is returned as passed in st.
 */
enum status compaction_note_unreadable(struct compaction *c, enum table table, const struct table_part *part,
                                       enum status st, struct error *err) MUST_CHECK;

/** Account for bytes read, and wait as the rate limit requires. @return ST_BUSY when the work must end. */
enum status compaction_proceed(struct compaction *c, const struct row_removal *removal, uint64_t bytes,
                               struct error *err) MUST_CHECK;

/**
 * Rewrite the parts without the selected rows; nothing is committed.
 * @return as compaction_remove_rows().
 */
enum status compaction_write_kept_rows(struct compaction *c, const struct tables *tables,
                                       const struct row_removal *removal, struct merge_result *ret,
                                       struct error *err) MUST_CHECK;

/**
 * Remove the selected rows of samples in one commit.
 * @param tables  the snapshot with the parts.
 * @param ret     free it with merge_result_deinit(). rows_read is 0 when a part to be rewritten was unreadable and
 *         kept.
 * @return ST_OK; ST_NOT_FOUND when another commit removed a part: plan again; ST_BUSY when the work must end, memory is
 *         refused, or other writers kept committing; ST_OS; ST_NO_MEMORY. Nothing has changed after a failure.
 */
enum status compaction_remove_rows(struct compaction *c, const struct tables *tables, const struct row_removal *removal,
                                   struct merge_result *ret, struct error *err) MUST_CHECK;

#endif
