/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_COMPACTION_MERGE_COMMIT_H
#define CAIRN_PROFILE_STORE_COMPACTION_MERGE_COMMIT_H

/**
 * @file
 * Commits a merge: removes its inputs from the table and adds its outputs.
 *
 * Threads: any; takes the writer lock.
 */
#include "profile-store/compaction/merge.h"
#include "profile-store/core/profile_store_internal.h"

/* The change that a merge makes to a table. */
struct replaced_parts {
        enum table table;
        struct table_part *const *parts;
        size_t part_count;
        bool loses_rows; /* rows were dropped on purpose (retention) */
        /*
         * Called before each attempt with the current tables, under the writer lock. Any status but ST_OK ends it.
         * NULL: none.
         */
        enum status (*check)(void *context, const struct tables *now, struct error *err);
        void *context;
        uint32_t done_rules; /* table_part.done_rules of the outputs, in addition to those common to all inputs */
};

/**
 * Commit, or else delete the outputs; when it is unknown whether the commit was made, or will be
 * (may_commit_appear()), they are left to the maintenance thread.
 * @return ST_OK; ST_NOT_FOUND when another commit removed an input; ST_BUSY when other writers kept committing; ST_OS;
 *         ST_NO_MEMORY.
 */
enum status commit_merge(struct profile_store *s, const struct replaced_parts *r, const struct merge_result *merged,
                         struct error *err) MUST_CHECK;

#endif
