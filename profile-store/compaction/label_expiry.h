/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_COMPACTION_LABEL_EXPIRY_H
#define CAIRN_PROFILE_STORE_COMPACTION_LABEL_EXPIRY_H

/**
 * @file
 * Retention of samples by their labels: rows of a day that a rule selects go when all of the day is older than the
 * rule's age.
 *
 * A day at a time. The columns of the rules' labels decide what happens to a file: without a selected row it stays,
 * with only such rows it leaves the table unread, and any other is written again without them (row_removal.h). Which
 * rules have been applied to a file is remembered in its struct table_part, so a file is looked at once per rule of the
 * store, and written at most once per rule; files that flushes add to an old day later are new files. Stacks stay until
 * their day has no samples.
 *
 * Threads: any.
 */
#include "profile-store/retention.h"

/** A pass of the compaction's thread over the days; zeroed at first. */
struct label_pass {
        bool is_running;
        int64_t day;                    /* that was done last */
        unsigned failed_days, failures; /* of this pass; passes in a row that failed */
        int64_t retry_ns;
};

/** Whether the store has such rules now. */
bool label_expiry_has_rules(struct profile_store *s);

/**
 * Apply the rules of the store to the next day that has something due.
 * @return false when the pass is over, or must wait.
 */
bool label_expiry_run_next(struct profile_store *s, struct label_pass *pass);

/**
 * Apply the rules of `limits` to all days, and add what went to ret, or with request->dry_run what would go. Days that
 * limits->age_s removes are left out.
 * @return the first failure after all other days were done; ret is valid then, too.
 */
enum status label_expiry_apply(struct profile_store *s, const struct sample_limits *limits,
                               const struct expiry_request *request, struct expiry *ret, struct error *err) MUST_CHECK;

void label_expiry_register_metrics(void);

#endif
