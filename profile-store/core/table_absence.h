/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_CORE_TABLE_ABSENCE_H
#define CAIRN_PROFILE_STORE_CORE_TABLE_ABSENCE_H

/**
 * @file
 * The start of a service whose object store is away, and the return of the store.
 *
 * Absent tables are an empty snapshot (tables.is_absent): batches are queued, and scans have what is queued. Everything
 * that reads or changes the tables fails until store_reconcile() has read them, which each flush attempts, or the
 * thread of a node that flushes nothing (follower_start()).
 *
 * Until then it is unknown which positions of the queue are in the tables. All records of the queue are replayed, and
 * those that are flushed leave the head when the tables are read. A new batch must not get a position that is flushed:
 *  - without any record in the queue the node takes a new identity, for which nothing is flushed;
 *  - else positions go on QUEUE_POSITION_GAP behind the last record, which is more than the queue ever had at once, so
 *    also behind flushed records that were released after it.
 * Both are durable before the first batch is acknowledged, so another start may find the store away again, or not.
 * Until there is a record behind the gap, neither commits nor peers are given a position of it
 * (raw_queue_get_synced()).
 *
 * Locks: the caller holds writer_lock, or no other thread has the store, unless stated otherwise.
 */
#include "profile-store/core/profile_store_internal.h"

#define QUEUE_POSITION_GAP (UINT64_C(1) << 32)

/** Open the tables of a store that is being opened, or find them absent, if the options allow it. */
enum status store_open_tables(struct profile_store *s, const char *node, struct error *err) MUST_CHECK;

/** Open the queue after store_open_tables(). */
enum status store_open_queue(struct profile_store *s, struct error *err) MUST_CHECK;

/** Read tables that were absent. */
enum status store_find_tables(struct profile_store *s, struct error *err) MUST_CHECK;

/** Whether the tables are absent. Any thread. */
static inline bool has_absent_tables(const struct profile_store *s)
{
        return atomic_load(&s->has_absent_tables);
}

/** ST_OS with the reason while the tables are absent. Any thread. */
enum status store_check_tables(struct profile_store *s, struct error *err) MUST_CHECK;

/** A store with absent tables is closed. */
void store_end_absence(struct profile_store *s);

#endif
