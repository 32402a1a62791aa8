/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_QUEUE_QUARANTINE_H
#define CAIRN_PROFILE_STORE_QUEUE_QUARANTINE_H

/**
 * @file
 * Acknowledged batches that cannot be flushed, one file each:
 * DIR/queue/quarantine/POSITION-BATCHID.batch (docs/formats/raw-queue.md, 6).
 *
 * The file is a raw queue segment of one record, followed by a line of JSON with the reason. It is durable before the
 * record is released from the queue; replay skips records that have such a file.
 *
 * Threads: reads from any thread; changes under the store's writer lock.
 */
#include "profile-formats/profile.h"
#include "profile-store/queue/raw_segment.h"

struct quarantine_item {
        uint64_t position; /* in the raw queue */
        struct hash128 batch_id;
        uint64_t bytes; /* of the file */
        int64_t received_unix_ns, quarantined_unix_ns;
        bool damaged; /* wrong checksum: the batch can only be removed */
        char reason[240];
};

struct quarantine_totals {
        uint64_t batches, bytes;
};

/**
 * Write a batch's file durably, replacing an existing one. Number and size of files are unlimited: the bytes were
 * already on disk as a record of the queue, and a full quarantine must stop neither the flush nor other senders.
 */
enum status quarantine_add(const char *dir, const struct raw_record *record, const char *reason, uint64_t *bytes_ret,
                           struct error *err) MUST_CHECK;

/** Whether a record of the queue is in the quarantine. */
bool quarantine_contains(const char *dir, uint64_t position, const struct hash128 *batch_id);

/** Position, batch id and size of all batches, sorted by position, from the file names only; owned. */
enum status quarantine_list_names(const char *dir, struct quarantine_item **ret, size_t *count_ret,
                                  struct error *err) MUST_CHECK;

/** Like quarantine_list_names(), with times and reasons read from the files. Owned. Empty without the folder. */
enum status quarantine_list(const char *dir, struct quarantine_item **ret, size_t *count_ret,
                            struct error *err) MUST_CHECK;

/** Number and total size of the files, from the directory only; 0 when it cannot be listed. */
struct quarantine_totals quarantine_count(const char *dir);

/** The record of an item; its payload is borrowed from file. */
enum status quarantine_read(const char *dir, const struct quarantine_item *item, struct buf *file,
                            struct raw_record *ret, struct error *err) MUST_CHECK;

/** Decode the samples of an item. @param ret initialised by this call; call profile_deinit() on success only. */
enum status quarantine_decode(const char *dir, const struct quarantine_item *item, struct profile *ret,
                              struct error *err) MUST_CHECK;

/** Unlink an item's file, durably. */
enum status quarantine_remove(const char *dir, const struct quarantine_item *item, struct error *err) MUST_CHECK;

/** The id under which a batch is queued again: its own is in the set of flushed ids. */
struct hash128 quarantine_retry_id(const struct hash128 *batch_id);

#endif
