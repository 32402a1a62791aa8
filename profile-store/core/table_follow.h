/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_CORE_TABLE_FOLLOW_H
#define CAIRN_PROFILE_STORE_CORE_TABLE_FOLLOW_H

/**
 * @file
 * From one state of the tables to the next: after a commit of this process, after a failure, and, when other nodes
 * write the same tables, after commits of theirs.
 *
 * s->tables and the head change together, so that a scan sees each sample once: batches up to `flushed` are in the
 * tables, and so are those whose ids another node committed.
 *
 * Locks: the caller holds writer_lock, unless stated otherwise.
 */
#include "profile-store/core/profile_store_internal.h"

/** Whether other nodes write the tables, too. Any thread. */
static inline bool has_shared_tables(const struct profile_store *s)
{
        return *s->logs.node;
}

/** Whether scans follow tables that other nodes write. Any thread. */
static inline bool has_followed_tables(const struct profile_store *s)
{
        return has_shared_tables(s) || s->is_replica;
}

/**
 * Whether a commit that failed may be in the log later, although it is not there now: an object store may make a write
 * whose answer was lost at any time. The files of such a commit stay; vacuum removes those that no commit names.
 */
static inline bool may_commit_appear(const struct profile_store *s, enum status failure)
{
        return failure == ST_OS && has_shared_tables(s);
}

/** Read what other nodes committed. ST_USAGE when another process has this node's identity. */
enum status store_follow_tables(struct profile_store *s, struct error *err) MUST_CHECK;

/** The tables are as the other nodes have committed them by now. */
void store_note_followed(struct profile_store *s);

/** After a failure of this process: read which of its commits were made, too. Part of store_reconcile(). */
enum status store_reconcile_after_failure(struct profile_store *s, struct error *err) MUST_CHECK;

/**
 * For a scan: follow the tables unless that was done within FOLLOW_INTERVAL_MS and they have the versions of the heads
 * of other nodes (kept_heads.h). Waits for a flush for at most FOLLOW_WAIT_MS. Takes writer_lock.
 * @return false after a failure: the previous state remains, of the time s->followed_unix_s.
 */
bool store_follow_for_scan(struct profile_store *s) MUST_CHECK;
#define FOLLOW_INTERVAL_MS 500
#define FOLLOW_WAIT_MS 2000

/**
 * For a replica or a node that flushes nothing: a thread follows the tables after a scan could not, so that the health
 * says when the store is back, and reads tables that were absent. While that fails only the thread tries, each
 * FOLLOW_RETRY_S, and scans do not wait for a store that is away. A replica is followed each REPLICA_FOLLOW_S without
 * scans, too, so that the metrics say how old its tables are.
 */
enum status follower_start(struct profile_store *s, struct error *err) MUST_CHECK;
#define REPLICA_FOLLOW_S 60
#define FOLLOW_RETRY_S 10

/**
 * Hold one of the store's leases, before work that one of several nodes should do. ST_OK without other nodes; else as
 * store_lease_hold(). Any thread.
 */
enum status store_hold_lease(struct profile_store *s, struct store_lease *l, struct error *err) MUST_CHECK;

/**
 * Of a store that leaves maintenance to other nodes: find out now and then whether one does it, for the health. After a
 * flush: tables that get nothing need no maintenance.
 */
void store_check_maintained(struct profile_store *s);

/** Let another node take the lease at once. */
void store_end_lease(struct profile_store *s, struct store_lease *l);

/** Whether another node committed the batch, or this one before. Any thread. */
bool is_batch_committed(struct profile_store *s, const struct batch *b);

void table_follow_register_metrics(void);

#endif
