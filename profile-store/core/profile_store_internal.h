/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_CORE_PROFILE_STORE_INTERNAL_H
#define CAIRN_PROFILE_STORE_CORE_PROFILE_STORE_INTERNAL_H

/*
 * Internals of the store. Lock order:
 *  0. the lock of struct compaction: one merge at a time (compaction/compaction.h).
 *  1. resymbolize_lock: one re-symbolization at a time. It takes writer_lock per round, so that flushes run in between.
 *     A merge or sweep of locations holds it too, and ends as soon as resymbolize_waiting is set.
 *  2. writer_lock: one flush or round at a time, from its lookup to its commit.
 *     Locations that a flush looked up before new symbols were loaded are thus committed before the re-symbolization
 *     of these symbols reads the tables. A merge takes it for its commit only.
 *  3. peer_lock: the heads of other nodes and the ids of batches change.
 *  4. lock: the head and the current tables, held briefly. A flush changes both under it, so a scan sees each sample
 *     once.
 */
#include <pthread.h>

#include "profile-store/rows/batch.h"
#include "profile-store/rows/key_map.h"
#include "profile-store/tables/known_rows.h"
#include "profile-store/profile_store.h"
#include "profile-store/queue/batch_ids.h"
#include "profile-store/queue/quarantine.h"
#include "profile-store/queue/raw_queue.h"
#include "profile-store/core/store_lease.h"
#include "profile-store/core/store_limits.h"
#include "profile-store/tables/tables.h"

struct profile_store {
        char *dir;
        struct storage *storage; /* of the tables: options.tables, or owned */
        struct profile_store_options options;
        int lock_fd;
        struct raw_queue *queue;
        struct raw_queue_report report;
        struct batch_ids *ids; /* of flushed batches; NULL for a reader */

        struct compaction *compaction; /* NULL for a reader */
        struct function_history *history;
        struct stack_cache *stack_cache; /* of scans */
        pthread_mutex_t resymbolize_lock;
        atomic_uint resymbolize_waiting;
        pthread_mutex_t writer_lock;
        struct table_logs logs;               /* protected by writer_lock */
        bool has_listed_unnamed;              /* used by the thread of profile_store_list_unnamed() only */
        char samples_id[DELTA_TABLE_ID_SIZE]; /* of the log of samples; fixed while has_absent_tables is false */
        struct known_rows known;              /* protected by writer_lock */
        uint64_t starved_position;            /* batch that alone ran out of memory; protected by writer_lock */
        unsigned starved_attempts;
        bool claims_memory; /* memory_claim() for that batch; protected by writer_lock */
        /* Fault injection: called for each batch of a group before its flush, and may fail the group. NULL: none. */
        enum status (*inject_failure)(const struct batch *b, struct error *err);
        bool behind;                     /* tables may lack a commit that was made; protected by writer_lock */
        _Atomic int64_t followed_ns;     /* monotonic: when the commits of other nodes were read; 0: never */
        _Atomic int64_t followed_unix_s; /* the same by the wall clock */
        bool is_replica;                 /* read-only, of tables in an object store (table_follow.h) */
        atomic_bool has_absent_tables;   /* table_absence.h; changed with writer_lock */
        bool has_follower;               /* the thread is that of follower_start(); fixed after the opening */
        _Atomic int64_t next_follow_ns;  /* monotonic: no scan tries before, after one failed */

        pthread_mutex_t lock;
        struct batch **head; /* by position; a batch is visible once the queue has synced it */
        size_t head_capacity;
        _Atomic size_t head_count; /* changed under lock, read without it, as head_bytes */
        _Atomic uint64_t head_bytes;
        size_t flush_waiters;  /* calls of profile_store_wait_flushed() */
        int64_t flush_due_ns;  /* monotonic: for the first of them that the last flush did not have; 0: none */
        struct key_map queued; /* batch id to position in the head; 0: removed */
        struct tables *tables;
        uint64_t flushed; /* positions up to this one are in the tables */
        uint64_t failed_flushes;
        struct error last_failure;

        struct store_limits *limits; /* protected by lock; options.limits until replaced */
        bool has_new_limits;         /* set since the last maintenance began; protected by lock */
        pthread_mutex_t rules_lock;  /* for the matchers of limits; a leaf lock, as health_lock */
        pthread_mutex_t health_lock; /* protects health; a leaf lock: nothing is called while it is held */
        struct profile_store_health health;

        pthread_mutex_t peer_lock; /* core/kept_heads.c; taken before lock */
        struct kept_head *kept;    /* of each peer; NULL: none */

        struct commit_group *group; /* core/commit_group.h; NULL: this node commits alone */
        uint64_t handed;            /* another node may commit this node's queue up to here; protected by writer_lock */
        int64_t group_due_ns;       /* monotonic: a flush is due for commits of other nodes; 0: none; with lock */
        pthread_mutex_t lease_lock; /* a leaf lock */
        struct store_lease maintenance_lease, resymbolize_lease, fetch_lease;
        _Atomic int64_t next_fetch_look_ns; /* monotonic: another node has fetch_lease, not asked before */
        atomic_uint client_lease_requests;  /* that are being answered */

        pthread_t thread;
        bool thread_runs;
        pthread_cond_t wake;      /* wakes the flush thread; used with lock */
        pthread_cond_t left_head; /* batches left the head; used with lock */
        pthread_t maintenance_thread;
        bool maintenance_runs;
        pthread_cond_t maintenance_wake;  /* used with lock */
        atomic_bool sweep_due;            /* retention removed stacks since the last sweep of locations began */
        atomic_uint failed_sweeps;        /* consecutive failures */
        _Atomic int64_t next_sweep_ns;    /* monotonic */
        int64_t next_maintained_check_ns; /* monotonic; used by the flush thread only */
        int64_t next_listing_ns; /* monotonic: next search for orphans and old log files; protected by writer_lock */
        atomic_bool stopping;
        bool sync_failed; /* the flush thread has not tried to recover yet; protected by lock */
};

/* Record the outcome of a flush or a sync of the queue; err is read on failure only. True for the first failure. */
bool health_set_flush(struct profile_store *s, enum status st, const struct error *err);
/* The quarantine grew or shrank by these amounts. reason: that of an added batch; NULL keeps the last one. */
void health_add_quarantined(struct profile_store *s, int64_t batches, int64_t bytes, const char *reason);
bool health_set_sync(struct profile_store *s, enum status st, const struct error *err);

/* Merges of a partition keep failing, first at since_ns; 0: they do not. */
void health_set_compaction(struct profile_store *s, int64_t since_ns, const struct error *err);
/* Record the outcome of label rules for a day, or, with ST_OK, for all days. */
void health_set_label_expiry(struct profile_store *s, enum status st, const struct error *err);

/* Whether another node maintains the tables, which this one does not. */
void health_set_maintained(struct profile_store *s, enum status st, const struct error *err);

/* Record the outcome of reading the commits of other nodes. True for the first failure. */
bool health_set_follow(struct profile_store *s, enum status st, const struct error *err);

/* Open the queue and replay it into the head. */
enum status head_open(struct profile_store *s, struct error *err) MUST_CHECK;
/* Add new batches of the queue to the head of a store opened read-only. */
enum status head_refresh(struct profile_store *s, struct error *err) MUST_CHECK;
/* Drop batches up to position from the queue, once the ids are durable that could not be written when it was opened. */
enum status head_release(struct profile_store *s, uint64_t position, struct error *err) MUST_CHECK;
void head_close(struct profile_store *s);

/* Publish the committed tables to scans, and drop the flushed batches from the head. Caller holds writer_lock. */
enum status store_publish_tables(struct profile_store *s, struct error *err) MUST_CHECK;

/* After a failure, find out from the logs which commits were made; read tables that were absent; and read those of
 * other nodes, if there are other nodes (table_follow.h). Caller holds writer_lock. */
enum status store_reconcile(struct profile_store *s, struct error *err) MUST_CHECK;

/* Reload queue and tables of a read-only store, which is no replica after its opening. Caller holds lock. */
enum status store_reload(struct profile_store *s, struct error *err) MUST_CHECK;

/* The durable batches, oldest first, each with a reference. Caller holds lock. */
enum status head_copy_durable(struct profile_store *s, struct batch ***ret, size_t *count_ret,
                              struct error *err) MUST_CHECK;
void batches_unref(struct batch **batches, size_t count);

/* Let a flush begin within the commit interval. Caller holds lock. */
void head_order_flush(struct profile_store *s);

/* Drop the batches after position, which were never durable. Caller holds lock. */
void head_drop_after(struct profile_store *s, uint64_t position);

/* Drop the batches with these ids, which another node committed; their number. Caller holds lock. */
size_t head_drop_batches(struct profile_store *s, const struct hash128 *ids, size_t id_count);

/* Drop the batches up to position, which are in the tables. Caller holds lock. */
void head_drop_until(struct profile_store *s, uint64_t position);

#endif
