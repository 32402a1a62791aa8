/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_LIFECYCLE_SAMPLE_RETENTION_H
#define CAIRN_PROFILE_STORE_LIFECYCLE_SAMPLE_RETENTION_H

/**
 * @file
 * Retention of samples: selects the days of the tables to remove, and removes them.
 *
 * By age and size whole days are removed, so nothing is rewritten: the files of a day are removed from `samples` in one
 * commit, then those of the same days from `stacks`. After a crash between the two the next run removes the stacks of
 * days without samples. The files are unlinked after the grace period (profile-store/tables/table_vacuum.h). Locations
 * that no stack refers to any more are removed later (profile-store/compaction/location_sweep.h).
 *
 * - age: a day is removed when all of it is older. The current time is the earliest that the clock may mean
 *   (common/stable_clock.h), and at most a day after the newest sample, so that a clock that is ahead, or the end of
 *   ingestion, removes at most one more day.
 * - size: while the files of all tables exceed it, the oldest day is removed. Live files count, and replaced files
 *   still on disk; files that retention has removed, waiting for the end of their grace period, do not. If the newest
 *   day alone is too large, its files with the oldest samples are removed, except the last file.
 * - history: days of function_history (profile-store/lifecycle/history_retention.h); the other limits do not remove
 * them.
 * - labels: samples that a rule selects are removed from the files of a day when all of it is older than the rule's age
 *   (profile-store/compaction/label_expiry.h), before the size is checked.
 */
#include "common/memory/buf.h"
#include "profile-formats/profile.h"
#include "profile-store/core/expiry.h"
#include "profile-store/profile_store.h"

/**
 * Narrow limits by a rule: age=TIME, size=BYTES and history=TIME, separated by commas. TIME is a number with s, m, h,
 * d, w or y, at least an hour; BYTES one with K, M, G, T (powers of 1024) or without a suffix.
 * @return ST_OK; ST_USAGE, with ret unchanged.
 */
enum status sample_limits_parse(const char *text, struct sample_limits *ret, struct error *err) MUST_CHECK;

/**
 * Count the samples of a profile that the store's age limit removes: those of days of which all is older, whatever the
 * newest sample of the store is. Limits of size and label rules are ignored.
 * @param age_s_ret  the limit; 0: none.
 */
uint64_t profile_store_count_expiring(struct profile_store *store, const struct profile *profile, uint64_t *age_s_ret);

/**
 * Remove what exceeds the limits.
 * @return ST_OK; ST_BUSY when another writer kept committing: retry later, or when it was ended by `proceed`; ST_USAGE
 *         for a store opened read-only, unless dry_run; ST_OS; ST_NO_MEMORY. Removals before a failure remain.
 */
enum status profile_store_expire(struct profile_store *store, const struct expiry_request *request, struct expiry *ret,
                                 struct error *err) MUST_CHECK;

/**
 * Dates of locations are "".
 * {"dry_run":BOOL,"removed":[{"table","date","reason","files","rewritten","rows","bytes"}...],"files":N,"rewritten":N,
 * "rows":N,"bytes":N,"skipped_files":N}
 */
enum status expiry_write_report(const struct expiry *e, bool dry_run, struct buf *out, struct error *err) MUST_CHECK;

/** Register the metrics of removed files and rows. */
void retention_register_metrics(void);

#endif
