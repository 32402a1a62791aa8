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
 * With `holds`, batches wait for batch_merge_confirm() before they go to the sender, and profiles belong to a term,
 * which is a number that the caller chooses: those of a term that has ended are discarded. scrape_lease.h says why.
 *
 * Threads: any.
 */
#include <pthread.h>
#include <sys/queue.h>

#include "profile-formats/profile.h"
#include "sending/sender.h"

#define BATCH_MERGE_NS INT64_C(1000000000) /* longest time that a profile waits for others */

struct merged_batch;

struct batch_merge {
        struct sender *sender; /* borrowed */
        bool holds;
        pthread_mutex_t lock;             /* protects the rest */
        struct merged_batch *pending;     /* owned; NULL: none */
        STAILQ_HEAD(, merged_batch) held; /* complete, not confirmed */
        uint64_t term;                    /* 0: none, so that nothing may be added */
        unsigned sending;                 /* batches being handed to the sender */
        uint64_t lost_samples;            /* of batches that the sender refused */
        uint64_t discarded_samples;       /* of terms that ended before they were confirmed */
};

/**
 * @param b      must not be moved after this call.
 * @param holds  otherwise there is one term, 1, without an end.
 */
void batch_merge_init(struct batch_merge *b, struct sender *sender, bool holds);
/** Discards pending profiles: call batch_merge_flush() before. */
void batch_merge_deinit(struct batch_merge *b);

/**
 * Add a copy of a profile.
 * @return as sender_put_profile(): after a failure none of it is sent. Samples lost after success are counted. ST_BUSY
 * when the term is not the current one, too.
 */
enum status batch_merge_add(struct batch_merge *b, const struct profile *p, uint64_t term,
                            struct error *err) MUST_CHECK;

/**
 * Complete the pending batch if its first profile has waited for min_age_ns: hand it to the sender, or hold it.
 * @return when the next call is due (monotonic), INT64_MAX when nothing is pending.
 */
int64_t batch_merge_flush(struct batch_merge *b, int64_t min_age_ns);

/** Begin a term. The one before must have ended. */
void batch_merge_begin_term(struct batch_merge *b, uint64_t term);

/** End the term: discard what is not confirmed. */
void batch_merge_end_term(struct batch_merge *b);

/** Hand the batches that were complete at until_ns (monotonic) to the sender. */
void batch_merge_confirm(struct batch_merge *b, int64_t until_ns);

/** Samples of added profiles that the sender refused or lost. */
uint64_t batch_merge_count_lost(struct batch_merge *b);

/** Samples that were discarded with their term. */
uint64_t batch_merge_count_discarded(struct batch_merge *b);

/** Whether a batch is pending, held, or being handed to the sender. */
bool batch_merge_has_pending(struct batch_merge *b);

#endif
