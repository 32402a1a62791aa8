/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SCRAPE_BATCH_MERGE_H
#define CAIRN_SCRAPE_BATCH_MERGE_H

/**
 * @file
 * Merge the profiles of about one second into batches: profiles are many and small, the sender has one request in
 * flight, and the service syncs its disk for each.
 *
 * Each merged profile has at most its share of the limits of one batch (profile_check_labels(), and those of a
 * profile), so that no target can make the service reject the samples of others, or take their room. Profiles that
 * exceed their share are sent as separate batches.
 *
 * Threads: any.
 */
#include <pthread.h>

#include "profile-formats/profile.h"
#include "sending/sender.h"

#define BATCH_MERGE_NS INT64_C(1000000000) /* longest time that a profile waits for others */

struct batch_merge {
        struct sender *sender; /* borrowed */
        pthread_mutex_t lock;  /* protects the rest */
        struct profile pending;
        unsigned count; /* profiles in pending; 0: pending is not initialized */
        int64_t began_ns;
        unsigned sending;      /* batches being handed to the sender */
        uint64_t lost_samples; /* of batches that the sender refused */
};

/** @param b  must not be moved after this call. */
void batch_merge_init(struct batch_merge *b, struct sender *sender);
/** Discards pending profiles: call batch_merge_flush() before. */
void batch_merge_deinit(struct batch_merge *b);

/**
 * Add a copy of a profile.
 * @return as sender_put_profile(): after a failure none of it is sent. Samples lost after success are counted.
 */
enum status batch_merge_add(struct batch_merge *b, const struct profile *p, struct error *err) MUST_CHECK;

/**
 * Hand the pending batch to the sender if its first profile has waited for min_age_ns.
 * @return when the next call is due (monotonic), INT64_MAX when nothing is pending.
 */
int64_t batch_merge_flush(struct batch_merge *b, int64_t min_age_ns);

/** Samples of added profiles that the sender refused or lost. */
uint64_t batch_merge_count_lost(struct batch_merge *b);

/** Whether a batch is pending or being handed to the sender. */
bool batch_merge_has_pending(struct batch_merge *b);

#endif
