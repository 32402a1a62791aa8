/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SCRAPE_BATCH_MERGE_H
#define CAIRN_SCRAPE_BATCH_MERGE_H

/**
 * @file
 * Joins the profiles of about a second into batches: the sender has one request on its way, each with a sync of the
 * service's disk, and profiles are many and small.
 *
 * Each profile that is joined has at most its share of the limits of one batch (profile_check_labels(), and those of a
 * profile), so that no target can make the service refuse the samples of others, or leave no room for them. Others are
 * batches of their own.
 *
 * Threads: any.
 */
#include <pthread.h>

#include "agent/sending/sender.h"
#include "profile-formats/profile.h"

#define BATCH_MERGE_NS INT64_C(1000000000) /* a profile waits for others at most so long */

struct batch_merge {
        struct sender *sender; /* borrowed */
        pthread_mutex_t lock;  /* guards the rest */
        struct profile pending;
        unsigned count; /* profiles in pending; 0: it is not initialized */
        int64_t began_ns;
        unsigned sending;      /* batches on their way to the sender's queue */
        uint64_t lost_samples; /* of batches that the sender did not take */
};

/** @param b  must not be moved afterwards. */
void batch_merge_init(struct batch_merge *b, struct sender *sender);
/** What was not flushed is lost. */
void batch_merge_deinit(struct batch_merge *b);

/**
 * Add a profile, which is copied.
 * @return as sender_put_profile(): after a failure nothing of it will be sent. What is lost after success is counted.
 */
enum status batch_merge_add(struct batch_merge *b, const struct profile *p, struct error *err) MUST_CHECK;

/**
 * Hand what waits to the sender, if the first of it has waited for min_age_ns.
 * @return when the next call is due (monotonic), INT64_MAX when nothing waits.
 */
int64_t batch_merge_flush(struct batch_merge *b, int64_t min_age_ns);

/** Samples of profiles that were added, and that the sender could not take or keep as a whole. */
uint64_t batch_merge_count_lost(struct batch_merge *b);

/** Whether something waits, or is being handed over. */
bool batch_merge_has_pending(struct batch_merge *b);

#endif
