/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_HANDED_COMMITS_H
#define CAIRN_PROFILE_STORE_HANDED_COMMITS_H

/**
 * @file
 * Commits of samples that one node makes for several.
 *
 * A node that has written the files of a flush hands its commit, as text of the log, to the holder of the lease
 * `commits`. The holder makes one commit of what arrives within a second, with one transaction for each node, and
 * answers with its version. A node without an answer reads the log, and commits by itself what is not there.
 *
 * Which of the two commits is made is decided by the log alone: both are made only as the version after one in which
 * the node's queue has been committed up to `after`, so one of them excludes the other, whoever has the lease, and
 * however late the holder goes on. The lease saves requests, and nothing else (core/commit_group.h).
 *
 * Threads: any.
 */
#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "profile-store/delta/delta_log.h"
#include "profile-store/profile_store.h"

/** On what a handed commit relies: the table must still be so in the version before it. */
struct handed_commit {
        char holder[17];                  /* identity of the node that is asked to make it */
        char tables[DELTA_TABLE_ID_SIZE]; /* id of the table of samples */
        uint64_t after;                   /* up to here the tables have the queue of the node */
        int64_t removal;                  /* number of the last removal that has begun; -1: none */
        uint64_t columns;                 /* number of label columns */
};

#define HAND_ANSWER_MS 5000       /* the node that hands waits so long */
#define HAND_ANSWER_AFTER_MS 4000 /* and the holder answers by then */

struct offered_commit;

/**
 * Give a store a commit of another node, which its next flush makes. Everything in it is checked, as input from anyone:
 * it may only add files of the node's next position, which exist, for the node's own transaction.
 * @param text  as delta_commit() writes it; copied.
 * @param ret   to be given to profile_store_await_commit().
 * @return ST_OK; ST_NOT_FOUND when this node does not make commits for others; ST_BAD_DATA or ST_TOO_BIG for a commit
 *         that no node of this version hands; ST_USAGE for other tables; ST_BUSY when too many wait, or the store is
 *         being closed; ST_OS when the store does not answer.
 */
enum status profile_store_offer_commit(struct profile_store *store, const struct handed_commit *h, const void *text,
                                       size_t n, struct offered_commit **ret, struct error *err) MUST_CHECK;

/**
 * Wait until an offered commit is made or refused; it is freed in either case.
 * @param is_refused_ret  set with ST_BUSY for a commit that is certainly not made, because the table is not as it
 *         relies on, or another one of the same commit has one of its batches.
 * @return ST_OK with the version of the log; ST_TIMEOUT: it is withdrawn, or its commit is under way; ST_BUSY; ST_OS
 * when it may have been made.
 */
enum status profile_store_await_commit(struct profile_store *store, struct offered_commit *o, uint64_t timeout_ms,
                                       uint64_t *version_ret, bool *is_refused_ret, struct error *err) MUST_CHECK;

#endif
