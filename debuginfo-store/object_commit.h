/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DEBUGINFO_STORE_OBJECT_COMMIT_H
#define CAIRN_DEBUGINFO_STORE_OBJECT_COMMIT_H

/**
 * @file
 * Group commit: changes of the table of objects (object_table.h) that wait at the same time are one commit.
 *
 * A thread takes the waiting changes, at most OBJECT_COMMIT_CHANGES of them and one of each name, holds the lock
 * `publish` of the store, lets each prepare itself, commits them, and applies each to the records of this node. It
 * begins when nothing else is expected soon: as many changes wait as uploads are being finished, or the first one has
 * waited for OBJECT_COMMIT_WAIT_MS.
 *
 * Threads: any.
 */
#include <sys/queue.h>

#include "debuginfo-store/object_table.h"

#define OBJECT_COMMIT_CHANGES 512
#define OBJECT_COMMIT_WAIT_MS 2000
#define OBJECT_COMMIT_LATER_MS 5000 /* for changes that nobody waits for */

struct object_commit {
        struct object_name name;
        /*
         * Fill in the change, or return why there is none: ST_BUSY or another status that the waiting call returns.
         * Called with the lock `publish`. NULL: `change` is set.
         */
        enum status (*prepare)(struct object_commit *c, struct error *err);
        /* After the commit, with the lock: change the records of this node. NULL: nothing to do. */
        enum status (*apply)(struct object_commit *c, struct error *err);
        void (*free)(struct object_commit *c); /* of object_commits_add_later(): when it is done */
        struct object_change change;

        /* Results. */
        enum status result;
        struct error error;
        bool is_prepared; /* false: the change was in no commit, also when the result is ST_OS */

        /* Of the implementation. */
        TAILQ_ENTRY(object_commit) waiting;
        int64_t since_ns;
        bool is_done;
};

struct object_commits;

/** @param publish  borrowed lock. Counts commits in metrics. */
enum status object_commits_start(struct object_table *table, pthread_mutex_t *publish, struct object_commits **ret,
                                 struct error *err) MUST_CHECK;
/** Commits what waits. NULL is allowed. */
void object_commits_stop(struct object_commits *c);

/** Make a change. Returns when it is durable in the table, or the status of prepare(). Without the lock `publish`. */
enum status object_commits_run(struct object_commits *c, struct object_commit *change, struct error *err) MUST_CHECK;

/**
 * Make changes of different names at once, so that they are few commits. Each has its `result` and `error` afterwards,
 * as of object_commits_run().
 */
void object_commits_run_all(struct object_commits *c, struct object_commit *const *changes, size_t count);

/** Make a change within some seconds, in the next commit. A failure is logged by nobody: the change is then lost. */
void object_commits_add_later(struct object_commits *c, struct object_commit *change);

/** An upload is being finished, so a change will come; or it came, or will not. */
void object_commits_expect(struct object_commits *c, int count);

#endif
