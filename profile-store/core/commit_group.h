/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_CORE_COMMIT_GROUP_H
#define CAIRN_PROFILE_STORE_CORE_COMMIT_GROUP_H

/**
 * @file
 * One commit of samples for several nodes (profile-store/handed_commits.h): which node makes it, what it takes from
 * others, and how a flush hands its own.
 *
 * A commit is handed or made alone; both rely on the same: no batch of it is committed, no removal has begun, the label
 * columns are the same, and the queue of its node is committed up to the position before its first. The holder checks
 * this against the version that it has read and commits as the version after it, as a flush does. So of a handed commit
 * and that of its node alone at most one is made, though the holder may be stopped for a day in between.
 *
 * Within one commit the node that makes it comes first, then others in the order of their arrival: one with a batch
 * that another one has is refused, and finds that batch committed when it looks again.
 *
 * A node without an answer commits alone, next time too, then twice as often before each further attempt, so a holder
 * that is away costs little. The queue of the node may be committed for it at any later time, as long as the commit is
 * in the hands of another one: s->handed is the last such position.
 *
 * Locks: the caller holds writer_lock, unless stated otherwise; the lock of the group is a leaf lock.
 */
#include "profile-store/core/offered_commit.h"
#include "profile-store/core/profile_store_internal.h"

struct commit_group;

#define GROUP_LEASES 10          /* the lease `commits` lasts so many times as others: nothing waits for its end */
#define GROUP_WINDOW_MS 1000     /* a commit for others begins so long after the first of them has arrived, at most */
#define GROUP_MEMBER_INTERVALS 3 /* of flushes: it begins at once when all nodes wait that handed one in this time */
#define GROUP_IS_DUE 1           /* profile_store.group_due_ns: at once */
#define GROUP_PAUSE_COMMITS 16   /* commits that are made alone, at most, before a holder is asked again */

/** ST_OK without a group unless the store has options.hand and shared tables. Without the lock. */
enum status commit_group_open(struct profile_store *s, struct error *err) MUST_CHECK;
/** Refuse what is offered, and let another node take the lease. Nobody else uses the store. */
void commit_group_close(struct profile_store *s);
/** Refuse what is offered, also later. Without the lock. */
void commit_group_stop(struct profile_store *s);

/** Of a flush that begins: wait until another one has its answer. Releases the lock meanwhile. */
void commit_group_begin_flush(struct profile_store *s);
/** Of a flush that ends: what it did not commit for others is committed now, or refused after a failure. */
void commit_group_end_flush(struct profile_store *s, enum status st, const struct error *err);
/** How long the next flush is delayed, in nanoseconds, so that it has what others hand after theirs. Any thread. */
int64_t commit_group_get_delay(struct profile_store *s);

/**
 * Commit samples, with those that other nodes have offered. As tables_commit(); change.included is set meanwhile.
 */
enum status commit_group_commit(struct profile_store *s, struct table_change *change, struct error *err) MUST_CHECK;

/** Whether another node makes commits now, to which a flush should hand its own. May ask the store for the lease. */
bool commit_group_has_holder(struct profile_store *s);

/**
 * Hand a commit to the holder and wait for its answer, without any lock of the caller.
 * @param text  of tables_write_commit() for a change that relies on base.
 */
enum hand_result commit_group_hand(struct profile_store *s, const struct handed_commit *base, const struct buf *text);

/** Before and after commit_group_hand(), with writer_lock. */
void commit_group_begin_hand(struct profile_store *s, uint64_t position, struct handed_commit *base_ret);
void commit_group_end_hand(struct profile_store *s, enum hand_result result);

/** Give up waiting for an offered commit; it is still made or refused. Without the lock; for tests of a lost request.
 */
void commit_group_abandon(struct profile_store *s, struct offered_commit *o);

#endif
