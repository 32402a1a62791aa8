/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_AGENT_UPLOADS_UPLOAD_HISTORY_H
#define CAIRN_AGENT_UPLOADS_UPLOAD_HISTORY_H

/**
 * @file
 * Negative cache of build-ids that were offered for upload, with the
 * time when each may be tried again.
 *
 * Past LIMIT_AGENT_UPLOAD_IDS it is emptied.
 *
 * Threads: one at a time.
 */
#include "common/build_id.h"
#include "common/hash/id_table.h"

struct upload_history_entry {
        int64_t not_before_ns; /* monotonic: when it may be tried again */
        uint8_t failures;      /* consecutive */
};

struct upload_history {
        struct id_table ids;
        struct upload_history_entry *entries; /* owned */
        size_t count, capacity;
};

void upload_history_deinit(struct upload_history *h);

/** Whether it may be tried now. */
bool upload_history_is_due(const struct upload_history *h, const struct build_id *id, int64_t now_ns);

/** Whether it may be tried now. If so it is in progress until upload_history_end(). */
bool upload_history_begin(struct upload_history *h, const struct build_id *id, int64_t now_ns);

enum upload_history_outcome {
        UPLOAD_OUTCOME_SETTLED, /* sent, present, or useless: retried after a day */
        UPLOAD_OUTCOME_FAILED,  /* retried with exponential backoff from 1 minute to a day */
        UPLOAD_OUTCOME_LATER,   /* not tried: retried in the next interval */
};
void upload_history_end(struct upload_history *h, const struct build_id *id, enum upload_history_outcome end,
                        int64_t now_ns);

#endif
