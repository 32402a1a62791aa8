/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_DELTA_DELTA_REFRESH_H
#define CAIRN_PROFILE_STORE_DELTA_DELTA_REFRESH_H

/**
 * @file
 * The table object, and how it learns of later commits: delta_table_refresh() and delta_tables_read_next() of
 * delta_log.h.
 */
#include <pthread.h>

#include "profile-store/delta/delta_log.h"
#include "profile-store/delta/delta_place.h"
#include "profile-store/delta/delta_state.h"

struct delta_table {
        pthread_mutex_t lock; /* protects state and the members below */
        struct delta_place place;
        struct delta_state state;
        bool lacks_batch_ids;    /* of commits that were not read */
        int64_t next_checkpoint; /* after a failed checkpoint: no automatic one before this version */
        int64_t gapless_ms;      /* by the storage's clock: commits made before were read */
};

/** Whether commits after the version that was read were deleted, as far as is known. Caller holds the lock. */
bool delta_table_notice_gap(struct delta_table *t);

#endif
