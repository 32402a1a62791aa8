/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_AGENT_UPLOAD_KNOWN_H
#define CAIRN_AGENT_UPLOAD_KNOWN_H

/**
 * @file
 * What became of each build-id, so that nobody is asked about it too often.
 *
 * Past LIMIT_AGENT_UPLOAD_IDS all are forgotten: the service is asked once more.
 * Threads: one at a time.
 */
#include "agent/id_table.h"
#include "common/build_id.h"

struct upload_known_entry {
        int64_t not_before_ns; /* monotonic: when it may be looked at again */
        uint8_t failures;      /* in a row */
};

struct upload_known {
        struct id_table ids;
        struct upload_known_entry *entries; /* owned */
        size_t count, capacity;
};

void upload_known_deinit(struct upload_known *k);

/** May it be looked at now? If so it is in work from now on: upload_known_end() says what came of it. */
bool upload_known_begin(struct upload_known *k, const struct build_id *id, int64_t now_ns);

enum upload_end {
        UPLOAD_END_SETTLED, /* sent, not wanted, or of no use: looked at again after a day */
        UPLOAD_END_FAILED,  /* again after a pause that doubles: 1 minute to a day */
        UPLOAD_END_LATER,   /* nothing was tried: with the next interval */
};
void upload_known_end(struct upload_known *k, const struct build_id *id, enum upload_end end, int64_t now_ns);

#endif
