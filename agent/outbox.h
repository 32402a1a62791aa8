/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_AGENT_OUTBOX_H
#define CAIRN_AGENT_OUTBOX_H

/**
 * @file
 * Batches that no service has acknowledged yet, in the order they were made:
 * in a spool where there is one, else in memory.
 *
 * What the disk refuses waits in memory and goes to the spool as soon as that
 * takes batches again. Past a bound the oldest are dropped, but never the one
 * that is being sent; every dropped one is counted by its reason.
 *
 * Threads: one at a time (the sender's lock), but for outbox_sync().
 */
#include "agent/spool.h"

enum outbox_drop {
        DROP_MEMORY_FULL, /* LIMIT_AGENT_QUEUE_BYTES */
        DROP_SPOOL_FULL,  /* the spool's bound, or LIMIT_AGENT_SPOOL_FILES */
        DROP_TOO_OLD,     /* LIMIT_AGENT_SPOOL_AGE_S: the service may have forgotten its id */
        DROP_DAMAGED,     /* its file cannot be read */
        DROP_REFUSED,     /* the service will never take it */
        DROP_TOO_BIG,     /* neither will it take the smallest part */
        DROP_COUNT
};

struct outbox_stats {
        uint64_t queued;         /* batches, wherever they wait */
        uint64_t queued_bytes;   /* packed, in memory */
        uint64_t spooled;        /* batches on the disk */
        uint64_t spool_bytes;
        uint64_t spool_disk_full, spool_failed; /* writes that failed */
        uint64_t dropped[DROP_COUNT];
};

struct batch {
        struct batch *next;
        uint64_t number;
        struct hash128 id;
        int64_t made_unix_ns;
        struct buf bytes;        /* empty while it is on the disk only */
        const uint8_t *payload;  /* in bytes */
        size_t payload_size;
        uint64_t disk_bytes;     /* 0: not in the spool */
        bool synced, in_flight;
        unsigned server_errors;  /* times that it met with 500 */
};

struct outbox {
        struct spool *spool;     /* NULL: memory only */
        uint64_t spool_max;
        bool spool_failing;      /* the last write failed: said once */
        size_t damaged_files;
        struct batch *first, *last;
        uint64_t next_number;
        struct outbox_stats stats;
};

/** @param spool_dir NULL: memory only. Logs what it finds there. */
enum status outbox_init(struct outbox *o, const char *spool_dir, uint64_t spool_max, struct error *err) MUST_CHECK;
/** What is in memory only is lost. */
void outbox_deinit(struct outbox *o);

struct hash128 outbox_random_id(void);

#define BATCH_ID_HEX 33
const char *batch_id_hex(const struct hash128 *id, char ret[static BATCH_ID_HEX]); /* returns ret */

/** @param packed taken: a gzip'd OTLP request. */
enum status outbox_put(struct outbox *o, const struct hash128 *id, struct buf *packed, struct error *err) MUST_CHECK;

/** The oldest batch with its bytes, in flight from now on; NULL when nothing waits (or without memory). */
struct batch *outbox_take(struct outbox *o);
/** It could not be sent now. */
void outbox_put_back(struct outbox *o, struct batch *b);
/** It arrived. */
void outbox_remove(struct outbox *o, struct batch *b);
/** Nobody will get it. */
void outbox_drop(struct outbox *o, struct batch *b, enum outbox_drop why);

#define OUTBOX_SYNC_MAX 64
/** Numbers of spooled batches that are not synced yet, some at a time. Returns how many. */
size_t outbox_unsynced(const struct outbox *o, uint64_t numbers[static OUTBOX_SYNC_MAX]);
/** Without the lock. */
enum status outbox_sync(struct outbox *o, const uint64_t *numbers, size_t count, struct error *err) MUST_CHECK;
void outbox_mark_synced(struct outbox *o, const uint64_t *numbers, size_t count);

#endif
