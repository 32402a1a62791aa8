/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SENDING_OUTBOX_H
#define CAIRN_SENDING_OUTBOX_H

/**
 * @file
 * Queue of batches that no service has acknowledged yet, in the order
 * they were made: in a spool directory if configured, else in memory.
 *
 * Batches that cannot be written wait in memory and move to the spool once
 * writing works again. Past a limit the oldest batches are dropped, except the
 * one being sent; drops are counted by reason.
 *
 * Threads: one at a time (the sender's lock), except outbox_sync().
 */
#include "sending/spool.h"

enum outbox_drop_reason {
        DROP_MEMORY_FULL, /* LIMIT_AGENT_QUEUE_BYTES, or no memory for a part of a batch that is split */
        DROP_SPOOL_FULL,  /* the spool's limit, or LIMIT_AGENT_SPOOL_FILES */
        DROP_TOO_OLD,     /* LIMIT_AGENT_SPOOL_AGE_S: the service may have forgotten the batch id */
        DROP_DAMAGED,     /* its file cannot be read */
        DROP_REFUSED,     /* the service will never accept it */
        DROP_TOO_BIG,     /* the service refuses even its smallest part */
        DROP_COUNT
};

struct outbox_stats {
        uint64_t queued;       /* batches in memory and spool */
        uint64_t queued_bytes; /* packed, in memory */
        uint64_t spooled;      /* batches on disk */
        uint64_t spool_bytes;
        uint64_t spool_disk_full, spool_failed; /* failed writes */
        uint64_t dropped[DROP_COUNT];
};

struct outbox_batch {
        struct outbox_batch *next;
        uint64_t number;
        struct hash128 id;
        int64_t made_unix_ns;
        struct buf bytes;       /* empty while it is only on disk */
        const uint8_t *payload; /* in bytes */
        size_t payload_size;
        uint64_t disk_bytes; /* 0: not in the spool */
        bool synced, in_flight;
        unsigned server_errors; /* 500 responses so far */
};

struct outbox {
        struct spool *spool; /* NULL: memory only */
        uint64_t spool_max;
        bool spool_failing; /* the last write failed: logged once */
        size_t damaged_files;
        struct outbox_batch *first, *last;
        uint64_t next_number;
        struct outbox_stats stats;
};

/** @param spool_dir  NULL: memory only. Batches found there are logged. */
enum status outbox_init(struct outbox *o, const char *spool_dir, uint64_t spool_max, struct error *err) MUST_CHECK;
/** Batches that are only in memory are lost. */
void outbox_deinit(struct outbox *o);

struct hash128 batch_id_generate(void);

#define BATCH_ID_HEX 33
const char *batch_id_to_hex(const struct hash128 *id, char ret[static BATCH_ID_HEX]); /* returns ret */

/** @param packed  taken: a gzip-compressed OTLP request. */
enum status outbox_put(struct outbox *o, const struct hash128 *id, struct buf *packed, struct error *err) MUST_CHECK;

/** The oldest batch with its bytes, marked in flight; NULL when the queue is empty (or without memory). */
struct outbox_batch *outbox_take(struct outbox *o);
/** Return a batch that could not be sent now. */
void outbox_put_back(struct outbox *o, struct outbox_batch *b);
/** Remove a delivered batch. */
void outbox_remove(struct outbox *o, struct outbox_batch *b);
/** Remove a batch that cannot be delivered, and count it. */
void outbox_drop(struct outbox *o, struct outbox_batch *b, enum outbox_drop_reason why);

#define OUTBOX_SYNC_MAX 64
/** Numbers of spooled batches that are not synced yet, at most OUTBOX_SYNC_MAX. Returns their count. */
size_t outbox_list_unsynced(const struct outbox *o, uint64_t numbers[static OUTBOX_SYNC_MAX]);
/** Caller does not hold the lock. */
enum status outbox_sync(struct outbox *o, const uint64_t *numbers, size_t count, struct error *err) MUST_CHECK;
void outbox_mark_synced(struct outbox *o, const uint64_t *numbers, size_t count);

#endif
