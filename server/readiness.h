/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_READINESS_H
#define CAIRN_SERVER_READINESS_H

/**
 * @file
 * Readiness: the conditions that keep the service from doing its work, for /readyz and as metrics
 * (cairn_ready_condition{condition}). docs/operations.md lists them.
 *
 * An error makes /readyz 503: batches are not taken, or taken and not written to the tables. A warning is listed in
 * the body of a 200, as is an error of one tenant's store that another one does not have. A thread looks at what may
 * wait for the disk (free space, statistics of the store) once a second and when asked, and publishes a copy, so that
 * the other calls never wait for I/O.
 *
 * Threads: any, but for start and stop.
 */
#include <stdbool.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/error.h"
#include "profile-store/store.h"

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
        READY_CONDITION_COUNT,
};

struct readiness;

/** A store to watch. */
struct readiness_store {
        const char *tenant; /* named in what is said of it; NULL: not. Borrowed, as is the store */
        struct profile_store *store;
};

/**
 * @param dir data directory, whose free space is watched, as is the clock; NULL: read-only, neither is watched.
 *         Borrowed until the stop.
 * @param stores copied.
 */
enum status readiness_start(const char *dir, const struct readiness_store *stores, size_t count, struct readiness **ret,
                            struct error *err) MUST_CHECK;
/** NULL is allowed. */
void readiness_stop(struct readiness *r);

/**
 * Set a condition, with err's text as its description; a NULL err clears it. For conditions that the store does not
 * report.
 */
void readiness_report(struct readiness *r, enum ready_condition condition, const struct error *err);

/** A condition that holds. Texts are constants but `text`, which is valid during the call. */
struct readiness_condition {
        const char *name, *next_step;
        const char *text;   /* what happened */
        size_t store;       /* number of the store that reports it, or READINESS_SERVICE */
        const char *tenant; /* of that store; NULL: not named */
        bool is_error;      /* else a warning */
};
#define READINESS_SERVICE SIZE_MAX

/**
 * Call visit for each condition that holds, and set the metrics.
 * @param visit  called under the lock: it may not call functions of this file.
 * @return false when one of them is an error.
 */
bool readiness_visit(struct readiness *r, void (*visit)(void *context, const struct readiness_condition *c),
                     void *context);

/** Bytes of the file system of the data directory, as last looked at; false when they are not known. */
bool readiness_get_disk(struct readiness *r, uint64_t *free_ret, uint64_t *size_ret);

/** Append a line for each condition that holds, and set the metrics. @return false when one of them is an error. */
bool readiness_write(struct readiness *r, struct buf *to);

/**
 * The stores' statistics: current ones, unless they take more than about 100 ms, then the previous ones. Unchanged when
 * there are none yet.
 * @param ret one for each store, in the order of the start.
 */
void readiness_get_store_stats(struct readiness *r, struct profile_store_stat *ret);

/**
 * A new number of steps of the wall clock sets READY_CLOCK_JUMP for LIMIT_CLOCK_JUMP_SHOWN_S, and for as long as a step
 * forward does not count as age. For the thread and tests; the values are those of stable_clock_is_held().
 *
 * @param held_s    seconds by which the clock stepped forward and that do not count yet, 0: none
 */
void readiness_watch_clock(struct readiness *r, uint64_t steps, int64_t held_s, int64_t mono_ns);

#endif
