/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_COMPACTION_ROW_REMOVAL_H
#define CAIRN_PROFILE_STORE_COMPACTION_ROW_REMOVAL_H

/**
 * @file
 * Retention by the means of compaction: files are merged without some of their rows, at the pace of merges
 * and never beside one, and committed like a merge, except that the commit says that rows went (dataChange true).
 *
 * Threads: between begin and end; compaction.c implements it.
 */
#include "profile-store/compaction/compaction.h"
#include "profile-store/compaction/merge.h"

struct row_removal {
        enum table table;          /* samples or locations */
        int64_t day;               /* of samples */
        struct table_part **parts; /* of one partition; borrowed */
        size_t part_count;
        uint32_t done_rules; /* these rules select no row of the outputs */
        /* As merge_request.select_dropped. NULL: the parts go with all their rows, and are not read. */
        enum status (*select)(void *context, const struct part_file *f, uint32_t group, uint8_t *rows,
                              struct error *err);
        bool (*proceed)(void *context); /* false ends the work with ST_BUSY; may be NULL */
        void *context;                  /* of both */
};

/**
 * No merge and no other removal runs until end.
 * @param proceed  asked again and again while another one runs; false ends the wait. NULL: until the store is closed.
 * @return ST_BUSY when the wait was ended.
 */
enum status compaction_begin_removal(struct compaction *c, bool (*proceed)(void *context), void *context,
                                     struct error *err) MUST_CHECK;
void compaction_end_removal(struct compaction *c);

/** Whether a part was found to be unreadable, and is left as it is until its file is another one. */
bool compaction_leaves_part(struct compaction *c, const struct table_part *part);

/**
 * Handle a part that could not be read.
 * @return ST_OK: compaction_leaves_part() is true from now on; ST_NOT_FOUND: another writer removed it; st for another
 *         failure.
 */
enum status compaction_note_unreadable(struct compaction *c, enum table table, const struct table_part *part,
                                       enum status st, struct error *err) MUST_CHECK;

/** Account for bytes read, and wait as the pace demands. @return ST_BUSY when the work is to end. */
enum status compaction_proceed(struct compaction *c, const struct row_removal *removal, uint64_t bytes,
                               struct error *err) MUST_CHECK;

/**
 * Write the parts again without the selected rows; nothing is committed.
 * @return as of compaction_remove_rows().
 */
enum status compaction_write_kept_rows(struct compaction *c, const struct tables *tables,
                                       const struct row_removal *removal, struct merge_result *ret,
                                       struct error *err) MUST_CHECK;

/**
 * Remove the selected rows of samples in one commit.
 * @param tables  the snapshot with the parts.
 * @param ret     merge_result_deinit() it; without any rows_read a part that was to be rewritten is left as it is.
 * @return ST_OK; ST_NOT_FOUND when another commit removed a part: plan anew; ST_BUSY when the work is to end, memory is
 *         refused, or other writers kept committing; ST_OS; ST_NO_MEMORY. Then nothing has changed.
 */
enum status compaction_remove_rows(struct compaction *c, const struct tables *tables, const struct row_removal *removal,
                                   struct merge_result *ret, struct error *err) MUST_CHECK;

#endif
