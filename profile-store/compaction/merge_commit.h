/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_COMPACTION_MERGE_COMMIT_H
#define CAIRN_PROFILE_STORE_COMPACTION_MERGE_COMMIT_H

/**
 * @file
 * The commit of a merge: its inputs leave the table and its outputs enter it.
 *
 * Threads: any; takes the writer lock.
 */
#include "profile-store/compaction/merge.h"
#include "profile-store/store_internal.h"

/* What a merge replaces. */
struct replaced_parts {
        enum table table;
        struct table_part *const *parts;
        size_t part_count;
        bool loses_rows; /* the outputs lack rows on purpose: retention */
        /* Called before each attempt, with the writer lock and the tables as they are: other than ST_OK ends it. NULL:
         * none. */
        enum status (*check)(void *context, const struct tables *now, struct error *err);
        void *context;
        uint32_t done_rules; /* table_part.done_rules of the outputs, besides what all inputs have in common */
};

/**
 * Commit, or else delete the outputs; when it is not known whether the commit was made, they are left to the
 * maintenance thread.
 * @return ST_OK; ST_NOT_FOUND when another commit removed an input; ST_BUSY when other writers kept committing; ST_OS;
 *         ST_NO_MEMORY.
 */
enum status commit_merge(struct profile_store *s, const struct replaced_parts *r, const struct merge_result *merged,
                         struct error *err) MUST_CHECK;

/** The part of this name in a snapshot, borrowed; NULL without one. */
struct table_part *find_live_part(const struct tables *t, enum table table, const char *name);

#endif
