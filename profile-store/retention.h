/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_RETENTION_H
#define CAIRN_PROFILE_STORE_RETENTION_H

/**
 * @file
 * Retention of samples: which days of the tables go, and their removal.
 *
 * Whole days are removed, so nothing is rewritten: the files of a day leave `samples` in one
 * commit, then those of the same days leave `stacks`. After a crash between the two
 * the next run removes the stacks of days without samples. The files themselves are unlinked
 * after the grace period (profile-store/table_clean.h).
 *
 * - age: a day goes when all of it is older. Now is the earliest time that the clock may mean
 *   (common/stable_clock.h), and at most a day after the newest sample, so that
 *   a clock that is ahead, or the end of ingestion, removes at most one day more.
 * - size: while the files of all tables hold more bytes, the oldest day goes. Counted are live
 *   files, and files that are replaced but still on disk; not those that retention has removed and
 *   that wait for the end of their grace period. Of the newest day, when it alone is too large, the files
 *   with the oldest samples go, but for the last one.
 */
#include "common/buf.h"
#include "profile-store/store.h"
#include "profile-store/table_schema.h"

/**
 * Narrow limits by a rule: age=TIME, size=BYTES or both with a comma between them. TIME is a number with s, m, h, d, w
 * or y, at least an hour; BYTES one with K, M, G, T (powers of 1024) or nothing.
 * @return ST_OK; ST_USAGE, and ret is unchanged.
 */
enum status sample_limits_parse(const char *text, struct sample_limits *ret, struct error *err) MUST_CHECK;

enum expiry_reason { EXPIRY_NONE, EXPIRY_AGE, EXPIRY_SIZE, EXPIRY_UNUSED /* stacks of a day without samples */ };

struct expired_day {
        enum table table;
        int64_t day; /* since 1970 */
        enum expiry_reason reason;
        uint64_t files, rows, bytes;
};

struct expiry {
        struct expired_day *days; /* owned; by day and table */
        size_t count;
};
void expiry_deinit(struct expiry *e);

/**
 * Remove what is past the limits, or with dry_run say what would go.
 * @param limits  NULL: those of the store's options.
 * @return ST_OK; ST_BUSY when another writer kept committing: retry later; ST_USAGE for a store that is open for
 * reading only, unless dry_run; ST_OS; ST_NO_MEMORY.
 */
enum status profile_store_expire(struct profile_store *store, const struct sample_limits *limits, bool dry_run,
                                 struct expiry *ret, struct error *err) MUST_CHECK;

/** {"dry_run":BOOL,"removed":[{"table","date","reason","files","rows","bytes"}...],"files":N,"rows":N,"bytes":N} */
enum status expiry_write_report(const struct expiry *e, bool dry_run, struct buf *out, struct error *err) MUST_CHECK;

/** Register the counters of what was removed. */
void retention_register_metrics(void);

#endif
