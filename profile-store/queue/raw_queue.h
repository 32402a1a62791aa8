/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_QUEUE_RAW_QUEUE_H
#define CAIRN_PROFILE_STORE_QUEUE_RAW_QUEUE_H

/**
 * @file
 * The raw queue: write-ahead log, with group commit, of acknowledged batches that are not yet in the tables.
 *
 * Records have consecutive positions and are appended to segments, which are named by their first position. Durability:
 *  1. A new segment is written with its header under a temporary name, synced, renamed, and its directory synced,
 *     before records are appended.
 *  2. raw_queue_write() only writes. raw_queue_sync(position) returns after an fdatasync() that began after that write;
 *     concurrent callers share it.
 *  3. The old segment is synced before a new one is begun: only the last segment can have a torn tail.
 *  4. raw_queue_release(position) unlinks whole segments without a sync: a segment that reappears after a power failure
 *     is recognized as flushed by its positions and dropped again.
 * Positions up to raw_queue_get_synced() are durable; later ones were never acknowledged.
 *
 * After a failed sync the kernel may have dropped the pages and report success the next time. The queue then refuses
 * writes, and the file is neither trusted nor synced again. Recovery (docs/internals/durability.md): raw_queue_seal()
 * ends the segment at the last position covered by a successful sync; the caller commits the batches up to it to the
 * tables from memory, releases the segments, and calls raw_queue_recover(). Later positions were never acknowledged:
 * syncing them keeps failing, and they are not reused.
 *
 * Threads: any, except open, refresh and close.
 */
#include "profile-store/queue/raw_segment.h"

struct raw_queue;

/** Called for records, oldest first. */
typedef enum status raw_queue_replay(void *context, const struct raw_record *record, struct error *err);
/** The same; may set *end_ret, after which no other record is visited. */
typedef enum status raw_queue_visitor(void *context, const struct raw_record *record, bool *end_ret, struct error *err);

struct raw_queue_report {
        uint64_t torn_bytes;       /* truncated from the last segment */
        uint64_t damaged_segments; /* with missing synced bytes; their remains are kept as NAME.damaged */
};

struct raw_queue_options {
        bool read_only;
        uint64_t flushed; /* positions up to this one are in the tables; new ones start after it */
        uint64_t gap;     /* new positions start so far behind the last record, if there is one */
        raw_queue_replay *replay;
        void *context; /* for replay */
};

/**
 * Open, replay and (unless read_only) truncate a torn tail.
 * @param options     used during the call only.
 * @param report_ret  may be NULL.
 */
enum status raw_queue_open(const char *dir, const struct raw_queue_options *options, struct raw_queue **ret,
                           struct raw_queue_report *report_ret, struct error *err) MUST_CHECK;
/**
 * Replay records written since; for a queue opened read-only. Segments of unchanged size are not read.
 * @return ST_BAD_DATA also when a segment is shorter than before; after a failure close the queue.
 */
enum status raw_queue_refresh(struct raw_queue *q, raw_queue_replay *replay, void *context,
                              struct error *err) MUST_CHECK;
void raw_queue_close(struct raw_queue *q);

/**
 * Append a record and set record->position. It is not durable yet. ST_OS when the disk is full: the queue is unchanged.
 * ST_OS also when a segment cannot be created for another reason: the queue has failed and needs recovery.
 */
enum status raw_queue_write(struct raw_queue *q, struct raw_record *record, struct error *err) MUST_CHECK;

/** Wait until position is durable. */
enum status raw_queue_sync(struct raw_queue *q, uint64_t position, struct error *err) MUST_CHECK;

/**
 * Position of the last durable record. Later positions are not given: those behind a gap are forgotten by a start
 * before the first record there, and are used for other records then.
 */
uint64_t raw_queue_get_synced(struct raw_queue *q);

/**
 * Sync and end the current segment, so that it can be released. After a failure nothing is synced.
 * @param position_ret  as raw_queue_get_synced()
 */
enum status raw_queue_seal(struct raw_queue *q, uint64_t *position_ret, struct error *err) MUST_CHECK;

/** Unlink the sealed segments whose records are all at or before position. */
enum status raw_queue_release(struct raw_queue *q, uint64_t position, struct error *err) MUST_CHECK;

/** Whether the queue refuses writes after a failed write, sync or creation of a segment. */
bool raw_queue_has_failed(struct raw_queue *q);

/**
 * Accept writes again, in a new segment. Every segment must be released before. ST_OS when the folder cannot be synced
 * or the segment cannot be created: the queue stays failed, retry later.
 */
enum status raw_queue_recover(struct raw_queue *q, struct error *err) MUST_CHECK;

/** Read one record. @param file  receives the whole segment, from which the payload is borrowed. */
enum status raw_queue_read(struct raw_queue *q, uint64_t position, struct buf *file, struct raw_record *ret,
                           struct error *err) MUST_CHECK;

/**
 * Visit the records of positions in (after, until], oldest first, without those whose segments are unlinked meanwhile.
 * Reads little more than these records: from at most 256 KiB before the first one of a segment.
 * @param until  at most raw_queue_get_synced().
 * @param visit  may fail, which ends the visit; records are borrowed during the call.
 * @return ST_BAD_DATA when a segment has lost one of the records; ST_BUSY or ST_NO_MEMORY without memory.
 */
enum status raw_queue_visit(struct raw_queue *q, uint64_t after, uint64_t until, raw_queue_visitor *visit,
                            void *context, struct error *err) MUST_CHECK;

/** Bytes of all segments. */
uint64_t raw_queue_count_bytes(struct raw_queue *q);

#endif
