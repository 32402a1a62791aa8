/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_CORE_FLUSH_GROUP_H
#define CAIRN_PROFILE_STORE_CORE_FLUSH_GROUP_H

/**
 * @file
 * A group of a flush: consecutive batches that are committed together, one commit per table, in the order that
 * flush.h states.
 *
 * Two flags attribute a failure. `blames_batches` is false while known rows are read from the tables and after the
 * commit of the samples: such a failure is not due to the batches. `committing` is set by the first attempt of a
 * commit: after a failure s->behind is set, and store_reconcile() reads from the logs what was committed.
 *
 * Threads: the caller holds the writer lock of the store.
 */
#include "profile-store/core/profile_store_internal.h"

#define SHARED_COMMIT_ATTEMPTS 20 /* of a step of a flush, while other nodes commit to the same table */

struct flush_group {
        struct profile_store *s;
        struct batch *const *batches;
        size_t batch_count;
        uint64_t first, last;             /* positions */
        bool blames_batches;              /* a failure now is caused by the batches, not disk or tables */
        bool committing;                  /* a commit was attempted: the logs may be ahead of s->tables */
        bool is_alone;                    /* it has the turn of flushes alone, which it cannot give up */
        bool lost_race;                   /* the last commit: another node committed to the table first */
        int64_t removal;                  /* number of the last removal that has begun before the lookups */
        bool must_restart;                /* a commit of another node concerns what was looked up before */
        char node[NODE_ID_SIZE + 1];      /* "" or "NODE-", at the start of names */
        char attempt[10];                 /* "" or "-RANDOM", at their end */
        struct memory_reservation memory; /* of the arrays below and of called functions */
        uint64_t unresolved_counts[SYMBOL_STATE_COUNT]; /* new locations by state */
        struct wanted_object *missing;                  /* of new locations that lack debuginfo */
        size_t missing_count, missing_capacity;
        struct sample_row *samples; /* sorted by day, then in the order of a part */
        size_t sample_count;
        size_t column_count;    /* label columns of the files of samples */
        struct table_add *adds; /* of the current commit */
        size_t add_count, add_capacity;
};

/**
 * Write and commit the batches of the group, publish the tables and release the segments.
 *
 * The caller sets s, batches, batch_count, first, last, removal and memory.use.
 *
 * @return ST_BUSY with must_restart: nothing was committed, begin again with the tables that were followed meanwhile.
 */
enum status flush_group_commit(struct flush_group *g, struct error *err) MUST_CHECK;

/** Remember the ids of the group's batches as flushed, durably. */
enum status flush_group_remember_ids(struct flush_group *g, struct error *err) MUST_CHECK;

void flush_group_deinit(struct flush_group *g);

/** ST_BUSY while the store is being closed: shutdown waits for at most one file, since queued batches are durable. */
enum status flush_check_stopping(struct profile_store *s, struct error *err) MUST_CHECK;

/** Register the counters, so that they are shown as 0 before the first flush. */
void flush_group_register_metrics(void);

#endif
