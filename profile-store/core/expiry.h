/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_CORE_EXPIRY_H
#define CAIRN_PROFILE_STORE_CORE_EXPIRY_H

/** @file What retention removes, and the time it goes by (profile-store/lifecycle/sample_retention.h). */
#include "profile-store/profile_store.h"
#include "profile-store/tables/tables.h"

enum expiry_reason {
        EXPIRY_NONE,
        EXPIRY_AGE,
        EXPIRY_SIZE,
        EXPIRY_UNUSED, /* stacks of a day without samples, and locations without a stack */
        EXPIRY_LABELS, /* samples that a label rule selects */
};

struct expired_day {
        enum table table;
        int64_t day; /* since 1970-01-01; INT64_MAX for locations */
        enum expiry_reason reason;
        uint64_t files;     /* removed with all rows */
        uint64_t rewritten; /* rewritten without some rows */
        uint64_t rows;
        uint64_t bytes; /* bytes saved; a dry run estimates it for files to be rewritten */
};

/* Rows of a file of samples that label rules would remove. */
struct expired_part {
        char *name; /* owned */
        uint64_t rows, bytes;
        bool is_whole;
};

struct expiry {
        struct expired_day *days; /* owned; sorted by day, table and reason */
        size_t count, capacity;
        struct expired_part *parts; /* owned; dry run with label rules only */
        size_t part_count, part_capacity;
        uint64_t skipped_files; /* unreadable files, to which label rules could not be applied */
};
void expiry_deinit(struct expiry *e);
/** Record a file from which label rules would remove rows. The name is copied. */
enum status expiry_add_part(struct expiry *e, const char *name, const struct expired_part *part,
                            struct error *err) MUST_CHECK;
enum status expiry_add_day(struct expiry *e, const struct expired_day *day, struct error *err) MUST_CHECK;

struct expiry_request {
        const struct sample_limits *limits; /* borrowed; NULL: those of the store's options */
        bool dry_run;                       /* report what would be removed, change nothing */
        bool sweeps_locations;              /* afterwards also remove locations that only removed stacks referred to */
        bool (*proceed)(void *context);     /* false ends label rules with ST_BUSY; NULL: until the store is closed */
        void *context;
};

/**
 * The current time for ages, in Unix seconds, and the day of the newest sample since 1970-01-01.
 * @return false when there are no samples.
 */
bool retention_find_now(const struct tables *t, int64_t *now_s_ret, int64_t *newest_day_ret);

/** Log a committed removal, and add it to the metrics of removed files and rows. */
void retention_report_removed(const struct expired_day *d);

/** The name of a reason; "" for EXPIRY_NONE. */
const char *expiry_reason_name(enum expiry_reason reason);

/** Register the metrics of removed files and rows. */
void expiry_register_metrics(void);

#endif
