/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_LIFECYCLE_HISTORY_RETENTION_H
#define CAIRN_PROFILE_STORE_LIFECYCLE_HISTORY_RETENTION_H

/**
 * @file
 * Retention of function_history: whole days are removed when all of a day is older than an age. The current time is the
 * earliest that the clock may mean, and at most a day after the newest hour, as for samples (sample_retention.h).
 */
#include "profile-store/core/expiry.h"

/** @param ret  the removed days are added, in a dry run those that would be. @return as profile_store_expire(). */
enum status history_retention_apply(struct profile_store *s, uint64_t age_s, bool dry_run, struct expiry *ret,
                                    struct error *err) MUST_CHECK;

#endif
