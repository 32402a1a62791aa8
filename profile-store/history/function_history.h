/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_HISTORY_FUNCTION_HISTORY_H
#define CAIRN_PROFILE_STORE_HISTORY_FUNCTION_HISTORY_H

/**
 * @file
 * Keeps the table function_history equal to the samples of hours that are over.
 *
 * A pass derives the marked hours (history_marks.h) of a day from a snapshot of the tables and replaces their rows in
 * one commit, so an hour is in the history once, whatever is repeated after a crash. Then it commits the version of
 * samples up to which nothing is marked.
 *
 * - An hour is derived when it is over and got no samples for HISTORY_QUIET_S. Queries read the samples of marked
 *   hours, so they are exact meanwhile.
 * - If retention removed samples of an hour, deriving it yields fewer of them than the history has: its rows stay.
 * - When symbols of an object arrive, the hours that have it are derived again. Commits of re-symbolizations name the
 *   objects (TABLE_BUILD_IDS); the history has the version of locations up to which they were applied.
 * - The files of a day that is over are merged into one.
 *
 * Lock order: pass_lock before writer_lock, which is held for commits only.
 */
#include "profile-store/history/history_marks.h"
#include "profile-store/profile_store.h"

#define HISTORY_QUIET_S 300

struct function_history {
        pthread_mutex_t pass_lock; /* one pass at a time; protects the members below */
        int64_t next_pass_ns;      /* monotonic */
        uint64_t renamed_until;    /* version of locations whose renames are settled in memory */
        struct history_marks marks;
};

struct function_history *function_history_create(void); /* NULL without memory */
void function_history_destroy(struct function_history *h);

/** A pass when one is due; called by the thread of the compaction. Failures are logged and counted. */
void function_history_run_due(struct profile_store *s);

/** Register the metrics. */
void function_history_register_metrics(void);

#endif
