/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_STORE_INTERNAL_H
#define CAIRN_PROFILE_STORE_STORE_INTERNAL_H

/*
 * Internals of the store. Lock order:
 *  0. the lock of compaction: one merge at a time (compaction/compaction.h).
 *  1. resymbolize_lock: one re-symbolization at a time. It takes writer_lock per
 *     round, so that flushes run in between.
 *     A merge or sweep of locations holds it too, and ends as soon as resymbolize_waiting
 *     says that a re-symbolization waits.
 *  2. writer_lock: one flush or round at a time, from its lookup to its commit.
 *     Locations that a flush looked up before new symbols were loaded are thus
 *     committed before the re-symbolization of these symbols reads the tables.
 *     A merge takes it for its commit only.
 *  3. lock: the head and the current tables, held briefly. A flush changes both
 *     under it, so a scan sees each sample once.
 */
#include <pthread.h>

#include "profile-store/batch.h"
#include "profile-store/queue/batch_ids.h"
#include "profile-store/key_map.h"
#include "profile-store/known_rows.h"
#include "profile-store/queue/quarantine.h"
#include "profile-store/queue/raw_queue.h"
#include "profile-store/store.h"
#include "profile-store/store_limits.h"
#include "profile-store/tables.h"

struct profile_store {
        char *dir;
        struct profile_store_options options;
        int lock_fd;
        struct raw_queue *queue;
        struct raw_queue_report report;
        struct batch_ids *ids; /* of flushed batches; NULL for a reader */

        struct compaction *compaction;   /* NULL for a reader */
        struct stack_cache *stack_cache; /* of scans */
        pthread_mutex_t resymbolize_lock;
        atomic_uint resymbolize_waiting;
        pthread_mutex_t writer_lock;
        struct table_logs logs;    /* under writer */
        struct known_rows known;   /* under writer */
        uint64_t starved_position; /* batch that alone ran out of memory; under writer */
        unsigned starved_attempts;
        bool claims_memory; /* memory_claim(), for that batch; under writer */
        /* Fault injection: called for each batch of a group before its flush, a failure fails the group. NULL: none */
        enum status (*inject_failure)(const struct batch *b, struct error *err);
        bool behind; /* tables may lack a commit that was made; under writer_lock */

        pthread_mutex_t lock;
        struct batch **head; /* by position; visible once the queue has synced them */
        size_t head_count, head_capacity;
        _Atomic uint64_t head_bytes; /* changed under lock, read without it */
        struct key_map queued;       /* batch id to position in the head; 0: not there */
        struct tables *tables;
        uint64_t flushed; /* positions up to here are in the tables */
        uint64_t failed_flushes;
        struct error last_failure;

        struct store_limits *limits; /* with lock; options.limits until they are replaced */
        bool has_new_limits;         /* since the maintenance began; with lock */
        pthread_mutex_t rules_lock;  /* of the matchers of limits; a leaf, as health_lock */
        pthread_mutex_t health_lock; /* of health; a leaf: nothing is called while it is held */
        struct profile_store_health health;

        pthread_t thread;
        bool thread_runs;
        pthread_cond_t wake; /* of the flush thread; with lock */
        pthread_t maintenance_thread;
        bool maintenance_runs;
        pthread_cond_t maintenance_wake; /* with lock */
        atomic_bool sweep_due;           /* retention removed stacks since the last sweep of locations began */
        atomic_uint failed_sweeps;       /* in a row */
        _Atomic int64_t next_sweep_ns;   /* monotonic */
        int64_t next_listing_ns; /* monotonic: maintenance searches for orphans and old log files; with writer_lock */
        atomic_bool stopping;
        bool sync_failed; /* the flush thread has not tried to recover yet; with lock */
};

/* Record the outcome of a flush, and of syncing the queue; err is read on failure only. True for the first failure. */
bool health_set_flush(struct profile_store *s, enum status st, const struct error *err);
/* The quarantine grew or shrank by so much; reason: of a batch that was added, NULL leaves the last one. */
void health_add_quarantined(struct profile_store *s, int64_t batches, int64_t bytes, const char *reason);
bool health_set_sync(struct profile_store *s, enum status st, const struct error *err);

/* Merges of a partition fail again and again, first at since_ns; 0: they do not. */
void health_set_compaction(struct profile_store *s, int64_t since_ns, const struct error *err);
/* The outcome of label rules for a day, or with ST_OK for all days. */
void health_set_label_expiry(struct profile_store *s, enum status st, const struct error *err);

/* Open the queue and replay it into the head. */
enum status head_open(struct profile_store *s, struct error *err) MUST_CHECK;
/* Of a store that is open for reading only: add to the head what the queue has got since. */
enum status head_refresh(struct profile_store *s, struct error *err) MUST_CHECK;
void head_close(struct profile_store *s);

/* Give scans the committed tables, and drop the flushed batches from the head. With writer_lock. */
enum status store_publish_tables(struct profile_store *s, struct error *err) MUST_CHECK;

/* After a failure: read from the logs which commits were made. With writer_lock. */
enum status store_reconcile(struct profile_store *s, struct error *err) MUST_CHECK;

/* Read queue and tables again, for a read-only store. With lock. */
enum status store_reload(struct profile_store *s, struct error *err) MUST_CHECK;

/* The durable batches, oldest first, each with a reference. With lock. */
enum status head_copy_durable(struct profile_store *s, struct batch ***ret, size_t *count_ret,
                              struct error *err) MUST_CHECK;
void batches_unref(struct batch **batches, size_t count);

/* Drop the batches after position, which were never durable. With lock. */
void head_drop_after(struct profile_store *s, uint64_t position);

/* Drop the batches up to position, which are in the tables. With lock. */
void head_drop_until(struct profile_store *s, uint64_t position);

#endif
