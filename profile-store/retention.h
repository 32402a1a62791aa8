/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_RETENTION_H
#define CAIRN_PROFILE_STORE_RETENTION_H

/**
 * @file
 * Retention of samples: which days of the tables go, and their removal.
 *
 * By age and size whole days are removed, so nothing is rewritten: the files of a day leave `samples` in one
 * commit, then those of the same days leave `stacks`. After a crash between the two
 * the next run removes the stacks of days without samples. The files themselves are unlinked
 * after the grace period (profile-store/table_clean.h). Locations that no stack refers to any more go later
 * (profile-store/compaction/location_sweep.h).
 *
 * - age: a day goes when all of it is older. Now is the earliest time that the clock may mean
 *   (common/stable_clock.h), and at most a day after the newest sample, so that
 *   a clock that is ahead, or the end of ingestion, removes at most one day more.
 * - size: while the files of all tables hold more bytes, the oldest day goes. Counted are live
 *   files, and files that are replaced but still on disk; not those that retention has removed and
 *   that wait for the end of their grace period. Of the newest day, when it alone is too large, the files
 *   with the oldest samples go, but for the last one.
 * - labels: samples that a rule selects leave the files of a day when all of it is older than the rule's age
 *   (profile-store/compaction/label_expiry.h), before the size is looked at.
 */
#include "common/buf.h"
#include "profile-store/store.h"
#include "profile-store/tables.h"

/**
 * Narrow limits by a rule: age=TIME, size=BYTES or both with a comma between them. TIME is a number with s, m, h, d, w
 * or y, at least an hour; BYTES one with K, M, G, T (powers of 1024) or nothing.
 * @return ST_OK; ST_USAGE, and ret is unchanged.
 */
enum status sample_limits_parse(const char *text, struct sample_limits *ret, struct error *err) MUST_CHECK;

enum expiry_reason {
        EXPIRY_NONE,
        EXPIRY_AGE,
        EXPIRY_SIZE,
        EXPIRY_UNUSED, /* stacks of a day without samples, and locations of no stack */
        EXPIRY_LABELS, /* samples that a label rule selects */
};

struct expired_day {
        enum table table;
        int64_t day; /* since 1970; INT64_MAX of locations */
        enum expiry_reason reason;
        uint64_t files;     /* that went with all rows */
        uint64_t rewritten; /* files that were written again without some rows */
        uint64_t rows;
        uint64_t bytes; /* less in files; estimated by a dry run for those that would be rewritten */
};

/* What label rules would remove of a file of samples. */
struct expired_part {
        char *name; /* owned */
        uint64_t rows, bytes;
        bool is_whole;
};

struct expiry {
        struct expired_day *days; /* owned; by day, table and reason */
        size_t count, capacity;
        struct expired_part *parts; /* owned; of a dry run with label rules */
        size_t part_count, part_capacity;
        uint64_t skipped_files; /* unreadable: label rules could not be applied to them */
};
void expiry_deinit(struct expiry *e);
/** Note the file that label rules would remove rows of. The name is copied. */
enum status expiry_add_part(struct expiry *e, const char *name, const struct expired_part *part,
                            struct error *err) MUST_CHECK;
enum status expiry_add_day(struct expiry *e, const struct expired_day *day, struct error *err) MUST_CHECK;

struct expiry_request {
        const struct sample_limits *limits; /* borrowed; NULL: those of the store's options */
        bool dry_run;                       /* say what would go, change nothing */
        bool sweeps_locations;              /* then remove the locations that only removed stacks referred to */
        bool (*proceed)(void *context);     /* false ends label rules with ST_BUSY; NULL: until the store is closed */
        void *context;
};

/**
 * Remove what is past the limits.
 * @return ST_OK; ST_BUSY when another writer kept committing: retry later, or when it was ended; ST_USAGE for a store
 * that is open for reading only, unless dry_run; ST_OS; ST_NO_MEMORY. What was removed before a failure stays removed.
 */
enum status profile_store_expire(struct profile_store *store, const struct expiry_request *request, struct expiry *ret,
                                 struct error *err) MUST_CHECK;

/**
 * Dates of locations are "".
 * {"dry_run":BOOL,"removed":[{"table","date","reason","files","rewritten","rows","bytes"}...],"files":N,"rewritten":N,
 * "rows":N,"bytes":N,"skipped_files":N}
 */
enum status expiry_write_report(const struct expiry *e, bool dry_run, struct buf *out, struct error *err) MUST_CHECK;

/**
 * The time that ages count from, Unix seconds, and the day of the newest sample since 1970.
 * @return false when there are no samples.
 */
bool retention_find_now(const struct tables *t, int64_t *now_s_ret, int64_t *newest_day_ret);

/** Count what was removed. */
void retention_count_removed(const struct expired_day *d);

/** Register the counters of what was removed. */
void retention_register_metrics(void);

#endif
