/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_CORE_READINESS_H
#define CAIRN_SERVER_CORE_READINESS_H

/**
 * @file
 * Readiness: conditions that impair the service, for /readyz and as metrics (cairn_ready_condition{condition}).
 * docs/operations.md lists them.
 *
 * An error makes /readyz respond 503: batches are rejected, or accepted but not written to the tables. A warning is
 * listed in the body of a 200, as is an error that only some tenants' stores have. A thread does the checks that may
 * wait for the disk (free space, statistics of the stores), once a second and on request, and publishes a copy, so that
 * the other calls never wait for I/O.
 *
 * Threads: any, except start and stop.
 */
#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "common/memory/buf.h"
#include "profile-store/profile_store.h"

enum ready_condition {
        READY_FLUSH_FAILING, /* errors */
        READY_SYNC_FAILING,
        READY_QUEUE_FULL,
        READY_DISK_FULL,
        READY_INDEX_FAILING, /* warnings */
        READY_CLOCK_JUMP,
        READY_QUARANTINE,
        READY_COMPACTION_FAILING,
        READY_RETENTION_FAILING,
        READY_RELOAD_FAILING,
        READY_STALLED,
        READY_PEER_MISSING,
        READY_UNMAINTAINED,
        READY_FOLLOW_FAILING,
        READY_CONDITION_COUNT,
};

struct readiness;

/** A store to watch. */
struct readiness_store {
        const char *tenant; /* named in reports; NULL: not named. Borrowed, as is the store */
        struct profile_store *store;
        bool is_gateway; /* it queues batches for others: failing flushes are a warning until the queue is full */
};

/**
 * @param dir data directory: its free space and the clock are watched. NULL: read-only, neither is watched.
 *         Borrowed until readiness_stop().
 * @param stores copied.
 */
enum status readiness_start(const char *dir, const struct readiness_store *stores, size_t count, struct readiness **ret,
                            struct error *err) MUST_CHECK;
/** NULL is allowed. */
void readiness_stop(struct readiness *r);

/**
 * Set a condition, with err's text as its description; a NULL err clears it. For conditions that stores do not report.
 */
void readiness_report(struct readiness *r, enum ready_condition condition, const struct error *err);

/** A condition that holds. `text` is valid during the call; the other texts are constants. */
struct readiness_condition {
        const char *name, *next_step;
        const char *text;   /* what happened */
        size_t store;       /* index of the store that reports it, or READINESS_SERVICE */
        const char *tenant; /* of that store; NULL: not named */
        bool is_error;      /* else a warning */
};
#define READINESS_SERVICE SIZE_MAX

/**
 * Call visit for each condition that holds, and set the metrics.
 * @param visit  called with the lock held: it must not call functions of this header.
 * @return false when one of them is an error.
 */
bool readiness_visit(struct readiness *r, void (*visit)(void *context, const struct readiness_condition *c),
                     void *context);

/** Free and total bytes of the data directory's file system, as of the last check; false when unknown. */
bool readiness_get_disk(struct readiness *r, uint64_t *free_ret, uint64_t *size_ret);

/** Append a line for each condition that holds, and set the metrics. @return false when one of them is an error. */
bool readiness_write(struct readiness *r, struct buf *to);

/**
 * Current statistics of the stores; the previous ones of the tables when reading them takes more than about 100 ms.
 * @param ret  one per store, in the order of readiness_start(); only queue and health for a store without statistics
 *             yet, else unchanged.
 */
void readiness_get_store_stats(struct readiness *r, struct profile_store_stat *ret);

/**
 * Set READY_CLOCK_JUMP for LIMIT_CLOCK_JUMP_SHOWN_S after the number of wall clock steps changes, and while a forward
 * step is held back from ages. For the thread and tests; the values are those of stable_clock_is_held().
 *
 * @param held_s  seconds of a forward step that do not count as age yet; 0: none.
 */
void readiness_watch_clock(struct readiness *r, uint64_t steps, int64_t held_s, int64_t mono_ns);

#endif
