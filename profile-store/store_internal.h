/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_STORE_INTERNAL_H
#define CAIRN_PROFILE_STORE_STORE_INTERNAL_H

/*
 * The store's inside. Locks, in the order they are taken:
 *  0. healer: one re-symbolization at a time; it takes the writer lock for each
 *     of its rounds, so that flushes get their turn.
 *  1. writer: one flush or round of healing at a time, from its lookup to its
 *     commit. A flush that looked locations up before new symbols were loaded
 *     has therefore committed them before the healing of those symbols looks
 *     for rows: no row is missed by both.
 *  2. lock: the head and the current tables, taken for moments. A flush
 *     changes both under it, so a scan sees each sample once.
 */
#include <pthread.h>

#include "profile-store/batch.h"
#include "profile-store/batch_ids.h"
#include "profile-store/key_map.h"
#include "profile-store/known_rows.h"
#include "profile-store/quarantine.h"
#include "profile-store/raw_queue.h"
#include "profile-store/store.h"
#include "profile-store/tables.h"

struct profile_store {
        char *dir;
        struct profile_store_options options;
        int lock_fd;
        struct raw_queue *queue;
        struct raw_queue_report report;
        struct batch_ids *ids; /* of flushed batches; NULL for a reader */

        pthread_mutex_t healer;
        pthread_mutex_t writer;
        struct table_logs logs;  /* under writer */
        struct known_rows known; /* under writer */
        uint64_t starved_position; /* batch that alone ran out of memory; under writer */
        unsigned starved_attempts;
        bool behind;             /* a commit may have been made that tables does not show; under writer */

        pthread_mutex_t lock;
        struct batch **head; /* by position; visible once the queue has synced them */
        size_t head_count, head_capacity;
        _Atomic uint64_t head_bytes; /* changed under lock, read without it */
        struct key_map queued; /* batch id to position in the head; 0: not there */
        struct tables *tables;
        uint64_t flushed; /* positions up to here are in the tables */
        uint64_t failed_flushes;
        struct error last_failure;

        pthread_mutex_t health_lock; /* of health; a leaf: nothing is called while it is held */
        struct profile_store_health health;

        pthread_t thread;
        bool thread_runs;
        pthread_cond_t wake; /* of the flush thread; with lock */
        atomic_bool stopping;
        bool sync_failed; /* the flush thread has not tried to recover yet; with lock */
};

/* Record the outcome of a flush, and of syncing the queue; err is read on failure only. True for the first failure. */
bool health_set_flush(struct profile_store *s, enum status st, const struct error *err);
/* How much is in the quarantine; reason NULL leaves the last one. */
void health_set_quarantine(struct profile_store *s, struct quarantine_totals totals, const char *reason);
bool health_set_sync(struct profile_store *s, enum status st, const struct error *err);

/* For tests: called for each batch of a group before its flush, a failure is one of the group's. NULL in programs. */
extern enum status (*flush_test_hook)(const struct batch *b, struct error *err);

/* Make the replayed part of the head; for open. */
enum status head_open(struct profile_store *s, struct error *err) MUST_CHECK;
void head_close(struct profile_store *s);

/* Show what this process committed to scans, and drop what it covers from the head; the writer lock is held. */
enum status store_show(struct profile_store *s, struct error *err) MUST_CHECK;

/* After a failure it is not known which commits were made; the logs know. The writer lock is held. */
enum status store_catch_up(struct profile_store *s, struct error *err) MUST_CHECK;

/* Read queue and tables anew; only for a store that is open for reading, lock is held. */
enum status store_reload(struct profile_store *s, struct error *err) MUST_CHECK;

/* The synced batches, oldest first, each with a reference; lock is held. */
enum status head_take(struct profile_store *s, struct batch ***ret, size_t *count_ret,
                      struct error *err) MUST_CHECK;
void batches_unref(struct batch **batches, size_t count);

/* Forget the batches after position, which were never durable; lock is held. */
void head_drop_above(struct profile_store *s, uint64_t position);

/* Forget the batches up to position, which are in the tables now; lock is held. */
void head_drop(struct profile_store *s, uint64_t position);

#endif
