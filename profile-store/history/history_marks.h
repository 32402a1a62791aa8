/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_HISTORY_HISTORY_MARKS_H
#define CAIRN_PROFILE_STORE_HISTORY_HISTORY_MARKS_H

/**
 * @file
 * Which hours have samples that function_history lacks.
 *
 * An hour is marked by each commit that adds samples of it, with the version of the commit in the log of samples. It is
 * derived again from all committed samples of the hour, and loses its mark if no later commit added samples meanwhile.
 * Nothing is stored for this: marks are read from the log, from the version on that function_history covers
 * (tables.covered), so that they are complete after a crash. Commits that remove samples mark nothing: the history
 * outlives its samples.
 *
 * Threads: any; marks have a lock of their own, which is held while commits are read.
 */
#include <pthread.h>

#include "profile-store/delta/delta_log.h"
#include "profile-store/tables/tables.h"

struct history_mark {
        int64_t hour;         /* since 1970 */
        uint64_t first, last; /* versions of the commits; first is 0 if unknown */
        int64_t touched_ns;   /* monotonic: when the last one was read */
        int64_t postponed_ns; /* monotonic: not to be derived before */
};

struct history_marks {
        pthread_mutex_t lock;
        bool is_started;
        uint64_t replacements;      /* of the tables whose commits were read */
        uint64_t until;             /* version up to which commits were read */
        struct history_mark *items; /* by hour; owned */
        size_t count, capacity;
};

void history_marks_init(struct history_marks *m);
void history_marks_deinit(struct history_marks *m);

/**
 * Read the commits up to the version of t.
 * @param samples    log of the table.
 * @param rebuilds   without a covered version, or if commits were deleted meanwhile: mark all hours that have samples,
 *                   or those since the newest hour of the history. Otherwise this is ST_NOT_FOUND.
 */
enum status history_marks_update(struct history_marks *m, struct delta_table *samples, const struct tables *t,
                                 bool rebuilds, struct error *err) MUST_CHECK;

/** Hours whose rows were derived from a version of samples. */
void history_marks_settle(struct history_marks *m, const int64_t *hours, size_t count, uint64_t version);

/** Do not derive an hour before a monotonic time. */
void history_marks_postpone(struct history_marks *m, int64_t hour, int64_t until_ns);

/** The version of samples that the history covers: nothing up to it is marked. -1: none. */
int64_t history_marks_get_covered(struct history_marks *m);

/** Whether an hour has samples later than a version. */
bool history_marks_has_later(struct history_marks *m, int64_t hour, int64_t version);

/** A copy of the marks; owned by the caller. */
enum status history_marks_copy(struct history_marks *m, struct history_mark **ret, size_t *count_ret,
                               struct error *err) MUST_CHECK;

#endif
