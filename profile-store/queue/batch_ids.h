/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_QUEUE_BATCH_IDS_H
#define CAIRN_PROFILE_STORE_QUEUE_BATCH_IDS_H

/**
 * @file
 * Persistent set of the ids of flushed batches, for deduplication of batches that are sent again after a lost response.
 * It keeps ids longer than any spool keeps batches.
 *
 * Stored as generations, DIR/NNNN.ids: append-only files, each deleted whole when its newest id is older than
 * LIMIT_BATCH_ID_AGE_S or when all generations together exceed LIMIT_BATCH_IDS (docs/formats/raw-queue.md).
 *
 * Threads: batch_ids_contain() from any thread; additions from one at a time.
 */
#include <stdbool.h>

#include "common/error.h"
#include "common/hash.h"

struct batch_ids;

/** Read all generations, each up to its first damaged entry. */
enum status batch_ids_open(const char *dir, struct batch_ids **ret, struct error *err) MUST_CHECK;
void batch_ids_close(struct batch_ids *ids);

bool batch_ids_contain(struct batch_ids *ids, const struct hash128 *id);

/** Add ids durably; known ones are ignored. */
enum status batch_ids_add(struct batch_ids *ids, const struct hash128 *items, size_t count, int64_t now_unix_s,
                          struct error *err) MUST_CHECK;

/**
 * As batch_ids_add(), but on a full disk keep the ids in memory. The next addition that succeeds, also one of no ids,
 * writes them.
 */
enum status batch_ids_add_or_keep(struct batch_ids *ids, const struct hash128 *items, size_t count, int64_t now_unix_s,
                                  struct error *err) MUST_CHECK;
/** Whether none is in memory only; for the thread that adds. */
bool batch_ids_are_written(const struct batch_ids *ids);

#endif
