/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PIPELINE_MISSING_RETRY_H
#define CAIRN_PIPELINE_MISSING_RETRY_H

/**
 * @file
 * Periodic retry for missing objects. A flush requests an object only at its first occurrence; an upstream may get it
 * later, and a restart drops the fetch queue. Therefore the missing objects of the last day's samples are requested at
 * start and every ten minutes, those with the most samples first. The federation skips those in its negative cache.
 */
#include "profile-store/profile_store.h"

struct missing_retry;

/** @param stores stores to search for missing objects; borrowed. @param request called on a separate thread. */
enum status missing_retry_start(struct profile_store *const *stores, size_t store_count,
                                void (*request)(void *context, const struct wanted_object *objects, size_t count),
                                void *context, struct missing_retry **ret, struct error *err) MUST_CHECK;
/** Request all missing objects of stored samples of any age now. */
void missing_retry_run_now(struct missing_retry *r);
/** NULL is allowed. */
void missing_retry_stop(struct missing_retry *r);

#endif
