/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_BATCH_IDS_H
#define CAIRN_PROFILE_STORE_BATCH_IDS_H

/**
 * @file
 * The ids of flushed batches, remembered on disk for longer than any spool,
 * so that a batch sent again after a lost answer counts once.
 *
 * Kept as generations, DIR/NNNN.ids: appended to, never changed, dropped whole
 * when the newest id is older than LIMIT_BATCH_ID_AGE_S or when all of them
 * together pass LIMIT_BATCH_IDS (docs/formats/raw-queue.md).
 *
 * Threads: any may ask; one at a time may add.
 */
#include <stdbool.h>

#include "common/error.h"
#include "common/hash.h"

struct batch_ids;

/** Reads all generations; what is torn or damaged ends its generation there. */
enum status batch_ids_open(const char *dir, struct batch_ids **ret, struct error *err) MUST_CHECK;
void batch_ids_close(struct batch_ids *ids);

bool batch_ids_has(struct batch_ids *ids, const struct hash128 *id);

/** Remember, durable when it returns; ids that are known already cost nothing. */
enum status batch_ids_add(struct batch_ids *ids, const struct hash128 *items, size_t count, int64_t now_unix_s,
                          struct error *err) MUST_CHECK;

#endif
